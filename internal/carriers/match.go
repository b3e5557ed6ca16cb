package carriers

import (
	"slices"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/slots"
	"github.com/fogplr/fogplr/routing"
)

// matches says whether a selector picks an interface.
func matches(s config.Selector, i *routing.Interface) bool {
	switch s.By {
	case config.ByName:
		return s.Matches(i.Name)
	case config.ByMAC:
		return s.Matches(mac(*i))
	case config.ByDriver:
		return s.Matches(i.Driver)
	case config.ByBus:
		return s.Matches(i.Bus)
	case config.ByKind:
		return s.Matches(i.Kind)
	case config.ByCIDR:
		for _, a := range i.Addresses {
			if s.Prefix.Contains(a.Addr()) {
				return true
			}
		}
	}
	return false
}

// denied returns the selector that keeps an interface out.
func (r *round) denied(i *routing.Interface) (s config.Selector, ok bool) {
	for _, s := range r.cfg.Discovery.Deny {
		if matches(s, i) {
			return s, true
		}
	}
	return s, false
}

// barred says whether an interface cannot be b's though all its selectors may
// match.
func (r *round) barred(b *config.Carrier, i *routing.Interface) bool {
	if b.Outright() != "" {
		return false
	}
	_, denied := r.denied(i)
	return denied || i.Kind == "loopback"
}

// takes says whether b takes an interface that no earlier one takes.
func (r *round) takes(b *config.Carrier, i *routing.Interface) bool {
	return !r.barred(b, i) && !slices.ContainsFunc(b.Selectors, func(s config.Selector) bool { return !matches(s, i) })
}

// byBlocks chooses what the [[carrier]] say.
func (r *round) byBlocks() {
	told := map[[2]int]bool{} // which pairs of blocks
	for _, i := range r.found {
		first := -1
		for n := range r.cfg.Carriers {
			b := &r.cfg.Carriers[n]
			switch {
			case !r.takes(b, &i):
			case first < 0:
				first = n
				r.add(i, n, config.Selector{})
			case !told[[2]int{first, n}]:
				told[[2]int{first, n}] = true
				r.note("Both %s and %s match %s: the first one in the file has it.", title(&r.cfg.Carriers[first]), title(b), i.Name)
			}
		}
	}
	r.followRenamed()
	for n := range r.cfg.Carriers {
		if name := r.cfg.Carriers[n].Name(); name != "" && !r.filled(n) {
			r.chosen = append(r.chosen, candidate{block: n, held: slots.None, name: name})
		}
	}
}

// remark notes what is odd about the interfaces that the [[carrier]] take.
func (r *round) remark() {
	for n := range r.chosen {
		k := &r.chosen[n]
		if k.block == discovered || k.i.Index == 0 {
			continue
		}
		b := &r.cfg.Carriers[k.block]
		switch s, denied := r.denied(&k.i); {
		case denied:
			r.note("%s is a carrier although deny has %q, since %s names it.", k.i.Name, s.String(), title(b))
		case k.i.Excluded != "" && b.Outright() == "":
			r.note("%s is a carrier because of %s. Discovery would leave it out (%s). To do so here, name it in deny of [discovery].",
				k.i.Name, title(b), k.i.Excluded)
		}
	}
}

// filled says whether a block has an interface.
func (r *round) filled(block int) bool {
	return slices.ContainsFunc(r.chosen, func(k candidate) bool { return k.block == block })
}

// followRenamed lets interfaces that were chosen stay carriers under another name.
func (r *round) followRenamed() {
	for _, i := range r.found {
		was := r.byIndex(i.Index)
		if was == nil || was.block == "" || r.uses(i.Index) {
			continue
		}
		n := slices.IndexFunc(r.cfg.Carriers, func(b config.Carrier) bool { return b.Title() == was.block })
		if n < 0 || r.barred(&r.cfg.Carriers[n], &i) || r.cfg.Carriers[n].Name() != "" && r.filled(n) {
			continue
		}
		r.add(i, n, config.Selector{})
		r.note("%s does not match %s any more. It stays a carrier until fogplr starts again.", i.Name, title(&r.cfg.Carriers[n]))
	}
}

// eligible says whether discovery may take an interface, and which allow lets it
// in. One that let it in before still does, though its address may have gone.
func (r *round) eligible(i *routing.Interface, before config.Selector) (allow config.Selector, ok bool) {
	if _, denied := r.denied(i); denied || i.Kind == "loopback" {
		return allow, false
	}
	if i.Excluded == "" {
		return allow, true
	}
	for _, s := range r.cfg.Discovery.Allow {
		if s == before || matches(s, i) {
			return s, true
		}
	}
	return allow, false
}

// discover chooses the interfaces that lead somewhere, and those that did so
// before.
func (r *round) discover() {
	var idle []candidate // no uplinks, unless they were ones that vanished
	for _, i := range r.found {
		was := r.byIndex(i.Index)
		if was == nil {
			was = new(known)
		}
		allow, ok := r.eligible(&i, was.allow)
		switch {
		case !ok:
		case i.Leads || was.last.Index != 0:
			r.add(i, discovered, allow)
		default:
			idle = append(idle, candidate{i: i, block: discovered, held: slots.None, allow: allow})
		}
	}
	var wants []slots.Want
	for _, k := range append(slices.Clone(r.chosen), idle...) {
		wants = append(wants, r.want(&k))
	}
	found := r.book.Find(wants)[len(r.chosen):]
	for n, k := range idle {
		if slices.ContainsFunc(r.before, func(b known) bool { return b.slot == found[n] }) {
			r.chosen = append(r.chosen, k)
		}
	}
}
