package routing

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// pair is a robot and a gateway in one namespace, behind a VPN's rule, so that both
// overlays need rules as the carriers do.
type pair struct {
	t              *testing.T
	k              *fakeKernel
	dir            string
	robot, gateway TUN
}

func newPair(t *testing.T, gatewayOverlay string) *pair {
	v := modems()
	v.rpFilter["all"] = 1
	v.rule(100, 52, nil)
	for i, name := range []string{"plr0", "plr1"} {
		v.links = append(v.links, link{index: 7 + i, name: name, kind: "tun", pointToPoint: true, carrier: true})
	}
	p := &pair{t: t, k: newFake(v), dir: t.TempDir(), robot: overlayTUN(), gateway: overlayTUN()}
	p.robot.Owner, p.gateway.Owner = "robot stretch", "gateway west"
	p.gateway.Name, p.gateway.Addresses = "plr1", []netip.Prefix{pfx(gatewayOverlay)}
	return p
}

// start starts one of the two.
func (p *pair) start(u TUN) *Manager {
	p.t.Helper()
	m, err := newManager(p.k, p.dir, u.Name, slog.New(slog.DiscardHandler))
	if err == nil {
		err = m.SetupTUN(u)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	var wants []Want
	if u.Name == p.robot.Name {
		wants = modemWants()
	}
	apply(p.t, m, wants)
	return m
}

func (p *pair) cleanup(u TUN) {
	p.t.Helper()
	if _, err := cleanup(p.k, p.dir, u.Name, false, slog.New(slog.DiscardHandler)); err != nil {
		p.t.Fatal(err)
	}
}

// dies has nobody hold the device any more.
func (p *pair) dies(u TUN) { p.k.v.modify(u.Name, func(l *link) { l.carrier = false }) }

// has counts what there is for the robot's carriers, and for the overlays.
func (p *pair) has(when string, carriers, robot, gateway bool) {
	p.t.Helper()
	inTables, loose := 0, p.k.v.rpFilter["usb1"] == rpLoose
	for _, r := range p.k.v.rules {
		if r.protocol == Protocol && isCarrierTable(r.table) {
			inTables++
		}
	}
	for _, r := range p.k.v.routes {
		if r.protocol == Protocol && isCarrierTable(r.table) {
			inTables++
		}
	}
	// Three carriers, each with two rules and two routes.
	if carriers != (inTables == 12) || carriers != loose || !carriers && inTables > 0 {
		p.t.Errorf("%s: %d rules and routes for carriers, loose=%v, want any: %v", when, inTables, loose, carriers)
	}
	for _, o := range []struct {
		tun  TUN
		want bool
	}{{p.robot, robot}, {p.gateway, gateway}} {
		got := slices.ContainsFunc(p.k.v.rules, func(r rule) bool {
			return r.protocol == Protocol && r.table == unix.RT_TABLE_MAIN && r.dst == o.tun.Addresses[0].Masked()
		})
		if got != o.want {
			p.t.Errorf("%s: a rule for the overlay of %s: %v, want %v", when, o.tun.Owner, got, o.want)
		}
	}
}

// A robot and a gateway in one namespace: start, end and clean-up of one take
// nothing from the other while that runs, and what it left once it does not.
func TestRobotBesideGateway(t *testing.T) {
	p := newPair(t, "10.78.0.11/16")
	p.start(p.robot)
	p.has("robot", true, true, false)
	gateway := p.start(p.gateway)
	p.has("both", true, true, true)
	if err := gateway.Close(); err != nil {
		t.Fatal(err)
	}
	p.has("gateway stopped", true, true, false)

	p.start(p.gateway) // and killed
	p.dies(p.gateway)
	p.cleanup(p.gateway)
	p.has("gateway killed and cleaned up", true, true, false)

	p.k.v.modify("plr1", func(l *link) { l.carrier = true })
	p.start(p.gateway)
	robot := p.start(p.robot) // the first one was killed
	p.has("robot again", true, true, true)
	if err := robot.Close(); err != nil {
		t.Fatal(err)
	}
	p.has("robot stopped", false, false, true)

	p.start(p.robot) // and killed
	p.dies(p.robot)
	p.cleanup(p.robot)
	p.has("robot killed and cleaned up", false, false, true)

	p.start(p.robot) // and killed
	p.start(p.gateway)
	p.k.v.rpFilter["usb1"], p.k.v.rpFilter["usb2"] = 0, 0 // which the next robot takes over
	p.has("robot killed, gateway again", false, false, true)
}

// Of one overlay, the rule is needed by both.
func TestRobotBesideGatewayOfItsOverlay(t *testing.T) {
	p := newPair(t, "10.77.0.11/16")
	robot, gateway := p.start(p.robot), p.start(p.gateway)
	if err := gateway.Close(); err != nil {
		t.Fatal(err)
	}
	p.dies(p.gateway)
	p.has("gateway stopped", true, true, true)
	if err := robot.Close(); err != nil {
		t.Fatal(err)
	}
	p.has("both stopped", false, false, false)
}
