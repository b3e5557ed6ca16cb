package resolve

import (
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Servers are the DNS servers of one carrier.
type Servers struct {
	List []netip.AddrPort
	// Source says who told, for status: "systemd-networkd".
	Source string
	// Shared says that they are the whole machine's, so that some may be of
	// another carrier's network.
	Shared bool
}

// System reads which DNS servers the network managers of a machine have learnt.
// What it does not find or cannot read is not there.
type System struct{ root fs.FS }

// NewSystem looks below root, which is os.DirFS("/") in earnest.
func NewSystem(root fs.FS) System { return System{root} }

// ThisSystem looks at this machine.
func ThisSystem() System { return NewSystem(os.DirFS("/")) }

// Servers returns the DNS servers of the interface with this index and name. The
// first of these that knows any decides:
//
//   - systemd-resolved, which is told by NetworkManager and by `resolvectl dns`
//     (/run/systemd/resolve/netif/INDEX)
//   - systemd-networkd (/run/systemd/netif/links/INDEX, leases/INDEX)
//   - NetworkManager's lease (/run/NetworkManager/devices/INDEX); it keeps what
//     the user typed, a modem told, or an IPv6 router announced to itself
//   - dhcpcd and resolvconf, which keep a resolv.conf for each interface and
//     protocol
//   - dhclient's leases (/var/lib/dhcp, /var/lib/dhclient)
//   - the resolv.conf of all interfaces, or, where that leads to this machine
//     itself, the one behind it
//
// Servers at loopback addresses are left out: they answer for the whole machine.
// So are DNS over TLS and servers of another interface's link.
func (s System) Servers(index int, name string) Servers {
	zone := linkZone{index, name}
	if index > 0 {
		n := strconv.Itoa(index)
		for _, f := range []struct {
			file, source string
			keys         []string
		}{
			{"run/systemd/resolve/netif/" + n, "systemd-resolved", []string{"SERVERS="}},
			{"run/systemd/netif/links/" + n, "systemd-networkd", []string{"DNS="}},
			{"run/systemd/netif/leases/" + n, "systemd-networkd", []string{"DNS="}},
			{"run/NetworkManager/devices/" + n, "NetworkManager", []string{"dhcp4.domain_name_servers=", "dhcp6.dhcp6_name_servers="}},
		} {
			if list := zone.own(valuesOf(s.read(f.file), f.keys)); len(list) > 0 {
				return Servers{List: list, Source: f.source}
			}
		}
	}
	if name != "" {
		for _, dir := range []struct{ path, source string }{
			{"run/dhcpcd/hook-state/resolv.conf", "dhcpcd"},
			{"run/dhcpcd/resolv.conf", "dhcpcd"},
			{"run/resolvconf/interface", "resolvconf"},
			{"run/resolvconf/interfaces", "resolvconf"},
		} {
			if list := zone.own(s.records(dir.path, name)); len(list) > 0 {
				return Servers{List: list, Source: dir.source}
			}
		}
		if list := zone.own(s.leases(name)); len(list) > 0 {
			return Servers{List: list, Source: "dhclient"}
		}
	}
	for _, file := range []string{"etc/resolv.conf", "run/systemd/resolve/resolv.conf", "run/NetworkManager/no-stub-resolv.conf"} {
		if list := zone.own(nameservers(s.read(file))); len(list) > 0 {
			return Servers{List: list, Source: "/" + file, Shared: true}
		}
	}
	return Servers{}
}

// read returns the beginning of a file, nothing if there is none.
func (s System) read(file string) string {
	f, err := s.root.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(f, managerFile))
	return string(text)
}

// records returns the name servers of the resolv.conf records of an interface in
// a folder: files like eth0.dhcp or eth0.ra.
func (s System) records(dir, name string) (found []string) {
	entries, _ := fs.ReadDir(s.root, dir)
	for _, e := range entries[:min(len(entries), managerFiles)] {
		rest, ok := strings.CutPrefix(e.Name(), name)
		if !ok || rest != "" && !strings.HasPrefix(rest, ".") || ofVLAN(rest) {
			continue
		}
		found = append(found, nameservers(s.read(dir+"/"+e.Name()))...)
	}
	return found
}

