// Package slots gives every carrier of a robot a slot, 0 to 7, and keeps it on
// disk. A carrier's key is derived from its slot, and gateways hold the public
// half, so a carrier keeps its slot for life: also while it is away or out of the
// configuration, and under another name.
package slots

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// None is no slot.
const None = -1

// Want is a carrier that is to have a slot.
type Want struct {
	Carrier
	// Slot is the one that it has had in this run, when it certainly is the same
	// carrier, else None.
	Slot int
	// Gone means that its interface is not there, and may not come back: it keeps
	// its Slot until another carrier needs it.
	Gone bool
}

// Book has the carriers that have, or had, a slot. It is for one goroutine.
type Book struct {
	file    string
	entries []entry // in the order of their slots
	saved   []entry // what the file has
}

// entry is one slot that is or was in use.
type entry struct {
	Slot int `json:"slot"`
	Carrier
	// Changes counts the changes of the set of carriers when this one was last
	// in it. It stands in for a clock, which a robot may not have at its start.
	Changes uint64 `json:"changes"`
	// ID tells the carrier apart from all others in the book, whatever becomes of
	// it: what it was known by when it got the slot.
	ID string `json:"id,omitempty"`
}

// Carrier returns who has a slot, and a text, such as "name:wwan0", that tells it
// apart from all others as long as it has it. Mostly it gets the same text again
// after it had to give its slot away. ok is false when nobody has the slot.
func (b *Book) Carrier(slot int) (c Carrier, id string, ok bool) {
	i := b.index(slot)
	if i < 0 {
		return Carrier{}, "", false
	}
	return b.entries[i].Carrier, b.entries[i].ID, true
}

func (b *Book) index(slot int) int {
	return slices.IndexFunc(b.entries, func(e entry) bool { return e.Slot == slot })
}

// Find returns the slots that the carriers would keep, in their order, and None for
// one that the book does not know. It changes nothing.
func (b *Book) Find(wants []Want) []int {
	found := make([]int, len(wants))
	taken := map[int]bool{}
	for i, w := range wants {
		found[i] = None
		if w.Slot != None && !w.Gone && b.index(w.Slot) >= 0 && !taken[w.Slot] {
			found[i], taken[w.Slot] = w.Slot, true
		}
	}
	for _, p := range b.pairs(wants, found) {
		if slot := b.entries[p.entry].Slot; found[p.want] == None && !taken[slot] {
			found[p.want], taken[slot] = slot, true
		}
	}
	for i, w := range wants {
		if w.Gone && w.Slot != None && b.index(w.Slot) >= 0 && !taken[w.Slot] {
			found[i], taken[w.Slot] = w.Slot, true
		}
	}
	return found
}

// pair is an entry that may be a wanted carrier's.
type pair struct{ entry, want, likeness int }

// pairs returns what fits together of the entries and the carriers without slot,
// the surest first.
func (b *Book) pairs(wants []Want, found []int) []pair {
	var out []pair
	for i, w := range wants {
		if found[i] != None || w.Gone {
			continue
		}
		for j, e := range b.entries {
			if n := likeness(e.Carrier, w.tidy()); n > 0 {
				out = append(out, pair{j, i, n})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b pair) int {
		return cmp.Or(-cmp.Compare(a.likeness, b.likeness), cmp.Compare(a.entry, b.entry))
	})
	return out
}

// Assign gives slots to carriers, at most Count of them besides those that are
// Gone, and returns them in their order. Who has one in the book keeps it, others
// take the lowest free one, and when none is free the one that has been unused for
// longest, or else that of the last one Gone. One that is Gone gets None when
// another has its slot. The notes are plain sentences on slots that were given
// away. Save writes the book.
func (b *Book) Assign(wants []Want) (slot []int, notes []string) {
	slot = b.Find(wants)
	changes := uint64(0)
	for _, e := range b.entries {
		changes = max(changes, e.Changes)
	}
	if !b.inUse(changes, slot) {
		changes++
	}
	for i, w := range wants {
		if w.Gone {
			continue
		}
		c := w.tidy()
		if slot[i] == None {
			var from string
			if slot[i], from = b.vacate(wants, slot); from != "" {
				notes = append(notes, fmt.Sprintf("All %d carrier slots have been used, so %s takes slot %d of %s, which has been out of use for longest.",
					Count, c.Interface, slot[i], from))
			}
			b.entries = append(b.entries, entry{Slot: slot[i], Carrier: c, ID: b.newID(c)})
		}
		e := &b.entries[b.index(slot[i])]
		if c.bare() && c.Named { // it is not there now
			c.MAC, c.Bus = e.MAC, e.Bus
		}
		if e.MAC == "" && e.Bus != "" && e.Bus == c.Bus { // it was not the only one with its MAC once
			c.MAC = ""
		}
		e.Carrier = c
	}
	for i := range b.entries {
		if slices.Contains(slot, b.entries[i].Slot) {
			b.entries[i].Changes = changes
		}
	}
	slices.SortFunc(b.entries, func(a, b entry) int { return cmp.Compare(a.Slot, b.Slot) })
	return slot, notes
}

// newID returns an ID that no entry has.
func (b *Book) newID(c Carrier) string {
	id := c.id()
	for n := 2; slices.ContainsFunc(b.entries, func(e entry) bool { return e.ID == id }); n++ {
		id = fmt.Sprintf("%s#%d", c.id(), n)
	}
	return id
}

// inUse says whether the slots are those that were in use at the last change.
func (b *Book) inUse(changes uint64, slot []int) bool {
	n := 0
	for _, e := range b.entries {
		if e.Changes == changes {
			n++
			if !slices.Contains(slot, e.Slot) {
				return false
			}
		}
	}
	return n == len(slot)
}

// vacate returns a slot without an entry, and who had it. slot are those that are
// spoken for; one that is Gone loses it if there is no other.
func (b *Book) vacate(wants []Want, slot []int) (free int, from string) {
	for free := range Count {
		if b.index(free) < 0 {
			return free, ""
		}
	}
	oldest := -1
	for i, e := range b.entries {
		if !slices.Contains(slot, e.Slot) && (oldest < 0 || e.Changes < b.entries[oldest].Changes) {
			oldest = i
		}
	}
	for i := len(wants) - 1; oldest < 0; i-- {
		if wants[i].Gone && slot[i] != None {
			oldest, slot[i] = b.index(slot[i]), None
		}
	}
	free, from = b.entries[oldest].Slot, b.entries[oldest].Interface
	b.entries = slices.Delete(b.entries, oldest, oldest+1)
	return free, from
}

// tidy returns what of a carrier can be kept in the book.
func (c Carrier) tidy() Carrier {
	for _, s := range []*string{&c.Interface, &c.MAC, &c.Bus} {
		*s = strings.ToValidUTF8((*s)[:min(len(*s), maxText)], "?")
	}
	return c
}
