// Package slots gives every carrier of a robot a slot, 0 to 7, and keeps it on
// disk. A carrier's key is derived from its slot, and gateways hold the public
// half, so a carrier keeps its slot for life: also while it is out of the
// configuration.
package slots

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fogplr/fogplr/internal/files"
)

// fileName is the file in the state directory.
const fileName = "slots.json"

// book is the content of slots.json.
type book struct {
	Version int     `json:"version"`
	Slots   []entry `json:"slots"`
}

// entry is one slot that is or was in use.
type entry struct {
	Slot      int    `json:"slot"`
	Interface string `json:"interface"`
	// Changes counts the changes of the set of carriers when this one was last
	// in it. It stands in for a clock, which a robot may not have at its start.
	Changes uint64 `json:"changes"`
}

const bookVersion = 1

// Assign returns the slot (0 to Count-1) of every carrier, by interface name,
// and keeps them in stateDir. carriers are 1 to Count different names. The notes
// are plain sentences on what is not as it was: also that the file's content was
// wrong and is replaced. When the file cannot be written the slots are returned
// with the error; when it is there but cannot be read, the error alone.
func Assign(stateDir string, carriers []string) (slot map[string]int, notes []string, err error) {
	if len(carriers) > Count {
		return nil, nil, fmt.Errorf("%d carriers, but a robot has %d slots", len(carriers), Count)
	}
	file := filepath.Join(stateDir, fileName)
	content, err := files.Read(file, maxFile)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read which slots the carriers have: %w", err)
	}
	old, err := decode(content)
	if err != nil {
		notes = append(notes, fmt.Sprintf("%s is not usable (%v), so the carriers' slots are given anew in the order of the configuration. "+
			"If a gateway was given only some of this robot's carrier_keys, give it all eight: `fogplr pubkey --robot` prints them.", file, err))
	}
	fresh, more := assign(old, carriers)
	notes = append(notes, more...)
	slot = map[string]int{}
	for _, e := range fresh {
		if slices.Contains(carriers, e.Interface) {
			slot[e.Interface] = e.Slot
		}
	}
	if slices.Equal(old, fresh) {
		return slot, notes, nil
	}
	return slot, notes, write(file, fresh)
}

// assign returns the entries for carriers, in the order of their slots: those
// that have a slot keep it, others take the lowest free one, and when none is
// free the one whose carrier has been unused for longest.
func assign(old []entry, carriers []string) (fresh []entry, notes []string) {
	fresh = slices.Clone(old)
	changes := uint64(0)
	for _, e := range old {
		changes = max(changes, e.Changes)
	}
	if !sameSet(old, changes, carriers) {
		changes++
	}
	index := func(name string) int {
		return slices.IndexFunc(fresh, func(e entry) bool { return e.Interface == name })
	}
	for _, c := range carriers { // first, so that none of them is taken for unused
		if i := index(c); i >= 0 {
			fresh[i].Changes = changes
		}
	}
	for _, c := range carriers {
		if index(c) >= 0 {
			continue
		}
		if len(fresh) < Count {
			fresh = append(fresh, entry{lowestFree(fresh), c, changes})
			continue
		}
		i := oldest(fresh)
		notes = append(notes, fmt.Sprintf("All %d carrier slots have been used, so %s takes slot %d of %s, which has been out of the configuration for longest.",
			Count, c, fresh[i].Slot, fresh[i].Interface))
		fresh[i] = entry{fresh[i].Slot, c, changes}
	}
	slices.SortFunc(fresh, func(a, b entry) int { return a.Slot - b.Slot })
	return fresh, notes
}

// sameSet says whether carriers are those that were in use at the last change.
func sameSet(old []entry, changes uint64, carriers []string) bool {
	n := 0
	for _, e := range old {
		if e.Changes == changes {
			n++
			if !slices.Contains(carriers, e.Interface) {
				return false
			}
		}
	}
	return n == len(carriers)
}

func lowestFree(entries []entry) int {
	for slot := range Count {
		if !slices.ContainsFunc(entries, func(e entry) bool { return e.Slot == slot }) {
			return slot
		}
	}
	panic("slots: no free slot among fewer than 8 entries")
}

func oldest(entries []entry) int {
	best := 0
	for i, e := range entries {
		if e.Changes < entries[best].Changes {
			best = i
		}
	}
	return best
}

// decode returns the entries of a file's content and checks everything that
// assign relies on. Nil is no file and no entries.
func decode(b []byte) ([]entry, error) {
	if b == nil {
		return nil, nil
	}
	var content book
	if err := files.Decode(b, maxFile, &content); err != nil {
		return nil, err
	}
	if content.Version != bookVersion {
		return nil, fmt.Errorf("it has version %d, not %d", content.Version, bookVersion)
	}
	seenSlot, seenName := map[int]bool{}, map[string]bool{}
	for _, e := range content.Slots {
		switch {
		case e.Slot < 0 || e.Slot >= Count || seenSlot[e.Slot]:
			return nil, fmt.Errorf("slot %d is out of range or there twice", e.Slot)
		case e.Interface == "" || len(e.Interface) > maxInterface || seenName[e.Interface]:
			return nil, fmt.Errorf("the interface of slot %d is no name or there twice", e.Slot)
		case e.Changes >= 1<<62:
			return nil, fmt.Errorf("the count of slot %d is out of range", e.Slot)
		}
		seenSlot[e.Slot], seenName[e.Interface] = true, true
	}
	return content.Slots, nil
}

func write(file string, entries []entry) error {
	b, err := json.MarshalIndent(book{bookVersion, entries}, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = files.Replace(file, append(b, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the carriers' slots: %w", err)
	}
	return nil
}