// ofVLAN reports whether a record's name goes on like that of a VLAN: ".7.dhcp".
func ofVLAN(rest string) bool {
	number, _, _ := strings.Cut(strings.TrimPrefix(rest, "."), ".")
	_, err := strconv.ParseUint(number, 10, 16)
	return err == nil
}

// leases returns the name servers of the last lease that dhclient got for an
// interface.
func (s System) leases(name string) (found []string) {
	for _, dir := range []string{"var/lib/dhcp", "var/lib/dhclient"} {
		for _, file := range []string{"dhclient." + name + ".leases", "dhclient-" + name + ".leases", "dhclient.leases", "dhclient6." + name + ".leases"} {
			found = append(found, lastLease(s.read(dir+"/"+file), name)...)
		}
	}
	return found
}

// valuesOf returns the words after the keys, which end in "=", each on a line of
// its own, as in the files of systemd and NetworkManager.
func valuesOf(text string, keys []string) (found []string) {
	for line := range strings.Lines(text) {
		for _, key := range keys {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), key); ok {
				found = append(found, strings.Fields(value)...)
			}
		}
	}
	return found
}

// nameservers returns the addresses of a resolv.conf(5).
func nameservers(text string) (found []string) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "nameserver" {
			found = append(found, f[1])
		}
	}
	return found
}

// lastLease returns the name servers of an interface's last lease in a
// dhclient.leases(5), IPv4 or IPv6. Dates do not count: the clock may be wrong,
// and a lease that ended tells no worse than nothing.
func lastLease(text, name string) (found []string) {
	var servers []string
	ours := false
	for line := range strings.Lines(text) {
		words := strings.Fields(strings.NewReplacer(",", " ", ";", " ").Replace(line))
		switch {
		case len(words) == 0:
		case (words[0] == "lease" || words[0] == "lease6") && words[len(words)-1] == "{":
			servers, ours = nil, false
		case words[0] == "interface" && len(words) == 2:
			ours = strings.Trim(words[1], `"`) == name
		case len(words) > 2 && words[0] == "option" && (words[1] == "domain-name-servers" || words[1] == "dhcp6.name-servers"):
			servers = append(servers, words[2:]...)
		case line[0] == '}' && ours:
			found = servers
		}
	}
	return found
}

// linkZone is the interface whose servers are wanted.
type linkZone struct {
	index int
	name  string
}

// own reads servers as the managers write them and keeps those that the interface
// can ask, without repetitions. Link-local ones get its zone.
func (z linkZone) own(texts []string) []netip.AddrPort {
	var out []netip.AddrPort
	for _, s := range texts {
		ap, zone, err := parseServer(s)
		a := ap.Addr()
		if err != nil || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || ap.Port() == portTLS {
			continue
		}
		if zone != "" && zone != z.name && zone != strconv.Itoa(z.index) {
			continue
		}
		if a.Is6() && a.IsLinkLocalUnicast() {
			a = a.WithZone(z.name)
		}
		if ap = netip.AddrPortFrom(a, ap.Port()); !slices.Contains(out, ap) {
			out = append(out, ap)
		}
	}
	return out
}

const (
	portDNS = 53
	portTLS = 853 // RFC 7858
)

// parseServer reads a DNS server as systemd writes it: ADDRESS, ADDRESS:PORT or
// [ADDRESS]:PORT, then perhaps %INTERFACE, by name or index, and #NAME
// (resolved.conf(5)).
func parseServer(s string) (server netip.AddrPort, zone string, err error) {
	text, _, _ := strings.Cut(s, "#")
	text, zone, _ = strings.Cut(text, "%")
	a, err := netip.ParseAddr(text)
	if err == nil {
		return netip.AddrPortFrom(a.Unmap(), portDNS), zone, nil
	}
	ap, err := netip.ParseAddrPort(text)
	if err != nil || ap.Port() == 0 {
		return netip.AddrPort{}, "", fmt.Errorf("%q is no DNS server", s)
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), zone, nil
}
