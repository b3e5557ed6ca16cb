package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/test/lab"
)

// login is what a captive portal shows.
const login = "Please log in."

// A Wi-Fi looks connected, but a captive portal answers all its DNS and HTTP, and
// nothing else passes. Status says so of that carrier. The other one works from the
// start: the lies do not reach it, and its questions do not go by the Wi-Fi. When
// somebody logs in the Wi-Fi is used, without any event on the robot.
func TestCaptivePortal(t *testing.T) {
	t.Parallel()
	// Both carriers ask one public resolver, which the portal impersonates.
	resolver := netip.MustParseAddr("192.0.2.253")
	var honest, portal *lab.Nameserver
	w := build(t, options{Options: lab.Options{Carriers: []lab.CarrierOptions{near20, near20}}, Prepare: func(w *world) {
		must(t, w.Inet.AddAddress("lo", resolver.String()+"/32"))
		honest = nameserver(t, w, resolver)
		honest.Set("ipv4only.arpa", netip.MustParseAddr("192.0.0.170"), netip.MustParseAddr("192.0.0.171"))
		for slot := range w.robots[0].lab.Carriers {
			asks(t, w.robots[0], slot, resolver)
		}
		for _, g := range w.gateways {
			honest.Set(g.Name+".fleet.example", g.lab.Address)
			reachByName(t, w.robots[0], g, g.Name+".fleet.example")
		}
		portal = closePortal(t, w, upstream(0, 1), w.robots[0].lab.Carriers[1].Router)
	}})
	r, west := w.robots[0], w.gateways[0]
	cell, wifi := r.lab.Carriers[0], r.lab.Carriers[1]
	if page := browse(t, r, wifi.Interface, west.lab.Address); page != login {
		t.Fatalf("behind the portal: %q", page)
	}
	onCell, stopCell := capture(t, w.Inet, upstream(0, 0), w.file("cell"))
	onWiFi, stopWiFi := capture(t, w.Inet, upstream(0, 1), w.file("wifi"))
	began := time.Now()
	w.startAll(t)
	for _, g := range w.gateways {
		goesTo(t, r, g, 0, g.lab.Address)
	}
	within(t, "up by the other carrier", time.Since(began), 2*time.Second+busy)
	flow := startTraffic(t, r.end(), west.end())

	within(t, "the portal named", eventually(t, "captive", func() error {
		s := status(t, r.Member)
		if !carrierOf(t, s, 1).Captive {
			return fmt.Errorf("%+v", carrierOf(t, s, 1))
		}
		return warns(s, "The network of "+wifi.Interface, "captive portal", "Log in")
	}), 6*time.Second+busy)
	out, err := r.CLI(lasting(t), "status", "--socket", r.Socket())
	must(t, err)
	must(t, mentions(out, "captive\n"))
	if carrierOf(t, status(t, r.Member), 0).Captive {
		t.Error("the other carrier is called captive, too")
	}
	askedBy(t, honest, cell.Address.Addr())
	askedBy(t, portal, wifi.Address.Addr())
	for _, p := range r.paths(t, 0) {
		if strings.HasPrefix(p.Endpoint, wifi.Router.String()) {
			t.Errorf("the portal's lie is in use on %s: %+v", cell.Interface, p)
		}
	}

	must(t, w.Inet.NFT("delete table inet portal"))
	began = time.Now()
	for _, g := range w.gateways {
		goesTo(t, r, g, 1, g.lab.Address)
	}
	// The names are asked for again 2, 4, 8 and 16 s after each other.
	within(t, "up after the login", time.Since(began), 16*time.Second+busy)
	s := status(t, r.Member)
	if carrierOf(t, s, 1).Captive || warns(s, wifi.Interface) == nil {
		t.Errorf("still said to be captive: %v", s.Warnings)
	}
	flow.halt(t).complete(t, "beside a captive portal")
	for slot := range r.lab.Carriers {
		neverDied(t, r, west, slot)
	}
	stopCell()
	stopWiFi()
	for file, c := range map[string]*lab.Carrier{onCell: cell, onWiFi: wifi} {
		for from, n := range sources(t, file, portDNS, time.Time{}) {
			if from != c.Address.Addr() || n == 0 {
				t.Errorf("%d questions from %v went by %s", n, from, c.Interface)
			}
		}
	}
}

// closePortal makes the network behind the router's port a captive portal at one
// of its addresses, until its table is deleted. It returns the DNS server that
// answers everything with that address.
func closePortal(t *testing.T, w *world, port string, at netip.Addr) *lab.Nameserver {
	t.Helper()
	lies := nameserver(t, w, at)
	lies.Lie(at)
	var pages net.Listener
	must(t, w.Inet.Do(func() (err error) {
		pages, err = net.Listen("tcp", netip.AddrPortFrom(at, 80).String())
		return err
	}))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, login) }), ReadHeaderTimeout: patience}
	go func() { _ = server.Serve(pages) }()
	t.Cleanup(func() { _ = server.Close() })
	must(t, w.Inet.NFT(fmt.Sprintf(`table inet portal {
	chain hijack {
		type nat hook prerouting priority dstnat
		iifname "%[1]s" meta l4proto { tcp, udp } th dport 53 dnat ip to %[2]v
		iifname "%[1]s" tcp dport 80 dnat ip to %[2]v
	}
	chain forward {
		type filter hook forward priority 0
		iifname "%[1]s" drop
	}
}`, port, at)))
	return lies
}

// browse gets a page through one of a robot's interfaces.
func browse(t testing.TB, r *robot, iface string, from netip.Addr) string {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
		d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
			if e := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), iface) }); e != nil {
				return e
			}
			return err
		}}
		err = r.lab.Do(func() (err error) { c, err = d.DialContext(ctx, network, address); return err })
		return c, err
	}}}
	resp, err := client.Get("http://" + from.String() + "/")
	must(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	must(t, err)
	return string(page)
}
