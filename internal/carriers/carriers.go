// Package carriers chooses which interfaces are a robot's carriers: by the
// configuration, by what the kernel has now, and by who has which slot. It is
// pure: nothing is read or written here.
package carriers

import (
	"net/netip"
	"slices"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/slots"
	"github.com/fogplr/fogplr/routing"
)

// Carrier is a carrier, whether its interface is there or not.
type Carrier struct {
	Slot int // 0 to slots.Count-1
	// ID tells the carrier apart from all others, in this run and later ones,
	// whatever it is called (see slots.Book).
	ID string
	// Interface is the name that it has now, or had last, or should have.
	Interface string
	Index     int // of the interface; 0 while there is none
	// Problem is a plain sentence while there is no interface. Nothing is to be
	// looked for by the name then: that may be another carrier's by now.
	Problem string

	Label      string       // for people, or empty
	Cost       float64      // of no unit
	MonthlyCap uint64       // bytes; 0 when it is not metered
	DNS        []netip.Addr // none: the system's servers. Of the configuration: not to be changed
}

// Metered says whether there is a cap on what the carrier may move.
func (c Carrier) Metered() bool { return c.MonthlyCap > 0 }

// Choice is what Choose says.
type Choice struct {
	Carriers []Carrier // in the order of their slots, each once
	// Missing has a plain sentence for each [[carrier]] of which no interface was
	// seen in this run.
	Missing []string
	// None is a plain sentence when there are no carriers.
	None string
	// Notes are plain sentences on what is so now and hardly meant, or good to
	// know.
	Notes []string
}

// Chooser chooses carriers again and again. It remembers those of the last choice,
// so that one whose interface is renamed, no longer leads anywhere or vanishes
// stays the same carrier. It is for one goroutine.
type Chooser struct {
	book  *slots.Book
	known []known  // in the order of their slots
	given []string // the last slots that were given away
	gone  int      // how many have vanished so far
}

// known is a carrier of the last choice.
type known struct {
	slot  int
	last  routing.Interface // as it was seen last; Index 0 if it never was
	block string            // title of its [[carrier]], empty if it was discovered
	named bool
	allow config.Selector // let it in, though discovery leaves such ones out
	gone  int             // the how-manieth it was to vanish; 0 if it has not
}

// New returns a Chooser that takes slots from book. Who saves the book does so
// after every choice.
func New(book *slots.Book) *Chooser { return &Chooser{book: book} }

// Choose says what the carriers are, given all interfaces of the machine. It may
// be called with another configuration every time.
func (c *Chooser) Choose(cfg *config.Robot, all []routing.Interface) Choice {
	r := c.newRound(cfg, all)
	if len(cfg.Carriers) > 0 {
		r.byBlocks()
	} else {
		r.discover()
	}
	r.limit()
	r.remark()
	r.addGone()
	wants := make([]slots.Want, len(r.chosen))
	for i := range r.chosen {
		wants[i] = r.want(&r.chosen[i])
	}
	slot, given := c.book.Assign(wants)
	c.given = append(c.given, given...)
	c.given = c.given[max(0, len(c.given)-maxGiven):]
	r.notes = append(r.notes, c.given...)

	c.known = nil
	choice := Choice{Notes: r.notes}
	seen := map[int]bool{} // by block
	for i := range r.chosen {
		if slot[i] == slots.None {
			continue // it is back, as another one of the chosen, or had to make room
		}
		k := &r.chosen[i]
		seen[k.block] = true
		choice.Carriers = append(choice.Carriers, r.carrier(k, slot[i]))
		c.known = append(c.known, r.known(k, slot[i]))
	}
	slices.SortFunc(choice.Carriers, func(a, b Carrier) int { return a.Slot - b.Slot })
	slices.SortFunc(c.known, func(a, b known) int { return a.slot - b.slot })
	c.gone = r.gone
	choice.Missing = r.missing(seen)
	if len(choice.Carriers) == 0 {
		choice.None = none(cfg)
	}
	return choice
}
