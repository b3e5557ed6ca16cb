package routing

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestPace: whatever the times of asking, no stretch has more rounds than the
// burst and one each restoreEvery, no wait is longer than that, and after it the
// round is allowed.
func TestPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pace
		now := time.Unix(1e9, 0)
		var rounds []time.Time
		for range 200 {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Millisecond, settleTime, 60 * time.Millisecond,
				restoreEvery, 10 * restoreEvery}).Draw(t, "pause"))
			open := p.open
			wait := p.wait(now)
			if wait < 0 || wait > restoreEvery {
				t.Fatalf("wait %s", wait)
			}
			if wait > 0 {
				later := p
				if left := later.wait(now.Add(wait)); left != 0 {
					t.Fatalf("told to wait %s, then %s more", wait, left)
				}
			} else if p.open != open {
				rounds = append(rounds, now)
			}
		}
		for i := range rounds {
			for j := i; j < len(rounds); j++ {
				if n, most := j-i+1, restoreBurst+int(rounds[j].Sub(rounds[i])/restoreEvery); n > most {
					t.Fatalf("%d rounds in %s", n, rounds[j].Sub(rounds[i]))
				}
			}
		}
	})
}

// TestRestored: each rule and route that somebody removes is put back and
// counted, and nothing else is.
func TestRestored(t *testing.T) {
	v := modems()
	v.rpFilter["all"] = 2
	v.links = append(v.links, link{index: 7, name: "plr0", kind: "tun", up: true, multicast: true})
	v.rule(100, 52, nil)
	k := newFake(v)
	m, _ := manage(t, k)
	now := time.Unix(1e9, 0)
	m.keeper.now = func() time.Time { return now }
	follow := func() {
		t.Helper()
		now = now.Add(restoreEvery)
		if err := m.SetupTUN(overlayTUN()); err != nil {
			t.Fatal(err)
		}
		apply(t, m, modemWants())
	}
	follow()
	follow()
	if n := m.Restored(); n != 0 {
		t.Fatalf("%d restored, nothing was removed", n)
	}
	full, _ := k.view(nil)
	removed := uint64(0)
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		removed++
		follow()
		same(t, full, &k.v)
		if n := m.Restored(); n != removed {
			t.Fatalf("%s: %d restored, %d removed", what, n, removed)
		}
	}
	for _, r := range full.rules {
		if r.protocol == Protocol {
			check(r.String(), k.delRule(r))
		}
	}
	for _, r := range full.routes {
		if r.protocol == Protocol || r == connectedRoute(7, overlayTUN().Addresses[0]) {
			check(r.line(""), k.delRoute(r))
		}
	}
	changed := slices.IndexFunc(k.v.routes, func(r route) bool { return r.table == TableBase && r.gateway.IsValid() })
	k.v.routes[changed].gateway = addr("192.168.8.77")
	check("a gateway that somebody changed", nil)
	if removed < 12 {
		t.Errorf("only %d cases", removed)
	}

	// What fogplr itself changes is no removal.
	for i, r := range k.v.routes {
		if r.table >= 300 && r.table < 310 {
			k.v.routes[i].gateway = addr("192.168.8.254")
		}
	}
	follow()
	k.v.modify("usb1", func(l *link) { l.up = false })
	k.v.routes = slices.DeleteFunc(k.v.routes, func(r route) bool { return r.oif == 3 })
	follow()
	k.v.modify("usb1", func(l *link) { l.up = true })
	v.route(301, "default", "192.168.8.1", 3, 0)
	k.v.routes = append(k.v.routes, v.routes[len(v.routes)-1])
	follow()
	apply(t, m, modemWants()[:1])
	apply(t, m, modemWants())
	if n := m.Restored(); n != removed {
		t.Errorf("%d restored, %d removed", n, removed)
	}
}

