package slots

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func load(t testing.TB, dir string) (*Book, []string) {
	t.Helper()
	b, notes, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b, notes
}

// named wants carriers that the configuration names.
func named(names ...string) (wants []Want) {
	for _, n := range names {
		wants = append(wants, Want{Carrier: Carrier{Named: true, Interface: n}, Slot: None})
	}
	return wants
}

// device wants a carrier that was found.
func device(name, mac, bus string) Want {
	return Want{Carrier: Carrier{Interface: name, MAC: mac, Bus: bus}, Slot: None}
}

// start is what a daemon does: load, assign, save.
func start(t *testing.T, dir string, wants ...Want) (slot []int, notes []string) {
	t.Helper()
	b, notes := load(t, dir)
	slot, more := b.Assign(wants)
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	return slot, append(notes, more...)
}

func TestSlotsAreForLife(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "Save")
	for _, step := range []struct {
		carriers []string
		want     []int
	}{
		{[]string{"wwan0", "wlan0"}, []int{0, 1}},
		{[]string{"wlan0", "wwan0"}, []int{1, 0}}, // order does not matter
		{[]string{"wlan0"}, []int{1}},
		{[]string{"eth0", "wlan0"}, []int{2, 1}}, // wwan0's slot is not free
		{[]string{"eth0", "wwan0"}, []int{2, 0}}, // it comes back
	} {
		got, notes := start(t, dir, named(step.carriers...)...)
		if !slices.Equal(got, step.want) || len(notes) != 0 {
			t.Errorf("%v: got %v (%v), want %v", step.carriers, got, notes, step.want)
		}
	}
}

func TestOldestUnusedSlotIsReused(t *testing.T) {
	dir := t.TempDir()
	start(t, dir, named("c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7")...)
	start(t, dir, named("c0", "c2", "c3", "c4", "c5", "c6", "c7")...) // c1 goes first
	start(t, dir, named("c0", "c3", "c4", "c5", "c6", "c7")...)       // then c2
	got, notes := start(t, dir, named("new", "c0", "c3", "c4", "c5", "c6", "c7")...)
	if got[0] != 1 || len(notes) != 1 || notes[0] != "All 8 carrier slots have been used, so new takes slot 1 of c1, which has been out of use for longest." {
		t.Errorf("slots %v, notes %q: want slot 1, told", got, notes)
	}
	got, notes = start(t, dir, named("c1", "c0", "c3", "c4", "c5", "c6", "c7")...)
	if got[0] != 2 || len(notes) != 1 {
		t.Errorf("slots %v, notes %q: want c1 to take slot 2, which c2 left earlier than new", got, notes)
	}
}

