// Package dds writes the profiles that point Cyclone DDS and Fast DDS at the
// overlay's interface: only there, and with no message larger than a packet of
// it can carry.
package dds

import (
	"embed"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/fogplr/fogplr/internal/files"
)

//go:embed *.tmpl
var templates embed.FS

// Overlay is what the profiles depend on.
type Overlay struct {
	Interface string
	Addresses []netip.Addr // this node's own, at least one
	MTU       int          // of the interface, in bytes
}

// Files are where Write put the profiles. FastDDS is empty for an overlay that
// Fast DDS cannot use.
type Files struct {
	Cyclone string `json:"cyclonedds"`
	FastDDS string `json:"fastdds,omitempty"`
}

// family returns the addresses that DDS is to use: the IPv4 ones, or the IPv6
// ones when there are no others. Neither vendor uses both at once.
func (o Overlay) family() (addresses []netip.Addr, v6 bool) {
	for _, want6 := range []bool{false, true} {
		for _, a := range o.Addresses {
			if a.Is6() == want6 {
				addresses = append(addresses, a)
			}
		}
		if len(addresses) > 0 {
			return addresses, want6
		}
	}
	return nil, false
}

// message returns the largest UDP payload that fits into one packet, in bytes.
func (o Overlay) message() int {
	if _, v6 := o.family(); v6 {
		return o.MTU - headers6
	}
	return o.MTU - headers4
}

// Cyclone returns the configuration for Cyclone DDS 0.9 and later.
func (o Overlay) Cyclone() string {
	data := struct {
		Overlay
		Transport         string
		Message, Fragment int
	}{o, "udp", o.message(), (o.message() - fragmentHeaders) &^ 7}
	if _, v6 := o.family(); v6 {
		data.Transport = "udp6"
	}
	return render("cyclonedds.xml.tmpl", data)
}

// FastDDS returns the profiles for Fast DDS 2.6 and later, or nothing when the
// node has no IPv4 address: Fast DDS does not choose the interface for IPv6
// multicast (it sets IPV6_MULTICAST_IF to 0), so its discovery would leave by
// whatever uplink the kernel prefers, in clear.
func (o Overlay) FastDDS() string {
	addresses, v6 := o.family()
	if v6 {
		return ""
	}
	data := struct {
		Overlay
		Message, Segment int
	}{o, max(o.message(), minFastMessage), segment}
	data.Addresses = addresses
	return render("fastdds.xml.tmpl", data)
}

func render(name string, data any) string {
	var b strings.Builder
	if err := template.Must(template.ParseFS(templates, "*.tmpl")).ExecuteTemplate(&b, name, data); err != nil {
		panic("dds: " + err.Error()) // the templates are part of the program
	}
	return b.String()
}

// Write puts the profiles into dir, which it makes if need be, and returns
// their absolute paths. Programs that read them meanwhile see the old or the new
// ones.
func Write(dir string, o Overlay) (Files, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Files{}, fmt.Errorf("cannot write the DDS profiles: %w", err)
	}
	f := Files{Cyclone: filepath.Join(dir, "cyclonedds.xml")}
	err = os.MkdirAll(dir, 0o755)
	if err == nil {
		err = files.Replace(f.Cyclone, []byte(o.Cyclone()), 0o644)
	}
	if fast := o.FastDDS(); err == nil && fast != "" {
		f.FastDDS = filepath.Join(dir, "fastdds.xml")
		err = files.Replace(f.FastDDS, []byte(fast), 0o644)
	}
	if err != nil {
		return Files{}, fmt.Errorf("cannot write the DDS profiles: %w", err)
	}
	return f, nil
}
