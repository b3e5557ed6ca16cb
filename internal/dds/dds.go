// Package dds writes the profiles that point Cyclone DDS and Fast DDS at the
// overlay's interface: only there, and with no message larger than a packet of
// it can carry.
package dds

import (
	"embed"
	"errors"
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

// Files are where Write put the profiles.
type Files struct {
	Cyclone string `json:"cyclonedds"`
	FastDDS string `json:"fastdds"`
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

// FastDDS returns the profiles for Fast DDS 2.6 and later.
func (o Overlay) FastDDS() string {
	data := struct {
		Overlay
		Type, Kind, Multicast string
		Message, Segment      int
	}{o, "UDPv4", "udpv4", "239.255.0.1", max(o.message(), minFastMessage), segment}
	var v6 bool
	if data.Addresses, v6 = o.family(); v6 {
		data.Type, data.Kind, data.Multicast = "UDPv6", "udpv6", "ff1e::ffff:efff:1"
	}
	return render("fastdds.xml.tmpl", data)
}

func render(name string, data any) string {
	var b strings.Builder
	if err := template.Must(template.ParseFS(templates, "*.tmpl")).ExecuteTemplate(&b, name, data); err != nil {
		panic("dds: " + err.Error()) // the templates are part of the program
	}
	return b.String()
}

// Write puts both profiles into dir, which it makes if need be, and returns
// their absolute paths. Programs that read them meanwhile see the old or the new
// ones.
func Write(dir string, o Overlay) (Files, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Files{}, fmt.Errorf("cannot write the DDS profiles: %w", err)
	}
	f := Files{Cyclone: filepath.Join(dir, "cyclonedds.xml"), FastDDS: filepath.Join(dir, "fastdds.xml")}
	err = os.MkdirAll(dir, 0o755)
	if err == nil {
		err = errors.Join(files.Replace(f.Cyclone, []byte(o.Cyclone()), 0o644), files.Replace(f.FastDDS, []byte(o.FastDDS()), 0o644))
	}
	if err != nil {
		return Files{}, fmt.Errorf("cannot write the DDS profiles: %w", err)
	}
	return f, nil
}
