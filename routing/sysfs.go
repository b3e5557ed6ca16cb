package routing

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// device is what sysfs tells of the hardware behind an interface.
type device struct {
	// known is false when sysfs does not speak of this interface: it shows the
	// namespace of whoever mounted it.
	known   bool
	devtype string // DEVTYPE of the uevent file: "wlan", "wwan"; mostly empty
	driver  string
	bus     string // path below /sys/devices; empty: no hardware
}

// onUSB says that the path leads over a USB host controller.
func onUSB(bus string) bool {
	return slices.ContainsFunc(strings.Split(bus, "/"), func(s string) bool {
		number, ok := strings.CutPrefix(s, "usb")
		_, err := strconv.Atoi(number)
		return ok && err == nil
	})
}

// readDevice reads what sysfs, mounted at root, tells of l. Index and address
// must agree: the same name may stand for another namespace's interface.
func readDevice(root string, l link) device {
	if !isInterfaceName(l.name) {
		return device{}
	}
	dir := filepath.Join(root, "class/net", l.name)
	var d device
	for line := range strings.Lines(readSmall(filepath.Join(dir, "uevent"))) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "IFINDEX":
			d.known = value == strconv.Itoa(l.index)
		case "DEVTYPE":
			d.devtype = value
		}
	}
	if !d.known || (l.address != "" && l.address != strings.TrimSpace(readSmall(filepath.Join(dir, "address")))) {
		return device{}
	}
	d.driver, d.bus = readHardware(root, dir)
	return d
}

// readHardware follows an interface's directory to the hardware.
func readHardware(root, dir string) (driver, bus string) {
	full, err := filepath.EvalSymlinks(filepath.Join(dir, "device"))
	if err != nil {
		return "", ""
	}
	// A modem's data ports hang on a device of class wwan, which the hardware has.
	full, _, _ = strings.Cut(full, "/wwan/")
	if to, err := os.Readlink(filepath.Join(full, "driver")); err == nil {
		driver = filepath.Base(to)
	}
	root, err = filepath.EvalSymlinks(root)
	if err != nil {
		return driver, ""
	}
	bus, ok := strings.CutPrefix(full, filepath.Join(root, "devices")+"/")
	if !ok {
		return driver, ""
	}
	// The interface 1-3:1.0 of the USB device 1-3.
	if up, last := filepath.Split(bus); onUSB(bus) && strings.HasPrefix(last, filepath.Base(up)+":") {
		bus = filepath.Clean(up)
	}
	return driver, bus
}

// readSmall returns what a file of sysfs has, empty when it cannot be read.
func readSmall(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSysfs))
	if err != nil {
		return ""
	}
	return string(text)
}
