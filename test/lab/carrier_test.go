package lab

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// What happens to a carrier's addresses and name, as a robot and a gateway see it.
func TestCarrierMovesAndIsRenamed(t *testing.T) {
	w, err := Test(t, "moves").Standard(Options{IPv6: true, Carriers: []CarrierOptions{{}}})
	must(t, err)
	c, robot := w.Robots[0].Carriers[0], w.Robots[0].Node
	reach := func(what string, family, from string, want bool) {
		t.Helper()
		to := w.Gateways[0].Address
		if family == "-6" {
			to = w.Gateways[0].Address6
		}
		limit := "1"
		if want { // IPv6 of a new interface sleeps at first
			limit = "10"
		}
		out, err := robot.Command(t.Context(), "ping", family, "-n", "-c", "1", "-i", "0.2", "-w", limit, to.String()).Output()
		if (err == nil) != want {
			t.Errorf("%s: ping %v: %v", what, to, err)
		}
		got, err := robot.Command(t.Context(), "ip", family, "route", "get", to.String()).Output()
		if want && (err != nil || !strings.Contains(got, "src "+from+" ")) {
			t.Errorf("%s: %s %v, want it from %s\n%s", what, got, err, from, out)
		}
	}
	reach("at first", "-4", "10.1.0.2", true)
	must(t, c.Unlease())
	reach("without a lease", "-4", "", false)
	must(t, c.Lease(netip.MustParsePrefix("10.1.0.9/24")))
	reach("with another lease", "-4", "10.1.0.9", true)
	must(t, c.Readdress6())
	reach("with another prefix", "-6", "2001:db8:1:1000::2", true)
	must(t, c.Readdress6())
	reach("with a third one", "-6", "2001:db8:1:2000::2", true)
	must(t, c.Rename("usb0"))
	if _, err := robot.Netlink().LinkByName("usb0"); err != nil || c.Interface != "usb0" {
		t.Errorf("renamed: %v, it is %s", err, c.Interface)
	}
	reach("renamed", "-4", "10.1.0.9", true)
	must(t, w.Detach(c))
	reach("pulled out", "-4", "", false)
	must(t, w.Attach(c, "wwan0"))
	reach("plugged in again", "-4", "10.1.0.9", true)
	if err := c.Renumber(); err == nil {
		t.Error("a carrier without a NAT was renumbered")
	}
}

func TestTranslatorIsRenumbered(t *testing.T) {
	c, robot, west, _, _ := natWorld(t, CarrierOptions{NAT: NAT{Kind: PortRestricted}})
	for i := range 3 {
		send(t, robot, westAt)
		host, _, err := net.SplitHostPort(from(t, west))
		if want := fmt.Sprintf("100.64.0.%d", 2+i); err != nil || host != want {
			t.Errorf("after %d changes it comes from %s, want %s: %v", i, host, want, err)
		}
		must(t, c.Renumber())
	}
	if err := c.Readdress6(); err == nil {
		t.Error("a carrier without IPv6 got another prefix")
	}
}