// What makes a carrier the same one in a later run, in which the kernel may give
// other names.
func TestIdentity(t *testing.T) {
	const (
		fixedA, fixedB = "0c:5b:8f:27:9a:64", "0c:5b:8f:00:00:01"
		madeUp, anew   = "02:00:00:00:00:01", "02:00:00:00:00:02"
		port1, port2   = "pci0000:00/usb1/1-1", "pci0000:00/usb1/1-2"
	)
	wwan0 := named("wwan0")[0]
	present := wwan0
	present.MAC, present.Bus = fixedA, port1
	for name, c := range map[string]struct {
		before, after []Want
		want          []int // of after
	}{
		"swapped names, told apart by MAC":   {[]Want{device("usb0", fixedA, ""), device("usb1", fixedB, "")}, []Want{device("usb0", fixedB, ""), device("usb1", fixedA, "")}, []int{1, 0}},
		"swapped names, equal MACs":          {[]Want{device("usb0", "", port1), device("usb1", "", port2)}, []Want{device("usb0", "", port2), device("usb1", "", port1)}, []int{1, 0}},
		"moved to another port":              {[]Want{device("usb0", fixedA, port1), device("usb1", fixedB, port2)}, []Want{device("usb0", fixedB, port1), device("usb1", fixedA, port2)}, []int{1, 0}},
		"a MAC made up anew":                 {[]Want{device("usb0", madeUp, port1), device("usb1", fixedB, port2)}, []Want{device("usb0", fixedB, port2), device("usb1", anew, port1)}, []int{1, 0}},
		"made again with another random MAC": {[]Want{device("wwan0", fixedB, ""), device("tap0", madeUp, "")}, []Want{device("tap0", anew, ""), device("wwan0", fixedB, "")}, []int{1, 0}},
		"made again without a MAC":           {[]Want{device("tap0", madeUp, "")}, []Want{device("tap0", "", "")}, []int{0}},
		"made again under another name":      {[]Want{device("tap0", madeUp, "")}, []Want{device("tap1", anew, "")}, []int{1}},
		"swapped names, random MACs that stay": {[]Want{device("tap0", madeUp, ""), device("tap1", anew, "")},
			[]Want{device("tap0", anew, ""), device("tap1", madeUp, "")}, []int{1, 0}},
		"hardware where a random MAC was": {[]Want{device("usb0", madeUp, "")}, []Want{device("usb0", fixedA, port1)}, []int{1}},
		"a random MAC where hardware was": {[]Want{device("usb0", fixedA, port1)}, []Want{device("usb0", madeUp, "")}, []int{1}},
		"another port and random MAC":     {[]Want{device("usb0", madeUp, port1)}, []Want{device("usb0", anew, port2)}, []int{1}},
		"made again while the old one is kept": {[]Want{device("tap0", madeUp, "")},
			[]Want{device("tap0", anew, ""), {Carrier{false, "tap0", madeUp, ""}, 0, true}}, []int{0, None}},
		"another device in the same port":    {[]Want{device("usb0", fixedA, port1)}, []Want{device("usb0", fixedB, port1)}, []int{1}},
		"another device of the same name":    {[]Want{device("usb0", fixedA, "")}, []Want{device("usb0", fixedB, "")}, []int{1}},
		"its twin came, so the MAC is blank": {[]Want{device("usb0", fixedA, port1)}, []Want{device("usb0", "", port2), device("usb1", "", port1)}, []int{1, 0}},
		"nothing but the name":               {[]Want{device("ppp0", "", ""), device("ppp1", "", "")}, []Want{device("ppp1", "", ""), device("ppp0", "", "")}, []int{1, 0}},
		"both but the name changed":          {[]Want{device("wlan0", fixedA, port1)}, []Want{device("wlp3s0", fixedA, port1)}, []int{0}},
		"named, whatever device":             {named("wwan0", "wwan1"), named("wwan1", "wwan0"), []int{1, 0}},
		"named, another device":              {[]Want{present}, []Want{{Carrier{true, "wwan0", fixedB, port2}, None, false}}, []int{0}},
		"no longer named":                    {[]Want{device("eth0", fixedB, ""), present}, []Want{device("wwan1", fixedA, port1)}, []int{1}},
		"no longer named, never seen":        {named("eth0", "wwan0"), []Want{device("wwan0", fixedA, port1)}, []int{1}},
		"no longer named, not the same":      {[]Want{present}, []Want{device("wwan0", fixedB, port2)}, []int{1}},
		"named now":                          {[]Want{device("eth0", fixedB, ""), device("wwan0", fixedA, port1)}, []Want{present}, []int{1}},
		"named now and away":                 {[]Want{device("eth0", fixedB, ""), device("wwan0", fixedA, port1)}, []Want{wwan0}, []int{1}},
		"two of one name, one named":         {append(named("usb0"), device("usb0", fixedA, port1)), append([]Want{device("usb0", fixedA, port1)}, named("usb0")...), []int{1, 0}},
		"held, whatever it looks like":       {[]Want{device("usb0", fixedA, "")}, []Want{{Carrier{false, "usb7", fixedB, ""}, 0, false}}, []int{0}},
		"gone and back":                      {[]Want{device("usb0", fixedA, "")}, []Want{device("usb1", fixedA, ""), {Carrier{false, "usb0", fixedA, ""}, 0, true}}, []int{0, None}},
		"gone, and another came":             {[]Want{device("usb0", fixedA, "")}, []Want{device("usb0", fixedB, ""), {Carrier{false, "usb0", fixedA, ""}, 0, true}}, []int{1, 0}},
		"gone with a slot that nobody has":   {[]Want{device("usb0", fixedA, "")}, []Want{{Carrier{false, "usb0", fixedA, ""}, 5, true}}, []int{None}},
	} {
		dir := t.TempDir()
		start(t, dir, c.before...)
		got, notes := start(t, dir, c.after...)
		if !slices.Equal(got, c.want) || len(notes) != 0 {
			t.Errorf("%s: got %v (%q), want %v", name, got, notes, c.want)
		}
	}
}

// An ID says what a carrier was known by first, and stays.
func TestIDs(t *testing.T) {
	b, _ := load(t, t.TempDir())
	for _, step := range []struct {
		wants []Want
		want  string // of slot 0, and of slot 1
	}{
		{[]Want{device("usb0", "0c:5b:8f:27:9a:64", "1-1")}, "mac:0c:5b:8f:27:9a:64 "},
		{[]Want{device("usb0", "", "1-1"), device("usb1", "", "1-2")}, "mac:0c:5b:8f:27:9a:64 bus:1-2"},
		{[]Want{device("usb0", "0c:5b:8f:27:9a:64", "1-7"), device("usb1", "0c:5b:8f:27:9a:65", "1-2")}, "mac:0c:5b:8f:27:9a:64 bus:1-2"},
	} {
		b.Assign(step.wants)
		_, first, _ := b.Carrier(0)
		_, second, _ := b.Carrier(1)
		if got := first + " " + second; got != step.want {
			t.Errorf("%v: got %s, want %s", step.wants, got, step.want)
		}
	}
	// A random MAC is no name for life.
	c, _ := load(t, t.TempDir())
	c.Assign([]Want{device("tap0", "02:00:00:00:00:01", "")})
	c.Assign([]Want{device("tap0", "02:00:00:00:00:02", "")})
	if kept, id, _ := c.Carrier(0); id != "name:tap0" || kept.MAC != "02:00:00:00:00:02" {
		t.Errorf("got %s, %+v", id, kept)
	}
	// A second one that would have the same: its MAC is no longer shared, but it
	// has another's place by now.
	b.Assign([]Want{{Carrier{false, "usb0", "0c:5b:8f:27:9a:66", "1-7"}, 0, false}, device("usb2", "0c:5b:8f:27:9a:64", "1-8")})
	if _, id, _ := b.Carrier(2); id != "mac:0c:5b:8f:27:9a:64#2" {
		t.Errorf("got %s", id)
	}
}

