package carriers

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/slots"
	"github.com/fogplr/fogplr/routing"
)

// part is a device of the model, which never mixes it up with another.
type part struct {
	index   int // 0 while it is unplugged
	name    string
	mac     string // as it shows now
	bus     string
	pinned  bool // to its name: it has nothing else that lasts
	fresh   bool // its MAC is made up at every plug
	leads   bool
	slot    int
	plugged int // how often
}

func (p *part) plug(index int) {
	p.index, p.plugged = index, p.plugged+1
	if p.fresh {
		p.mac = fmt.Sprintf("02:00:00:00:%02x:%s", p.plugged, p.name[1:])
	}
}

// world has every way to be told apart: by MAC, by bus and shared MAC, by bus and
// a MAC that changes, by name alone, by name since the MAC changes.
func world() []*part {
	const shared = "0c:5b:8f:27:9a:64"
	w := []*part{
		{name: "n00", mac: "0c:00:00:00:00:01"}, {name: "n01", mac: "0c:00:00:00:00:02", bus: "1-1"},
		{name: "n02", mac: shared, bus: "1-2"}, {name: "n03", mac: shared, bus: "1-3"},
		{name: "n04", fresh: true, bus: "1-4"}, {name: "n05", bus: "1-5"},
		{name: "ppp0", pinned: true}, {name: "tap0", pinned: true, fresh: true},
	}
	for i, p := range w {
		p.slot, p.leads = slots.None, true
		p.plug(i + 10)
	}
	return w
}

func look(t *rapid.T, w []*part) []routing.Interface {
	var list []routing.Interface
	for _, p := range w {
		if p.index > 0 {
			list = append(list, routing.Interface{Index: p.index, Name: p.name, MAC: p.mac, Bus: p.bus, Kind: "ethernet", Leads: p.leads})
		}
	}
	return rapid.Permutation(list).Draw(t, "order")
}

// Whatever is renamed, unplugged and plugged again, also across restarts: a device
// keeps its slot, and what is plugged and leads is a carrier.
func TestSlotsFollowDevices(t *testing.T) {
	cfg, dir := robot(t, ""), t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		state := filepath.Join(dir, rapid.StringMatching("[a-z]{16}").Draw(t, "state"))
		w, next := world(), 100
		book, _, err := slots.Load(state)
		if err != nil {
			t.Fatal(err)
		}
		chooser := New(book)
		ids := map[int]string{}
		for n := range rapid.IntRange(1, 30).Draw(t, "steps") {
			p := rapid.SampledFrom(w).Draw(t, "part")
			action := rapid.SampledFrom([]string{"rename", "plug", "lead", "restart"}).Draw(t, "action")
			switch {
			case n == 0: // all are seen once, so that twins are known for twins
			case action == "rename" && !p.pinned:
				q := rapid.SampledFrom(w[:6]).Draw(t, "other")
				p.name, q.name = q.name, p.name
			case action == "plug" && p.index > 0:
				p.index = 0
			case action == "plug":
				next++
				p.plug(next)
			case action == "lead":
				p.leads = !p.leads
			case action == "restart":
				if book, _, err = slots.Load(state); err != nil {
					t.Fatal(err)
				}
				chooser = New(book)
			}
			choice := chooser.Choose(cfg, look(t, w))
			if err := book.Save(); err != nil {
				t.Fatal(err)
			}
			sane(t, choice)
			for _, p := range w {
				i := slices.IndexFunc(choice.Carriers, func(c Carrier) bool { return c.Index == p.index && p.index > 0 })
				if i < 0 {
					if p.index > 0 && p.leads {
						t.Fatalf("%+v is not chosen: %+v", p, choice)
					}
					continue
				}
				c := choice.Carriers[i]
				if p.slot == slots.None {
					p.slot, ids[c.Slot] = c.Slot, c.ID
				}
				if c.Slot != p.slot || c.Interface != p.name || c.ID != ids[c.Slot] {
					t.Fatalf("%+v is now %+v", p, c)
				}
			}
		}
	})
}

// sane checks what is always true.
func sane(t *rapid.T, c Choice) {
	slot, index, id := map[int]bool{}, map[int]bool{}, map[string]bool{}
	for n, k := range c.Carriers {
		if k.Slot < 0 || k.Slot >= slots.Count || slot[k.Slot] || k.Index > 0 && index[k.Index] || id[k.ID] || n > 0 && c.Carriers[n-1].Slot > k.Slot {
			t.Fatalf("carrier %+v of %+v", k, c.Carriers)
		}
		if (k.Index == 0) != (k.Problem != "") || k.Interface == "" {
			t.Fatalf("carrier %+v", k)
		}
		slot[k.Slot], index[k.Index], id[k.ID] = true, true, true
	}
}

