package carriers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/slots"
	"github.com/fogplr/fogplr/routing"
)

// discovered is the block of a carrier without [[carrier]].
const discovered = -1

// candidate is a carrier to be.
type candidate struct {
	i     routing.Interface // Index 0 when it is not there
	block int               // index of its [[carrier]]
	held  int               // its slot, if it certainly is a known one, else slots.None
	name  string            // of a [[carrier]] that names it, else empty
	allow config.Selector
	gone  int // as of known
}

// round is one choice in the making.
type round struct {
	cfg    *config.Robot
	book   *slots.Book
	before []known
	gone   int
	found  []routing.Interface // by index, each once, without the overlay's own
	macs   map[string]int      // how many interfaces have it
	buses  map[string]int

	chosen []candidate
	over   map[int]bool // blocks of which an interface was one too many
	notes  []string
}

func (c *Chooser) newRound(cfg *config.Robot, all []routing.Interface) *round {
	r := &round{cfg: cfg, book: c.book, before: c.known, gone: c.gone, macs: map[string]int{}, buses: map[string]int{}, over: map[int]bool{}}
	r.found = slices.Clone(all)
	slices.SortStableFunc(r.found, func(a, b routing.Interface) int { return a.Index - b.Index })
	r.found = slices.CompactFunc(r.found, func(a, b routing.Interface) bool { return a.Index == b.Index })
	for _, i := range r.found {
		r.macs[mac(i)]++
		r.buses[i.Bus]++
	}
	r.found = slices.DeleteFunc(r.found, func(i routing.Interface) bool { return i.Index <= 0 || i.Name == "" || i.Name == cfg.Interface })
	return r
}

// mac returns an interface's MAC, unless it is all zero.
func mac(i routing.Interface) string {
	if strings.Trim(i.MAC, "0:") == "" {
		return ""
	}
	return strings.ToLower(i.MAC)
}

// identity returns what tells the interface of k apart from the others.
func (r *round) identity(k *candidate) slots.Carrier {
	c := slots.Carrier{Named: k.name != "", Interface: cmp.Or(k.name, k.i.Name)}
	if m := mac(k.i); r.macs[m] < 2 {
		c.MAC = m
	}
	if r.buses[k.i.Bus] < 2 {
		c.Bus = k.i.Bus
	}
	return c
}

func (r *round) want(k *candidate) slots.Want {
	return slots.Want{Carrier: r.identity(k), Slot: k.held, Gone: k.gone > 0}
}

// byIndex returns who had the interface of that index in the last choice.
func (r *round) byIndex(index int) *known {
	for n := range r.before {
		if k := &r.before[n]; k.last.Index == index && index != 0 {
			return k
		}
	}
	return nil
}

// add chooses i for a block.
func (r *round) add(i routing.Interface, block int, allow config.Selector) {
	k := candidate{i: i, block: block, held: slots.None, allow: allow}
	if block != discovered {
		k.name = r.cfg.Carriers[block].Name()
	}
	// What the configuration names has its slot by name, whatever had it before.
	if was := r.byIndex(i.Index); was != nil && !was.named && k.name == "" {
		k.held = was.slot
	}
	r.chosen = append(r.chosen, k)
}

// uses says whether an interface is chosen.
func (r *round) uses(index int) bool {
	return slices.ContainsFunc(r.chosen, func(k candidate) bool { return k.i.Index == index })
}

// limit leaves as many carriers as there are slots: those that the configuration
// names, then those that are carriers already, then those that lead somewhere.
func (r *round) limit() {
	rank := func(k *candidate) int {
		switch {
		case k.name != "":
			return 0
		case k.held != slots.None:
			return 1
		case k.i.Leads:
			return 2
		}
		return 3
	}
	slices.SortStableFunc(r.chosen, func(a, b candidate) int {
		return cmp.Or(rank(&a)-rank(&b), a.block-b.block, a.i.Index-b.i.Index)
	})
	if len(r.chosen) <= slots.Count {
		return
	}
	over := r.chosen[slots.Count:]
	var names []string
	for _, k := range over[:min(len(over), maxNamed)] {
		names = append(names, k.i.Name)
	}
	for _, k := range over {
		r.over[k.block] = true
	}
	more := ""
	if len(over) > maxNamed {
		more = fmt.Sprintf(" and %d others", len(over)-maxNamed)
	}
	r.chosen = r.chosen[:slots.Count]
	r.note("A robot has at most %d carriers, so these interfaces are not used: %s%s. Say with [[carrier]], or with deny in [discovery], which ones are to be.",
		slots.Count, strings.Join(names, ", "), more)
}

