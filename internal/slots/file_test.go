package slots

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const golden = `{
  "version": 2,
  "slots": [
    {
      "slot": 0,
      "named": true,
      "interface": "wwan0",
      "changes": 1,
      "id": "name:wwan0"
    },
    {
      "slot": 1,
      "interface": "usb0",
      "mac": "0c:5b:8f:27:9a:64",
      "bus": "pci0000:00/0000:00:14.0/usb1/1-3",
      "changes": 1,
      "id": "mac:0c:5b:8f:27:9a:64"
    }
  ]
}
`

// The format is for life.
func TestGolden(t *testing.T) {
	dir := t.TempDir()
	start(t, dir, append(named("wwan0"), device("usb0", "0c:5b:8f:27:9a:64", "pci0000:00/0000:00:14.0/usb1/1-3"))...)
	got, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil || string(got) != golden {
		t.Errorf("%v, got\n%s", err, got)
	}
}

// What fogplr wrote when all carriers were named is taken over.
func TestVersion1(t *testing.T) {
	const old = `{"version":1,"slots":[{"slot":3,"interface":"wlan0","changes":7},{"slot":1,"interface":"wwan0","changes":9}]}`
	for name, c := range map[string]struct {
		wants []Want
		want  []int
	}{
		"named": {named("wwan0", "wlan0", "eth0"), []int{1, 3, 0}},
		"found": {[]Want{device("wlan0", "02:00:00:00:00:01", "a"), device("wwan0", "", ""), device("usb0", "", "")}, []int{3, 1, 0}},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, notes := start(t, dir, c.wants...); !slices.Equal(got, c.want) || len(notes) > 0 {
			t.Errorf("%s: slots %v (%q), want %v", name, got, notes, c.want)
		}
		if text, err := os.ReadFile(filepath.Join(dir, fileName)); err != nil || !strings.Contains(string(text), `"version": 2`) {
			t.Errorf("%s: %v, kept as %s", name, err, text)
		}
		if got, notes := start(t, dir, c.wants...); !slices.Equal(got, c.want) || len(notes) > 0 {
			t.Errorf("%s, again: slots %v (%q), want %v", name, got, notes, c.want)
		}
	}
}

func TestWrongFileIsToldAndRebuilt(t *testing.T) {
	for name, content := range map[string]string{
		"empty":      "",
		"cut":        `{"version":1,"slots":[{"slot":3,"inter`,
		"version":    `{"version":3,"slots":[]}`,
		"range":      `{"version":1,"slots":[{"slot":8,"interface":"a","changes":1}]}`,
		"negative":   `{"version":1,"slots":[{"slot":-1,"interface":"a","changes":1}]}`,
		"twice":      `{"version":1,"slots":[{"slot":1,"interface":"a","changes":1},{"slot":1,"interface":"b","changes":1}]}`,
		"same name":  `{"version":1,"slots":[{"slot":1,"interface":"a","changes":1},{"slot":2,"interface":"a","changes":1}]}`,
		"no name":    `{"version":2,"slots":[{"slot":1,"interface":"","mac":"02:00:00:00:00:01","changes":1,"id":"x"}]}`,
		"big count":  `{"version":1,"slots":[{"slot":1,"interface":"a","changes":18446744073709551615}]}`,
		"no id":      `{"version":2,"slots":[{"slot":1,"interface":"a","changes":1}]}`,
		"same id":    `{"version":2,"slots":[{"slot":1,"interface":"a","changes":1,"id":"x"},{"slot":2,"interface":"b","changes":1,"id":"x"}]}`,
		"long text":  `{"version":2,"slots":[{"slot":1,"interface":"a","bus":"` + strings.Repeat("x", maxText+1) + `","changes":1,"id":"x"}]}`,
		"other keys": `{"version":2,"slots":[],"x":1}`,
		"huge":       strings.Repeat(" ", maxFile+1),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, notes := start(t, dir, named("b", "a")...)
		if !slices.Equal(got, []int{0, 1}) || len(notes) != 1 || !strings.Contains(notes[0], filepath.Join(dir, fileName)) {
			t.Errorf("%s: slots %v, notes %q", name, got, notes)
		}
		if got, notes := start(t, dir, named("a", "b")...); !slices.Equal(got, []int{1, 0}) || len(notes) != 0 {
			t.Errorf("%s: after the rebuild slots %v, notes %q", name, got, notes)
		}
	}
}

// Names are bytes to the kernel, and a book that cannot be read back would cost
// every carrier its slot.
func TestOddTextsAreKept(t *testing.T) {
	dir := t.TempDir()
	odd := device(strings.Repeat("\xff\u00e4\"", 5), strings.Repeat("\xff<", 500), strings.Repeat("\x01", 3*maxText))
	for range Count {
		if got, notes := start(t, dir, odd); got[0] != 0 || len(notes) > 0 {
			t.Fatalf("slots %v, %q", got, notes)
		}
	}
	var all []Want
	for i := range Count {
		w := odd
		w.MAC = strings.Repeat("\x02", i) + w.MAC
		w.Bus = strings.Repeat("\x02", i) + w.Bus
		all = append(all, w)
	}
	first, _ := start(t, dir, all...)
	if got, notes := start(t, dir, all...); !slices.Equal(got, first) || len(notes) > 0 {
		t.Errorf("slots %v, then %v, %q", first, got, notes)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"slots":[{"slot":1,"interface":"a","changes":1}]}`))
	f.Add([]byte(golden))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := decode(text)
		if err != nil {
			return
		}
		b := &Book{entries: c.Slots}
		slot, _ := b.Assign(append(named("x", "y"), device("a", "02:00:00:00:00:01", "b")))
		taken := map[int]bool{}
		for _, s := range slot {
			if s < 0 || s >= Count || taken[s] {
				t.Errorf("slots %v", slot)
			}
			taken[s] = true
		}
		if len(b.entries) > Count {
			t.Errorf("%d entries", len(b.entries))
		}
	})
}
