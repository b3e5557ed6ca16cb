package daemon

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/fogplr/fogplr/internal/carriers"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

// place is where candidates of a gateway hold: one carrier.
type place struct {
	slot    int
	gateway string
}

// keep tells the tunnel what has become of its carriers, and the kernel what they
// need. It wants to be called again after the time that it returns.
func (d *robot) keep() (again time.Duration, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	tun := d.setupTUN()
	changed := d.reconfigure()
	d.ask()
	var want []routing.Want
	for _, c := range d.set.Carriers {
		if problem := d.missing(c.Slot); problem != "" {
			d.tunnel.SetUplink(c.Slot, tunnel.Uplink{Interface: c.Interface, Problem: problem})
			continue
		}
		want = append(want, routing.Want{Interface: c.Interface, Slot: c.Slot, Endpoints: d.endpoints(c.Slot)})
	}
	uplinks, err := d.net.Apply(want)
	for _, c := range uplinks {
		d.tunnel.SetUplink(c.Slot, tunnel.Uplink{Interface: c.Interface, Index: c.Index, Reached: c.Reached,
			Network: d.network(c.Index), Problem: cmp.Or(c.Problem, d.mustRest(c.Slot)), Warning: c.Warning})
	}
	if d.leaving > 0 {
		again = leaveEvery
	}
	return again, errors.Join(changed, tun, err)
}

// gone says whether there is no interface for a carrier now.
func (d *robot) gone(slot int) bool {
	i := d.chosenFor(slot)
	return i >= 0 && d.chosen[i].Index == 0
}

// missing says that there is no interface for a carrier, if that is so.
func (d *robot) missing(slot int) string {
	if d.gone(slot) {
		return d.chosen[d.chosenFor(slot)].Problem
	}
	return ""
}

// mustRest says why a carrier must not be used because of its cap, if that is so.
func (d *robot) mustRest(slot int) string {
	if i := d.chosenFor(slot); i >= 0 {
		return d.resting(d.chosen[i])
	}
	return ""
}

func (d *robot) chosenFor(slot int) int {
	return slices.IndexFunc(d.chosen, func(c carriers.Carrier) bool { return c.Slot == slot })
}

// asked takes what questions for names have moved by a carrier.
func (d *robot) asked(slot, bytes int) { d.tunnel.Spend(slot, uint64(bytes)) }

// network returns what tells one network that an interface is in from another:
// its addresses.
func (d *robot) network(index int) (all []netip.Prefix) {
	for _, i := range d.interfaces {
		if i.Index == index {
			all = slices.Clone(i.Addresses)
		}
	}
	slices.SortFunc(all, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return all
}

// learnt takes where a carrier may find a gateway.
func (d *robot) learnt(slot int, gateway string, candidates []netip.AddrPort) {
	d.mu.Lock()
	d.found[place{slot, gateway}] = candidates
	d.mu.Unlock()
	d.tunnel.SetEndpoints(slot, gateway, candidates)
	d.kick()
}

// failsAfter is how long a path may take to come up before its gateway's name is
// looked up again: as long as one that was up may be silent.
const failsAfter = 3 * time.Second

// fails says whether where a path's gateway is should be looked up again.
func fails(p tunnel.PathState, now time.Time) bool {
	return !p.Up && (p.Died || now.Sub(p.Since) >= failsAfter)
}

// watchPaths tells the resolver which paths answer and which do not. One that does
// not may have a carrier that comes back, or a carrier may come: neither is an event
// here, so it looks again until all is well.
func (d *robot) watchPaths(ctx context.Context) {
	for {
		var again <-chan time.Time
		if !d.tellPaths(d.tunnel.Paths(), time.Now()) {
			again = time.After(failsAfter)
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-d.tunnel.Changed():
		}
	}
}

// tellPaths tells the resolver of paths, and reports whether there are any and all
// are up.
func (d *robot) tellPaths(paths []tunnel.PathState, now time.Time) (well bool) {
	well = len(paths) > 0
	for _, p := range paths {
		well = well && p.Up
		if p.Up {
			d.names.Answers(p.Slot, p.Gateway, p.Endpoint)
		} else if fails(p, now) {
			d.names.Failing(p.Slot, p.Gateway)
		}
	}
	return well
}