// addGone adds the carriers whose interface has vanished, the last one first, so
// that they keep their slots as long as there is room. Those that are back lose
// theirs to what they are now.
func (r *round) addGone() {
	var gone []candidate
	for _, k := range r.before {
		block := r.blockOf(&k)
		if k.named || k.last.Index == 0 || block < discovered {
			continue
		}
		if slices.ContainsFunc(r.found, func(i routing.Interface) bool { return i.Index == k.last.Index }) {
			continue // chosen, or no longer to be
		}
		g := candidate{i: k.last, block: block, held: k.slot, allow: k.allow, gone: k.gone}
		if g.gone == 0 {
			r.gone++
			g.gone = r.gone
		}
		gone = append(gone, g)
	}
	slices.SortFunc(gone, func(a, b candidate) int { return b.gone - a.gone })
	r.chosen = append(r.chosen, gone...)
}

// blockOf returns where the [[carrier]] of a known carrier is in the
// configuration, or discovered, or less than that if it would not be one any more.
func (r *round) blockOf(k *known) int {
	const none = discovered - 1
	if k.block == "" {
		if _, ok := r.eligible(&k.last, k.allow); ok && len(r.cfg.Carriers) == 0 {
			return discovered
		}
		return none
	}
	for n := range r.cfg.Carriers {
		if b := &r.cfg.Carriers[n]; b.Title() == k.block && !r.barred(b, &k.last) {
			return n
		}
	}
	return none
}

func (r *round) carrier(k *candidate, slot int) Carrier {
	c := Carrier{Slot: slot, Interface: cmp.Or(k.i.Name, k.name), Index: k.i.Index, Cost: config.DefaultCost}
	_, c.ID, _ = r.book.Carrier(slot)
	if k.block != discovered {
		b := &r.cfg.Carriers[k.block]
		c.Label, c.Cost, c.MonthlyCap, c.DNS = b.Label, b.Cost, b.MonthlyCap, b.DNS
	}
	switch {
	case k.gone > 0 && slices.ContainsFunc(r.found, func(i routing.Interface) bool { return i.Name == c.Interface }):
		c.Index = 0
		c.Problem = fmt.Sprintf("The device that had slot %d as %s has gone, and another one has that name now. It is used as soon as it is back, "+
			"under any name; if it is not to come back, it is forgotten when fogplr starts again.", slot, c.Interface)
	case k.gone > 0:
		c.Index = 0
		c.Problem = fmt.Sprintf("The interface %s has vanished. It is used as soon as it is back, under any name.", c.Interface)
	case c.Index == 0:
		c.Problem = fmt.Sprintf("There is no interface %s now. It is used as soon as it appears.", c.Interface)
	}
	return c
}

func (r *round) known(k *candidate, slot int) known {
	n := known{slot: slot, last: k.i, named: k.name != "", allow: k.allow, gone: k.gone}
	if k.block != discovered {
		n.block = r.cfg.Carriers[k.block].Title()
	}
	return n
}

// missing names the blocks that have not been seen.
func (r *round) missing(seen map[int]bool) []string {
	var out []string
	for n := range r.cfg.Carriers {
		if !seen[n] && !r.over[n] {
			out = append(out, fmt.Sprintf("No interface is left for %s. One that matches is used as soon as it appears.", title(&r.cfg.Carriers[n])))
		}
	}
	return out
}

// none says what it means that there are no carriers, and what to do.
func none(cfg *config.Robot) string {
	why := "discovery found no interface that leads to the internet and that [discovery] lets it take. " +
		"Connect an uplink: with an address and a default route it is used at once, without a reload"
	if len(cfg.Carriers) > 0 {
		why = "no interface matches a [[carrier]]. One that does is used as soon as it appears"
	}
	return fmt.Sprintf("This robot has no carrier, so it reaches no gateway: %s. Why others are left out: `%s`. After a change of %s: `%s`.",
		why, cfg.Command("check"), cfg.File, cfg.Command("reload"))
}

func (r *round) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(r.notes, s) {
		r.notes = append(r.notes, s)
	}
}

// title names a [[carrier]] to a person.
func title(b *config.Carrier) string {
	if b.Label != "" {
		return fmt.Sprintf("the %s (%s)", b.Title(), b.Label)
	}
	return "the " + b.Title()
}