// Of twins, one alone after a restart is not taken for the other.
func TestTwinsStayTwins(t *testing.T) {
	const mac = "0c:5b:8f:27:9a:64"
	dir := t.TempDir()
	for _, step := range []struct {
		wants []Want
		want  []int
	}{
		{[]Want{device("usb0", mac, "1-1")}, []int{0}},
		{[]Want{device("usb1", "", "1-1"), device("usb0", "", "1-2")}, []int{0, 1}},
		{[]Want{device("usb0", mac, "1-1")}, []int{0}},
		{[]Want{device("usb0", mac, "1-2")}, []int{1}},
	} {
		if got, _ := start(t, dir, step.wants...); !slices.Equal(got, step.want) {
			t.Errorf("%v: slots %v, want %v", step.wants, got, step.want)
		}
	}
}

// When all eight are in use, those whose interface has gone make room, the last
// one first.
func TestGoneMakesRoom(t *testing.T) {
	b, _ := load(t, t.TempDir())
	var wants []Want
	for i := range Count {
		w := device(fmt.Sprint("c", i), fmt.Sprintf("00:00:00:00:00:%02x", i+1), "")
		wants = append(wants, w)
	}
	slot, _ := b.Assign(wants)
	for i := range wants {
		wants[i].Slot, wants[i].Gone = slot[i], i >= 5
	}
	wants = append(append(wants[:5:5], device("new", "00:00:00:00:01:01", ""), device("newer", "00:00:00:00:01:02", "")), wants[5:]...)
	slot, notes := b.Assign(wants)
	if want := []int{0, 1, 2, 3, 4, 7, 6, 5, None, None}; !slices.Equal(slot, want) || len(notes) != 2 || !strings.Contains(notes[0], "new takes slot 7 of c7") {
		t.Errorf("slots %v, notes %q, want %v", slot, notes, want)
	}
	if c, id, ok := b.Carrier(7); !ok || c.Interface != "new" || id != "mac:00:00:00:00:01:01" {
		t.Errorf("slot 7 has %+v, %s (%v)", c, id, ok)
	}
}

// Whatever comes and goes: slots are unique and in range, a carrier that was
// there before keeps its slot as long as no more than eight ever were, and the
// book can be read back.
func TestAssignProperties(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		b := &Book{file: filepath.Join(dir, fileName)}
		was := map[int]int{} // carrier -> slot
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			which := rapid.SliceOfNDistinct(rapid.IntRange(0, 14), 1, Count, rapid.ID).Draw(t, "carriers")
			var wants []Want
			for _, c := range which {
				w := named(fmt.Sprint("c", c))[0]
				if c%3 > 0 { // a device, under any name
					w = device(fmt.Sprint("c", rapid.IntRange(0, 20).Draw(t, "name")), fmt.Sprintf("00:00:00:00:00:%02x", c+1), "")
				}
				wants = append(wants, w)
			}
			slot, _ := b.Assign(wants)
			now := map[int]bool{}
			for i, s := range slot {
				before, had := was[which[i]]
				if s < 0 || s >= Count || now[s] || had && before != s {
					t.Fatalf("carrier %d: slot %d of %v, before %d (%v)", which[i], s, slot, before, had)
				}
				now[s] = true
			}
			for c, s := range was { // whose slot was given away
				if now[s] && !slices.Contains(which, c) {
					delete(was, c)
				}
			}
			for i, c := range which {
				was[c] = slot[i]
			}
			if err := b.Save(); err != nil {
				t.Fatal(err)
			}
			again, notes, err := Load(dir)
			if err != nil || len(notes) > 0 || !slices.Equal(again.entries, b.entries) {
				t.Fatalf("read back: %+v, %q, %v\nwant %+v", again, notes, err, b.entries)
			}
			b = again
		}
	})
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	start(t, dir, named("a", "b")...)
	file := filepath.Join(dir, fileName)
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	start(t, dir, named("b", "a")...)
	if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was written again though nothing changed (%v)", err)
	}

	b, _ := load(t, "/proc/no-such-directory")
	if slot, _ := b.Assign(named("a")); slot[0] != 0 || b.Save() == nil || b.Save() == nil {
		t.Errorf("slots %v, and no error of Save every time", slot)
	}
	if err := os.Mkdir(filepath.Join(dir, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "x", fileName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(filepath.Join(dir, "x")); err == nil {
		t.Error("an unreadable file was taken for a wrong one")
	}
}
