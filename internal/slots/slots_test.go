package slots

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func assignOK(t *testing.T, dir string, carriers ...string) (map[string]int, []string) {
	t.Helper()
	slot, notes, err := Assign(dir, carriers)
	if err != nil {
		t.Fatal(err)
	}
	return slot, notes
}

func TestSlotsAreForLife(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "Assign")
	for _, step := range []struct {
		carriers []string
		want     map[string]int
	}{
		{[]string{"wwan0", "wlan0"}, map[string]int{"wwan0": 0, "wlan0": 1}},
		{[]string{"wlan0", "wwan0"}, map[string]int{"wwan0": 0, "wlan0": 1}}, // order does not matter
		{[]string{"wlan0"}, map[string]int{"wlan0": 1}},
		{[]string{"eth0", "wlan0"}, map[string]int{"wlan0": 1, "eth0": 2}}, // wwan0's slot is not free
		{[]string{"eth0", "wwan0"}, map[string]int{"wwan0": 0, "eth0": 2}}, // it comes back
	} {
		got, notes := assignOK(t, dir, step.carriers...)
		if !reflect.DeepEqual(got, step.want) || len(notes) != 0 {
			t.Errorf("%v: got %v (%v), want %v", step.carriers, got, notes, step.want)
		}
	}
}

func TestOldestUnusedSlotIsReused(t *testing.T) {
	dir := t.TempDir()
	assignOK(t, dir, "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7")
	assignOK(t, dir, "c0", "c2", "c3", "c4", "c5", "c6", "c7") // c1 goes first
	assignOK(t, dir, "c0", "c3", "c4", "c5", "c6", "c7")       // then c2
	got, notes := assignOK(t, dir, "new", "c0", "c3", "c4", "c5", "c6", "c7")
	if got["new"] != 1 || len(notes) != 1 || !strings.Contains(notes[0], "new takes slot 1 of c1") {
		t.Errorf("slots %v, notes %q: want slot 1, told", got, notes)
	}
	got, notes = assignOK(t, dir, "c1", "c0", "c3", "c4", "c5", "c6", "c7")
	if got["c1"] != 2 || len(notes) != 1 {
		t.Errorf("slots %v, notes %q: want c1 to take slot 2, which c2 left earlier than new", got, notes)
	}
}

func TestWrongFileIsToldAndRebuilt(t *testing.T) {
	for name, content := range map[string]string{
		"empty":      "",
		"cut":        `{"version":1,"slots":[{"slot":3,"inter`,
		"version":    `{"version":2,"slots":[]}`,
		"range":      `{"version":1,"slots":[{"slot":8,"interface":"a","changes":1}]}`,
		"negative":   `{"version":1,"slots":[{"slot":-1,"interface":"a","changes":1}]}`,
		"twice":      `{"version":1,"slots":[{"slot":1,"interface":"a","changes":1},{"slot":1,"interface":"b","changes":1}]}`,
		"same name":  `{"version":1,"slots":[{"slot":1,"interface":"a","changes":1},{"slot":2,"interface":"a","changes":1}]}`,
		"no name":    `{"version":1,"slots":[{"slot":1,"interface":"","changes":1}]}`,
		"big count":  `{"version":1,"slots":[{"slot":1,"interface":"a","changes":18446744073709551615}]}`,
		"other keys": `{"version":1,"slots":[],"x":1}`,
		"huge":       strings.Repeat(" ", maxFile+1),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, notes := assignOK(t, dir, "b", "a")
		if got["b"] != 0 || got["a"] != 1 || len(notes) != 1 || !strings.Contains(notes[0], filepath.Join(dir, fileName)) {
			t.Errorf("%s: slots %v, notes %q", name, got, notes)
		}
		if again, notes := assignOK(t, dir, "a", "b"); !reflect.DeepEqual(again, got) || len(notes) != 0 {
			t.Errorf("%s: after the rebuild slots %v, notes %q", name, again, notes)
		}
	}
}

func TestUnchangedCarriersWriteNothing(t *testing.T) {
	dir := t.TempDir()
	assignOK(t, dir, "a", "b")
	file := filepath.Join(dir, fileName)
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	assignOK(t, dir, "b", "a")
	after, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("the file was written again though nothing changed")
	}
}

func TestSlotsComeWithAWriteError(t *testing.T) {
	slot, _, err := Assign("/proc/no-such-directory", []string{"a"})
	if err == nil || len(slot) != 1 {
		t.Errorf("slots %v, error %v", slot, err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, fileName), 0o700); err != nil {
		t.Fatal(err)
	}
	if slot, _, err := Assign(dir, []string{"a"}); err == nil || len(slot) != 0 {
		t.Errorf("an unreadable file was taken for a wrong one: slots %v, error %v", slot, err)
	}
	if _, _, err := Assign(dir, make([]string, Count+1)); err == nil {
		t.Error("nine carriers were given slots")
	}
}

// Whatever comes and goes: slots are unique and in range, a carrier that was
// there at the last change keeps its slot, and the book can be read back.
func TestAssignProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var book []entry
		previous := map[string]int{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			n := rapid.IntRange(1, Count).Draw(t, "n")
			carriers := rapid.SliceOfNDistinct(rapid.IntRange(0, 14), n, n, rapid.ID).Draw(t, "carriers")
			names := make([]string, n)
			for i, c := range carriers {
				names[i] = fmt.Sprintf("c%d", c)
			}
			book, _ = assign(book, names)
			current := map[string]int{}
			taken := map[int]string{}
			for _, e := range book {
				if other, ok := taken[e.Slot]; ok || e.Slot < 0 || e.Slot >= Count {
					t.Fatalf("slot %d of %s is out of range or also of %s", e.Slot, e.Interface, other)
				}
				taken[e.Slot] = e.Interface
				if slices.Contains(names, e.Interface) {
					current[e.Interface] = e.Slot
				}
			}
			for _, name := range names {
				slot, ok := current[name]
				if was, had := previous[name]; !ok || had && was != slot {
					t.Fatalf("%s: slot %d (given %v), before %d (%v)", name, slot, ok, was, had)
				}
			}
			previous = current
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"slots":[{"slot":1,"interface":"a","changes":1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := decode(b)
		if err != nil {
			return
		}
		if got, _ := assign(entries, []string{"x", "y"}); len(got) > Count {
			t.Errorf("%d entries", len(got))
		}
	})
}
