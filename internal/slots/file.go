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

// content is what slots.json has. In version 1 every carrier was named in the
// configuration.
type content struct {
	Version int     `json:"version"`
	Slots   []entry `json:"slots"`
}

const version = 2

// Load reads the book that is kept in stateDir; without a file it is empty. The
// notes are plain sentences: that the file's content was wrong and is replaced. An
// error means that there is a file and it cannot be read.
func Load(stateDir string) (b *Book, notes []string, err error) {
	b = &Book{file: filepath.Join(stateDir, fileName)}
	text, err := files.Read(b.file, maxFile)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read which slots the carriers have: %w", err)
	}
	old, err := decode(text)
	if err != nil {
		notes = append(notes, fmt.Sprintf("%s is not usable (%v), so the carriers' slots are given anew. "+
			"If a gateway was given only some of this robot's carrier_keys, give it all eight: `fogplr pubkey --robot` prints them.", b.file, err))
	}
	if old.Version == version {
		b.saved = old.Slots
	}
	b.entries = slices.Clone(old.Slots)
	return b, notes, nil
}

// Save writes the book, unless the file has it already. After an error the next
// Save tries again.
func (b *Book) Save() error {
	if slices.Equal(b.saved, b.entries) {
		return nil
	}
	text, err := json.MarshalIndent(content{version, b.entries}, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(b.file), 0o700)
	}
	if err == nil {
		err = files.Replace(b.file, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the carriers' slots: %w", err)
	}
	b.saved = slices.Clone(b.entries)
	return nil
}

// decode reads a file's content and checks everything that Book relies on. Nil is
// no file and no entries.
func decode(text []byte) (content, error) {
	var c content
	if text == nil {
		return c, nil
	}
	if err := files.Decode(text, maxFile, &c); err != nil {
		return content{}, err
	}
	if c.Version != 1 && c.Version != version {
		return content{}, fmt.Errorf("it has version %d, not %d", c.Version, version)
	}
	slot, name, id := map[int]bool{}, map[string]bool{}, map[string]bool{}
	for i := range c.Slots {
		e := &c.Slots[i]
		if c.Version == 1 {
			e.Named, e.ID = true, "name:"+e.Interface
		}
		switch {
		case e.Slot < 0 || e.Slot >= Count || slot[e.Slot]:
			return content{}, fmt.Errorf("slot %d is out of range or there twice", e.Slot)
		case e.Interface == "" || e.tidy() != e.Carrier || e.Named && name[e.Interface]:
			return content{}, fmt.Errorf("the carrier of slot %d is none or there twice", e.Slot)
		case e.ID == "" || len(e.ID) > maxID || id[e.ID]:
			return content{}, fmt.Errorf("the id of slot %d is none or there twice", e.Slot)
		case e.Changes >= maxCount:
			return content{}, fmt.Errorf("the count of slot %d is out of range", e.Slot)
		}
		slot[e.Slot], id[e.ID] = true, true
		if e.Named {
			name[e.Interface] = true
		}
	}
	slices.SortFunc(c.Slots, func(a, b entry) int { return a.Slot - b.Slot })
	return c, nil
}