// TestQuarrel: a program removes a rule and a route as soon as they are back. It
// does not get fogplr to spin, the user reads of it once, and when it stops,
// everything is in place and the warning goes.
func TestQuarrel(t *testing.T) {
	bubble(t, func(t *testing.T, k *fakeKernel, m *Manager, kicks <-chan struct{}, out *strings.Builder) {
		k.v = modems()
		notify := func() {
			go func() { k.events.messages <- nil }() // as the kernel, which waits for nobody
		}
		applies := 0
		follow := func() {
			writes := k.writes
			apply(t, m, modemWants())
			applies++
			if k.writes != writes {
				notify()
			}
		}
		follow()
		full, _ := k.view(nil)
		fight := time.Now()
		const length = 20 * time.Second
		for time.Since(fight) < length {
			for _, r := range slices.Clone(k.v.rules) {
				if r.protocol == Protocol && r.oif == "usb1" {
					k.v.rules = slices.DeleteFunc(k.v.rules, func(o rule) bool { return o == r })
					notify()
				}
			}
			k.v.routes = slices.DeleteFunc(k.v.routes, func(r route) bool { return r.table == 15702 && r.gateway.IsValid() })
			kicked(t, kicks)
			follow()
		}
		most := restoreBurst + int(length/restoreEvery)
		if n := int(m.Restored()); n > 2*most || n < 2*most*8/10 {
			t.Errorf("%d restored in %s", n, length)
		}
		if applies > 4*most {
			t.Errorf("looked %d times", applies)
		}
		if w := m.Warnings(); len(w) != 1 || !strings.Contains(w[0], " dev usb") || !strings.Contains(w[0], "ManageForeign") {
			t.Errorf("warnings %q", w)
		}
		for stopped := time.Now(); time.Since(stopped) < time.Second; {
			select {
			case <-kicks:
				follow()
			case <-time.After(settleTime):
			}
		}
		same(t, full, &k.v)
		for len(m.Warnings()) > 0 && time.Since(fight) < length+10*quarrelMemory {
			<-kicks // by the poll
			follow()
		}
		if d := time.Since(fight) - length; d > quarrelMemory+2*pollInterval {
			t.Errorf("warning gone after %s", d)
		}
		if n := strings.Count(out.String(), "level=WARN"); n != 1 {
			t.Errorf("%d warnings in the log", n)
		}
		if n := strings.Count(out.String(), "put back"); n > 2*(restoreBurst+2) {
			t.Errorf("%d lines in the log", n)
		}
	})
}

// TestOneGone: in any network, whichever one rule or route of ours is removed,
// the next Apply makes it what it was.
func TestOneGone(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		k := newFake(drawView(t))
		m, err := newManager(k, fmt.Sprintf("%s/%p", base, k), "plr0", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1e9, 0)
		m.keeper.now = func() time.Time { now = now.Add(restoreEvery); return now }
		wants := drawWants(t)
		if _, err := m.Apply(wants); err != nil {
			t.Fatal(err)
		}
		full, _ := k.view(nil)
		removed := uint64(0)
		check := func(what fmt.Stringer, err error) {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Apply(wants); err != nil {
				t.Fatal(err)
			}
			removed++
			if d := difference(full, &k.v); d != "" || m.Restored() != removed {
				t.Fatalf("after %s: %s, %d of %d restored", what, d, m.Restored(), removed)
			}
		}
		for _, r := range full.rules {
			if r.protocol == Protocol {
				check(op{verb: delRule, rule: r}, k.delRule(r))
			}
		}
		for _, r := range full.routes {
			if r.protocol == Protocol {
				check(op{verb: delRoute, route: r}, k.delRoute(r))
			}
		}
	})
}

// difference names a rule or route that only one of the views has.
func difference(a, b *view) string {
	for _, side := range []struct{ a, b *view }{{a, b}, {b, a}} {
		for _, r := range side.a.rules {
			if !slices.Contains(side.b.rules, r) {
				return r.String()
			}
		}
		for _, r := range side.a.routes {
			if !slices.Contains(side.b.routes, r) {
				return r.line("")
			}
		}
	}
	return ""
}
