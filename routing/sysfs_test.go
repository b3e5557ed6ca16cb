package routing

import (
	"os"
	"path/filepath"
	"testing"
)

// sysfs builds a directory like /sys. files have their text, links what they
// point to, both below the root.
func sysfs(t *testing.T, files, links map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range links {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Join(root, to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(root, to), full); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestReadDevice(t *testing.T) {
	const mac = "0c:5b:8f:27:9a:64"
	const hub = "devices/pci0000:00/0000:00:14.0/usb1/"
	root := sysfs(t, map[string]string{
		hub + "1-3/1-3:1.0/net/usb0/uevent":                                                     "INTERFACE=usb0\nIFINDEX=5\n",
		hub + "1-3/1-3:1.0/net/usb0/address":                                                    mac + "\n",
		hub + "1-4/1-4:1.8/net/wwan0/uevent":                                                    "DEVTYPE=wwan\nINTERFACE=wwan0\nIFINDEX=6\n",
		hub + "1-4/1-4:1.8/net/wwan0/address":                                                   "\n",
		"devices/pci0000:00/0000:00:1d.0/0000:02:00.0/wwan/wwan0/net/wwan1/uevent":              "DEVTYPE=wwan\nINTERFACE=wwan1\nIFINDEX=7\n",
		"devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/uevent":                               "INTERFACE=eth0\nIFINDEX=2\n",
		"devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/address":                              mac + "\n",
		"devices/virtual/net/vmnet1/uevent":                                                     "INTERFACE=vmnet1\nIFINDEX=8\n",
		"devices/platform/fe300000.mmcnr/mmc_host/mmc1/mmc1:0001/mmc1:0001:1/net/wlan0/uevent":  "DEVTYPE=wlan\nINTERFACE=wlan0\nIFINDEX=3\n",
		"devices/platform/fe300000.mmcnr/mmc_host/mmc1/mmc1:0001/mmc1:0001:1/net/wlan0/address": mac,
	}, map[string]string{
		"class/net/usb0":                     hub + "1-3/1-3:1.0/net/usb0",
		hub + "1-3/1-3:1.0/net/usb0/device":  hub + "1-3/1-3:1.0",
		hub + "1-3/1-3:1.0/driver":           "bus/usb/drivers/cdc_ether",
		"class/net/wwan0":                    hub + "1-4/1-4:1.8/net/wwan0",
		hub + "1-4/1-4:1.8/net/wwan0/device": hub + "1-4/1-4:1.8",
		hub + "1-4/1-4:1.8/driver":           "bus/usb/drivers/qmi_wwan",
		"class/net/wwan1":                    "devices/pci0000:00/0000:00:1d.0/0000:02:00.0/wwan/wwan0/net/wwan1",
		"devices/pci0000:00/0000:00:1d.0/0000:02:00.0/wwan/wwan0/net/wwan1/device": "devices/pci0000:00/0000:00:1d.0/0000:02:00.0/wwan/wwan0",
		"devices/pci0000:00/0000:00:1d.0/0000:02:00.0/driver":                      "bus/pci/drivers/iosm",
		"class/net/eth0": "devices/pci0000:00/0000:00:03.0/virtio2/net/eth0",
		"devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/device": "devices/pci0000:00/0000:00:03.0/virtio2",
		"devices/pci0000:00/0000:00:03.0/virtio2/driver":          "bus/virtio/drivers/virtio_net",
		"class/net/vmnet1": "devices/virtual/net/vmnet1",
		"class/net/wlan0":  "devices/platform/fe300000.mmcnr/mmc_host/mmc1/mmc1:0001/mmc1:0001:1/net/wlan0",
		"devices/platform/fe300000.mmcnr/mmc_host/mmc1/mmc1:0001/mmc1:0001:1/net/wlan0/device": "devices/platform/fe300000.mmcnr/mmc_host/mmc1/mmc1:0001/mmc1:0001:1",
		"devices/platform/fe300000.mmcnr/mmc_host/mmc1/mmc1:0001/mmc1:0001:1/driver":           "bus/sdio/drivers/brcmfmac",
	})
	on := func(index int, name, address string) link { return link{index: index, name: name, address: address} }
	for what, tc := range map[string]struct {
		link link
		want device
		usb  bool
	}{
		"USB":       {on(5, "usb0", mac), device{true, "", "cdc_ether", "pci0000:00/0000:00:14.0/usb1/1-3"}, true},
		"USB modem": {on(6, "wwan0", ""), device{true, "wwan", "qmi_wwan", "pci0000:00/0000:00:14.0/usb1/1-4"}, true},
		"PCIe modem": {on(7, "wwan1", ""), device{true, "wwan", "iosm", "pci0000:00/0000:00:1d.0/0000:02:00.0"},
			false},
		"virtio": {on(2, "eth0", mac), device{true, "", "virtio_net", "pci0000:00/0000:00:03.0/virtio2"}, false},
		"SDIO Wi-Fi": {on(3, "wlan0", mac), device{true, "wlan", "brcmfmac",
			"platform/fe300000.mmcnr/mmc_host/mmc1/mmc1:0001/mmc1:0001:1"}, false},
		"no hardware":                         {on(8, "vmnet1", ""), device{known: true}, false},
		"another namespace's: index":          {on(4, "eth0", mac), device{}, false},
		"another namespace's: the same index": {on(2, "eth0", "02:00:00:00:00:01"), device{}, false},
		"not there":                           {on(9, "eth9", ""), device{}, false},
		"no name":                             {on(5, "../net/usb0", mac), device{}, false},
	} {
		if got := readDevice(root, tc.link); got != tc.want || onUSB(got.bus) != tc.usb {
			t.Errorf("%s: %+v, want %+v", what, got, tc.want)
		}
	}
	if got := readDevice(filepath.Join(root, "nothing"), on(5, "usb0", mac)); got != (device{}) {
		t.Errorf("no sysfs: %+v", got)
	}
}