// Any configuration on any machine: never two carriers on one interface, never two
// of one slot, never the overlay itself; and what matches is what a naive reading
// of the rules says.
func TestAnyConfiguration(t *testing.T) {
	names := rapid.SampledFrom([]string{"a0", "a1", "b0", "b1", "plr0", "lo"})
	kinds := rapid.SampledFrom([]string{"ethernet", "usb", "loopback", "tun"})
	macs := rapid.SampledFrom([]string{"", "00:00:00:00:00:00", "02:00:00:00:00:01", "0C:00:00:00:00:02"})
	pattern := rapid.Map(rapid.SampledFrom([]string{"name:a0", "name:a*", "name:*0", "name:*", "kind:usb", "kind:loopback", "mac:0c:*", "mac:02:00:00:00:00:01", "bus:1-*"}),
		func(s string) config.Selector { x, _ := config.ParseSelector(s); return x })
	block := rapid.Custom(func(t *rapid.T) config.Carrier {
		return config.Carrier{Cost: 1, Selectors: rapid.SliceOfNDistinct(pattern, 1, 3, func(s config.Selector) config.Property { return s.By }).Draw(t, "selectors")}
	})
	rapid.Check(t, func(t *rapid.T) {
		chooser := New(new(slots.Book))
		for range rapid.IntRange(1, 4).Draw(t, "looks") {
			cfg := &config.Robot{
				Node:      config.Node{Interface: "plr0"},
				Carriers:  rapid.SliceOfNDistinct(block, 0, 4, func(c config.Carrier) string { return c.Title() }).Draw(t, "carriers"),
				Discovery: config.Discovery{Allow: rapid.SliceOfN(pattern, 0, 2).Draw(t, "allow"), Deny: rapid.SliceOfN(pattern, 0, 2).Draw(t, "deny")},
			}
			var list []routing.Interface
			for n, name := range rapid.SliceOfDistinct(names, rapid.ID).Draw(t, "names") {
				i := routing.Interface{Index: rapid.IntRange(0, 2).Draw(t, "index")*10 + n, Name: name, Kind: kinds.Draw(t, "kind"), MAC: macs.Draw(t, "mac"),
					Bus: rapid.SampledFrom([]string{"", "1-1", "1-2"}).Draw(t, "bus"), Leads: rapid.Bool().Draw(t, "leads")}
				if rapid.Bool().Draw(t, "out") {
					i.Excluded = "no good"
				}
				list = append(list, i)
			}
			choice := chooser.Choose(cfg, list)
			sane(t, choice)
			for _, i := range list {
				chosen := slices.ContainsFunc(choice.Carriers, func(c Carrier) bool { return c.Index == i.Index && i.Index > 0 })
				must, may := naive(cfg, i)
				if chosen && !may || must && !chosen {
					t.Fatalf("%+v: chosen %v, must %v, may %v\n%+v\n%+v", i, chosen, must, may, cfg, choice)
				}
			}
			for _, c := range cfg.Carriers {
				if name := c.Name(); name != "" && !slices.ContainsFunc(choice.Carriers, func(c Carrier) bool { return c.Interface == name || c.Index > 0 }) {
					t.Fatalf("%s is not listed: %+v", name, choice)
				}
			}
		}
	})
}

// naive says whether an interface must be a carrier, and whether it may, for what
// it was before.
func naive(cfg *config.Robot, i routing.Interface) (must, may bool) {
	if i.Index == 0 || i.Name == "plr0" {
		return false, false
	}
	any := func(list []config.Selector) bool {
		return slices.ContainsFunc(list, func(s config.Selector) bool { return matches(s, &i) })
	}
	if len(cfg.Carriers) == 0 {
		if any(cfg.Discovery.Deny) || i.Kind == "loopback" {
			return false, false
		}
		return i.Leads && (i.Excluded == "" || any(cfg.Discovery.Allow)), i.Excluded == "" || len(cfg.Discovery.Allow) > 0
	}
	for _, c := range cfg.Carriers {
		barred := c.Outright() == "" && (any(cfg.Discovery.Deny) || i.Kind == "loopback")
		every := !slices.ContainsFunc(c.Selectors, func(s config.Selector) bool { return !matches(s, &i) })
		must, may = must || every && !barred, may || !barred // it may have matched before
	}
	return must, may
}
