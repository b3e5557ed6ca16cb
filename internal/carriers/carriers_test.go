package carriers

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/slots"
	"github.com/fogplr/fogplr/routing"
)

// robot reads a configuration: blocks and [discovery] behind the rest.
func robot(t testing.TB, blocks string) *config.Robot {
	t.Helper()
	cfg, err := config.ParseRobot("robot.toml", `name = "r"
address = "10.77.0.2/16"
private_key_file = "k"
[[gateway]]
name = "west"
address = "10.77.0.11"
public_key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
endpoint = "198.51.100.10:51820"
`+blocks)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// The interfaces of a robot. Every test may change its copy.
func machine() map[string]*routing.Interface {
	list := []routing.Interface{
		{Index: 1, Name: "lo", Kind: "loopback", Up: true, Excluded: "the loopback device, which leads nowhere"},
		{Index: 2, Name: "eth0", Kind: "ethernet", MAC: "0c:00:00:00:00:02", Driver: "igb", Bus: "pci0000:00/0000:01:00.0", Up: true, Leads: true,
			Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.1.7/24"), netip.MustParsePrefix("2001:db8::7/64")}},
		{Index: 3, Name: "eth1", Kind: "ethernet", MAC: "0c:00:00:00:00:03", Driver: "igb", Bus: "pci0000:00/0000:01:00.1", Up: true, Excluded: "a member of br0, which has its addresses"},
		{Index: 4, Name: "wlan0", Kind: "wifi", MAC: "0c:00:00:00:00:04", Driver: "iwlwifi", Bus: "pci0000:00/0000:02:00.0", Up: true, Leads: true},
		{Index: 5, Name: "usb0", Kind: "usb", MAC: "0c:5b:8f:27:9a:64", Driver: "cdc_ether", Bus: "pci0000:00/usb1/1-1", Up: true, Leads: true},
		{Index: 6, Name: "usb1", Kind: "usb", MAC: "0c:5b:8f:27:9a:64", Driver: "cdc_ether", Bus: "pci0000:00/usb1/1-2", Up: true, Leads: true},
		{Index: 7, Name: "wg0", Kind: "wireguard", Up: true, Leads: true, Excluded: "a WireGuard tunnel, which itself needs an uplink"},
		{Index: 8, Name: "plr0", Kind: "tun", Up: true, Leads: true, Excluded: "fogplr's own overlay device"},
		{Index: 9, Name: "ppp0", Kind: "ppp", Up: true},
	}
	m := map[string]*routing.Interface{}
	for i := range list {
		m[list[i].Name] = &list[i]
	}
	return m
}

func all(m map[string]*routing.Interface) (list []routing.Interface) {
	for _, i := range m {
		list = append(list, *i) // in any order
	}
	return list
}

// summary writes a choice as "0=eth0 1=(usb0)", with what is not there in brackets.
func summary(c Choice) string {
	var parts []string
	for _, k := range c.Carriers {
		name := k.Interface
		if k.Index == 0 {
			name = "(" + name + ")"
		}
		parts = append(parts, fmt.Sprintf("%d=%s", k.Slot, name))
	}
	return strings.Join(parts, " ")
}

// What is chosen at the first look.
func TestFirstChoice(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		want   string // by name, since slots follow
		say    []string
	}{
		"discovery":             {"", "eth0 usb0 usb1 wlan0", nil},
		"allow an excluded one": {"[discovery]\nallow = ['name:wg0']", "eth0 usb0 usb1 wg0 wlan0", nil},
		"allow what leads nowhere, loopback and the overlay": {"[discovery]\nallow = ['name:eth1', 'name:lo', 'name:plr0']", "eth0 usb0 usb1 wlan0", nil},
		"deny by name":         {"[discovery]\ndeny = ['name:u*']", "eth0 wlan0", nil},
		"deny by kind":         {"[discovery]\ndeny = ['kind:wifi']", "eth0 usb0 usb1", nil},
		"deny by driver":       {"[discovery]\ndeny = ['driver:cdc_*']", "eth0 wlan0", nil},
		"deny by MAC":          {"[discovery]\ndeny = ['mac:0C:5B:*']", "eth0 wlan0", nil},
		"deny by bus":          {"[discovery]\ndeny = ['bus:*/usb1/1-2']", "eth0 usb0 wlan0", nil},
		"deny by address":      {"[discovery]\ndeny = ['cidr:192.168.0.0/16']", "usb0 usb1 wlan0", nil},
		"deny by IPv6 address": {"[discovery]\ndeny = ['cidr:2001:db8::/32']", "usb0 usb1 wlan0", nil},
		"deny goes first":      {"[discovery]\nallow = ['kind:wireguard']\ndeny = ['name:wg*']", "eth0 usb0 usb1 wlan0", nil},

		"names": {"[[carrier]]\ninterface = 'eth0'\n[[carrier]]\ninterface = 'wwan0'", "(wwan0) eth0", nil},
		"names of any kind, even denied": {"[[carrier]]\ninterface = 'wg0'\n[[carrier]]\ninterface = 'eth1'\n[[carrier]]\ninterface = 'lo'\n[discovery]\ndeny = ['name:w*']", "eth1 lo wg0",
			[]string{`wg0 is a carrier although deny has "name:w*", since the [[carrier]] with interface = "wg0" names it.`}},
		"patterns take what matches, leading or not":                    {"[[carrier]]\ninterface = '*[pb]0'", "ppp0 usb0", nil},
		"patterns do not take loopback, the overlay and what is denied": {"[[carrier]]\ninterface = '[lpw]*'\n[discovery]\ndeny = ['kind:wireguard']", "ppp0 wlan0", nil},
		"kind":   {"[[carrier]]\nkind = 'usb'", "usb0 usb1", nil},
		"driver": {"[[carrier]]\ndriver = 'igb'\n[discovery]\ndeny = ['name:eth1']", "eth0", nil},
		"MAC":    {"[[carrier]]\nmac = '0C-00-00-00-00-02'", "eth0", nil},
		"bus":    {"[[carrier]]\nbus = '*/1-2'", "usb1", nil},
		"all of several": {"[[carrier]]\nkind = 'usb'\ninterface = '*1'\n[[carrier]]\nkind = 'usb'\ninterface = 'eth0'", "usb1",
			[]string{`No interface is left for the [[carrier]] with interface = "eth0", kind = "usb". One that matches is used as soon as it appears.`}},
		"the first that matches has it": {"[[carrier]]\nbus = '*/1-2'\nlabel = 'B'\n[[carrier]]\nkind = 'usb'\n[[carrier]]\ninterface = 'usb1'", "(usb1) usb0 usb1", []string{
			`Both the [[carrier]] with bus = "*/1-2" (B) and the [[carrier]] with kind = "usb" match usb1: the first one in the file has it.`,
			`Both the [[carrier]] with bus = "*/1-2" (B) and the [[carrier]] with interface = "usb1" match usb1: the first one in the file has it.`,
		}},
		"what discovery would leave out is told": {"[[carrier]]\ndriver = 'igb'", "eth0 eth1", []string{
			`eth1 is a carrier because of the [[carrier]] with driver = "igb". Discovery would leave it out (a member of br0, which has its addresses). To do so here, name it in deny of [discovery].`,
		}},
		"missing": {"[[carrier]]\nkind = 'bond'\nlabel = 'A'", "",
			[]string{`No interface is left for the [[carrier]] with kind = "bond" (A). One that matches is used as soon as it appears.`}},
	} {
		got := New(new(slots.Book)).Choose(robot(t, c.config), all(machine()))
		var names []string
		for i, k := range got.Carriers {
			name := k.Interface
			if k.Index == 0 {
				name = "(" + name + ")"
				if !strings.HasPrefix(k.Problem, "There is no interface "+k.Interface+" now.") {
					t.Errorf("%s: problem %q", name, k.Problem)
				}
			} else if k.Problem != "" {
				t.Errorf("%s: problem %q", name, k.Problem)
			}
			if k.Slot != i || k.ID == "" || k.Cost != 1 || k.Metered() {
				t.Errorf("%s: %+v", name, k)
			}
			names = append(names, name)
		}
		slices.Sort(names)
		if s := strings.Join(names, " "); s != c.want {
			t.Errorf("%s: got %s, want %s", name, s, c.want)
		}
		if said := append(got.Missing, got.Notes...); !slices.Equal(said, c.say) {
			t.Errorf("%s: said %q, want %q", name, said, c.say)
		}
	}
}

func TestSettings(t *testing.T) {
	cfg := robot(t, "[[carrier]]\nkind = 'usb'\nlabel = 'A'\ncost = 3\nmonthly_cap = '5GB'\ndns = ['9.9.9.9']\n[[carrier]]\ninterface = 'eth0'")
	got := New(new(slots.Book)).Choose(cfg, all(machine())).Carriers
	want := []Carrier{
		{Slot: 0, ID: "name:eth0", Interface: "eth0", Index: 2, Cost: 1},
		{Slot: 1, ID: "bus:pci0000:00/usb1/1-1", Interface: "usb0", Index: 5, Label: "A", Cost: 3, MonthlyCap: 5e9, DNS: []netip.Addr{netip.MustParseAddr("9.9.9.9")}},
		{Slot: 2, ID: "bus:pci0000:00/usb1/1-2", Interface: "usb1", Index: 6, Label: "A", Cost: 3, MonthlyCap: 5e9, DNS: []netip.Addr{netip.MustParseAddr("9.9.9.9")}},
	}
	if !reflect.DeepEqual(got, want) || !got[1].Metered() {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// step is something that happens to the machine, and what is chosen after it.
type step struct {
	what   func(m map[string]*routing.Interface)
	config string // a new one, if not empty; "none" is one without carriers
	want   string
	say    string // part of all that is said, or nothing is
}

func rename(from, to string) func(m map[string]*routing.Interface) {
	return func(m map[string]*routing.Interface) { m[from].Name = to }
}

func swap(a, b string) func(m map[string]*routing.Interface) {
	return func(m map[string]*routing.Interface) { m[a].Name, m[b].Name = m[b].Name, m[a].Name }
}

func remove(name string) func(m map[string]*routing.Interface) {
	return func(m map[string]*routing.Interface) { delete(m, name) }
}

// replug gives the interface a new index, as a device that comes back has.
func replug(name string, change func(i *routing.Interface)) func(m map[string]*routing.Interface) {
	return func(m map[string]*routing.Interface) {
		i := *machine()[name]
		i.Index += 100
		change(&i)
		m[name] = &i
	}
}

// tap makes an interface without hardware, and with a random MAC, again.
func tap(index, mac int) func(m map[string]*routing.Interface) {
	return func(m map[string]*routing.Interface) {
		m["tap0"] = &routing.Interface{Index: index, Name: "tap0", Kind: "ethernet", MAC: fmt.Sprintf("02:00:00:00:00:%02x", mac), Leads: true}
	}
}

func edit(name string, change func(i *routing.Interface)) func(m map[string]*routing.Interface) {
	return func(m map[string]*routing.Interface) { change(m[name]) }
}

func idle(i *routing.Interface) { i.Leads, i.Addresses = false, nil }

// What becomes of the carriers while the daemon runs.
func TestChanges(t *testing.T) {
	const found = "0=eth0 1=wlan0 2=usb0 3=usb1"
	const usb = "[[carrier]]\ninterface = 'usb*'"
	const named = "[[carrier]]\ninterface = 'usb0'\n[[carrier]]\ninterface = 'usb1'"
	for name, steps := range map[string][]step{
		"it stops to lead": {{nil, "", found, ""}, {edit("eth0", idle), "", found, ""}},
		"renamed":          {{nil, "", found, ""}, {rename("wlan0", "wlp3s0"), "", "0=eth0 1=wlp3s0 2=usb0 3=usb1", ""}},
		"swapped":          {{nil, "", found, ""}, {swap("usb0", "usb1"), "", "0=eth0 1=wlan0 2=usb1 3=usb0", ""}},
		"vanished and back": {
			{nil, "", found, ""},
			{remove("wlan0"), "", "0=eth0 1=(wlan0) 2=usb0 3=usb1", ""},
			{replug("wlan0", func(i *routing.Interface) { i.Name = "wlan1" }), "", "0=eth0 1=wlan1 2=usb0 3=usb1", ""},
		},
		"back, and not leading yet": {
			{nil, "", found, ""}, {remove("wlan0"), "", "0=eth0 1=(wlan0) 2=usb0 3=usb1", ""}, {replug("wlan0", idle), "", found, ""},
		},
		"back at once": {{nil, "", found, ""}, {replug("wlan0", idle), "", found, ""}},
		"twins re-enumerated": {
			{nil, "", found, ""}, {remove("usb0"), "", "0=eth0 1=wlan0 2=(usb0) 3=usb1", ""}, {remove("usb1"), "", "0=eth0 1=wlan0 2=(usb0) 3=(usb1)", ""},
			{replug("usb1", func(i *routing.Interface) { i.Name = "usb0" }), "", "0=eth0 1=wlan0 2=(usb0) 3=usb0", ""},
			{replug("usb0", func(i *routing.Interface) { i.Name = "usb1" }), "", "0=eth0 1=wlan0 2=usb1 3=usb0", ""},
		},
		"made again and again, each time with another random MAC": {
			{tap(20, 1), "", found + " 4=tap0", ""}, {tap(21, 2), "", found + " 4=tap0", ""},
			{remove("tap0"), "", found + " 4=(tap0)", ""}, {tap(22, 3), "", found + " 4=tap0", ""},
			{rename("tap0", "tap1"), "", found + " 4=tap1", ""}, {remove("tap0"), "", found + " 4=(tap1)", ""},
			{tap(23, 4), "", found + " 4=(tap1) 5=tap0", ""}, // nothing tells it from another one
		},
		"the name goes to another device": {
			{nil, "", found, ""}, {remove("wlan0"), "", "0=eth0 1=(wlan0) 2=usb0 3=usb1", ""},
			{replug("wlan0", func(i *routing.Interface) { i.MAC, i.Bus = "0c:00:00:00:00:44", "pci0000:00/0000:02:00.1" }), "", "0=eth0 1=(wlan0) 2=usb0 3=usb1 4=wlan0", ""},
			{edit("wlan0", func(i *routing.Interface) {
				i.MAC, i.Bus, i.Index = "0c:00:00:00:00:04", "pci0000:00/0000:02:00.0", 204
			}), "", "0=eth0 1=wlan0 2=usb0 3=usb1 4=(wlan0)", ""},
		},
		"excluded later": {{nil, "", found, ""}, {edit("eth0", func(i *routing.Interface) { i.Excluded = "a member of br0" }), "", "1=wlan0 2=usb0 3=usb1", ""}},
		"allowed by an address that goes": {
			{nil, "[discovery]\nallow = ['cidr:192.0.2.0/24']", found, ""},
			{edit("wg0", func(i *routing.Interface) { i.Addresses = []netip.Prefix{netip.MustParsePrefix("192.0.2.5/24")} }), "", found + " 4=wg0", ""},
			{edit("wg0", idle), "", found + " 4=wg0", ""},
			{nil, "none", found, ""},
		},
		"denied by an address that comes": {
			{nil, "[discovery]\ndeny = ['cidr:192.0.2.0/24']", found, ""},
			{edit("usb0", func(i *routing.Interface) { i.Addresses = []netip.Prefix{netip.MustParsePrefix("192.0.2.5/24")} }), "", "0=eth0 1=wlan0 3=usb1", ""},
		},

		"a pattern's is renamed": {
			{nil, usb, "0=usb0 1=usb1", ""},
			{rename("usb0", "modem"), "", "0=modem 1=usb1", `modem does not match the [[carrier]] with interface = "usb*" any more. It stays a carrier until fogplr starts again.`},
			{remove("usb0"), "", "0=(modem) 1=usb1", ""},
			{replug("usb0", func(i *routing.Interface) {}), "", "0=usb0 1=usb1", ""},
		},
		"a pattern's is renamed to a denied name": {{nil, usb + "\n[discovery]\ndeny = ['name:m*']", "0=usb0 1=usb1", ""}, {rename("usb0", "modem"), "", "1=usb1", ""}},
		"a pattern's vanish":                      {{nil, usb, "0=usb0 1=usb1", ""}, {remove("usb1"), "", "0=usb0 1=(usb1)", ""}, {remove("usb0"), "", "0=(usb0) 1=(usb1)", ""}},
		"the names are swapped":                   {{nil, named, "0=usb0 1=usb1", ""}, {swap("usb0", "usb1"), "", "0=usb0 1=usb1", ""}},
		"a named one is renamed": {
			{nil, named, "0=usb0 1=usb1", ""},
			{rename("usb0", "modem"), "", "0=modem 1=usb1", "modem does not match the [[carrier]]"},
			{rename("usb1", "usb0"), "", "0=usb0 1=(usb1)", ""}, // the name decides
			{rename("usb0", "usb1"), "", "0=usb0 1=usb1", ""},
		},
		"a named one vanishes": {{nil, named, "0=usb0 1=usb1", ""}, {remove("usb0"), "", "0=(usb0) 1=usb1", ""}},

		"from discovery to names": {{nil, "", found, ""}, {nil, named, "2=usb0 3=usb1", ""}, {nil, "none", found, ""}},
		"from a pattern to names": {
			{nil, usb, "0=usb0 1=usb1", ""}, {nil, "[[carrier]]\ninterface = 'usb1'\nlabel = 'x'\n[[carrier]]\ninterface = 'usb*'", "0=usb0 1=usb1", "Both the "},
		},
		"a carrier is denied":                  {{nil, "", found, ""}, {nil, "[discovery]\ndeny = ['kind:wifi']", "0=eth0 2=usb0 3=usb1", ""}, {nil, "none", found, ""}},
		"one that has vanished is denied":      {{nil, "", found, ""}, {remove("wlan0"), "[discovery]\ndeny = ['kind:wifi']", "0=eth0 2=usb0 3=usb1", ""}},
		"the block of a vanished one is taken": {{nil, usb, "0=usb0 1=usb1", ""}, {remove("usb1"), "[[carrier]]\ninterface = 'eth*'", "2=eth0 3=eth1", "Discovery would leave it out"}},
	} {
		m := machine()
		cfg := robot(t, "")
		book, _, err := slots.Load(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		chooser := New(book)
		for n, s := range steps {
			if s.what != nil {
				s.what(m)
			}
			if s.config != "" {
				cfg = robot(t, strings.TrimPrefix(s.config, "none"))
			}
			got := chooser.Choose(cfg, all(m))
			said := strings.Join(append(got.Notes, got.Missing...), "\n")
			if summary(got) != s.want || (said == "") != (s.say == "") || !strings.Contains(said, s.say) {
				t.Errorf("%s, step %d: got %s, want %s; said %q, want %q", name, n, summary(got), s.want, said, s.say)
			}
		}
	}
}

// Having no carrier is told, with what to do, and only then.
func TestNone(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		remove []string
		want   []string // parts, none when there are carriers
	}{
		"discovery":                {"", nil, nil},
		"nothing is connected":     {"", []string{"eth0", "wlan0", "usb0", "usb1"}, []string{"This robot has no carrier, so it reaches no gateway: discovery found", "Connect an uplink", "After a change of robot.toml: `fogplr reload --config /"}},
		"all are denied":           {"[discovery]\ndeny = ['name:*']", nil, []string{"discovery found", "`fogplr check --config /"}},
		"nothing matches":          {"[[carrier]]\nkind = 'wwan'", nil, []string{"no interface matches a [[carrier]]", "`fogplr check --config /"}},
		"a named one may yet come": {"[[carrier]]\ninterface = 'wwan0'", nil, nil},
	} {
		m := machine()
		for _, n := range c.remove {
			delete(m, n)
		}
		choice := New(new(slots.Book)).Choose(robot(t, c.config), all(m))
		if (choice.None == "") != (len(c.want) == 0) {
			t.Errorf("%s: %q", name, choice.None)
		}
		for _, part := range c.want {
			if !strings.Contains(choice.None, part) {
				t.Errorf("%s: %q does not say %q", name, choice.None, part)
			}
		}
	}
}

// A carrier whose name another one has by now is not told as if it were that one.
func TestNameOfAnother(t *testing.T) {
	chooser, m, cfg := New(new(slots.Book)), machine(), robot(t, "")
	chooser.Choose(cfg, all(m))
	delete(m, "wlan0")
	problem := func() string { return chooser.Choose(cfg, all(m)).Carriers[1].Problem }
	if got, want := problem(), "The interface wlan0 has vanished. It is used as soon as it is back, under any name."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m["eth1"].Name = "wlan0" // not a carrier itself
	if got, want := problem(), "The device that had slot 1 as wlan0 has gone, and another one has that name now."; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Nine interfaces are one too many; which one is told, and those in use stay.
func TestTooMany(t *testing.T) {
	var list []routing.Interface
	for i := range slots.Count + 12 {
		list = append(list, routing.Interface{Index: i + 10, Name: fmt.Sprint("c", i), Kind: "ethernet", MAC: fmt.Sprintf("0c:00:00:00:00:%02x", i+1), Leads: i > 0})
	}
	chooser := New(new(slots.Book))
	choice := chooser.Choose(robot(t, "[[carrier]]\ninterface = 'c*'\n[[carrier]]\ninterface = '[cd]*'"), list[:slots.Count+1])
	if got := summary(choice); got != "0=c1 1=c2 2=c3 3=c4 4=c5 5=c6 6=c7 7=c8" || !strings.Contains(choice.Notes[1], "these interfaces are not used: c0. Say") {
		t.Errorf("got %s, %q", got, choice.Notes)
	}
	list[0].Leads, list[1].Leads = true, false
	choice = chooser.Choose(robot(t, ""), list)
	if got := summary(choice); got != "0=c1 1=c2 2=c3 3=c4 4=c5 5=c6 6=c7 7=c8" || !strings.Contains(choice.Notes[0], "not used: c0, c9, c10, c11, c12, c13, c14, c15 and 4 others. Say") {
		t.Errorf("got %s, %q", got, choice.Notes)
	}

	// Those that vanish make room, the first one first.
	chooser.Choose(robot(t, ""), slices.Concat(list[1:3], list[4:9]))
	choice = chooser.Choose(robot(t, ""), slices.Concat(list[1:3], list[5:9]))
	if got := summary(choice); got != "0=c1 1=c2 2=(c3) 3=(c4) 4=c5 5=c6 6=c7 7=c8" {
		t.Errorf("got %s", got)
	}
	choice = chooser.Choose(robot(t, ""), slices.Concat(list[1:3], list[5:10]))
	if got := summary(choice); got != "0=c1 1=c2 2=c9 3=(c4) 4=c5 5=c6 6=c7 7=c8" || !slices.Contains(choice.Notes, "All 8 carrier slots have been used, so c9 takes slot 2 of c3, which has been out of use for longest.") {
		t.Errorf("got %s, %q", got, choice.Notes)
	}
	for range 20 { // names come and go, and notes do not pile up
		for i := range list {
			list[i].Index += 100
			list[i].MAC = fmt.Sprintf("0c:00:00:00:%02x:%02x", list[i].Index/100, i+1)
		}
		choice = chooser.Choose(robot(t, ""), list)
	}
	if len(choice.Notes) > maxGiven+1 || len(choice.Carriers) != slots.Count {
		t.Errorf("%d carriers, %d notes", len(choice.Carriers), len(choice.Notes))
	}
}
