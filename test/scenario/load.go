package scenario

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fogplr/fogplr/internal/tables"
	"github.com/fogplr/fogplr/test/lab"
)

// Load reads a scenario file and the traces that it names, so that a mistake in a
// trace is found before anything starts. Its error is a *tables.Error with every
// problem of the file.
func Load(file string) (*Scenario, error) {
	if info, err := os.Stat(file); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeDevice|fs.ModeSocket) != 0 {
		return nil, fmt.Errorf("%s is not an ordinary file", file) // reading it might never end
	}
	t, err := tables.Read(file, maxFile, "a readable scenario file")
	if err != nil {
		return nil, err
	}
	return read(t, onDisk)
}

// parse is Load for a text. Files that it names are relative to the folder of
// file, which need not exist itself.
func parse(file, text string, from source) (*Scenario, error) {
	t, err := tables.Parse(file, text, maxFile)
	if err != nil {
		return nil, err
	}
	return read(t, from)
}

func read(t *tables.Table, from source) (*Scenario, error) {
	s := &Scenario{File: t.File()}
	s.Name = name(t, fileName(s.File))
	s.Seed = uint64(t.Integer("seed", 0, 1<<63-1, defaultSeed))
	s.Duration = t.Duration("duration", minDuration, maxDuration, defaultDuration)
	var tun string
	s.Robot, tun = robotConfig(t)
	carriers := readCarriers(t, s, tun, newTraces(from))
	gateways := readGateways(t, s)
	readFaults(t, s, carriers, gateways, tun)
	readWorkloads(t, s, gateways)
	finish(t)
	if err := t.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// SetSeed makes all luck that of another seed, generated traces included.
func (s *Scenario) SetSeed(seed uint64) {
	s.Seed = seed
	for i := range s.Carriers {
		for _, p := range []*lab.Params{&s.Carriers[i].Up, &s.Carriers[i].Down} {
			if p.RTT != nil {
				rtt := *p.RTT
				rtt.Seed = seed
				p.RTT = &rtt
			}
		}
	}
}

// fileName makes a scenario's name of its file's.
func fileName(file string) string {
	name := strings.Map(func(r rune) rune {
		if tables.NameRune(r) {
			return r
		}
		return '-'
	}, strings.TrimSuffix(filepath.Base(file), ".toml"))
	return name[:min(len(name), tables.MaxName)]
}

// names are what faults and workloads may refer to: the carriers or the gateways
// of a file, by name, with the lines of their tables.
type names struct {
	list  []string
	lines map[string]int
	// partial means that one had no usable name, so a name that is not here may
	// still be right.
	partial bool
}

// add notes a name, which must not be there yet; expected is the problem if it is.
func (n *names) add(t *tables.Table, key, name, expected string) {
	if line, taken := n.lines[name]; taken {
		t.Fail(key, strconv.Quote(name)+", as in the table of line "+strconv.Itoa(line), expected)
		return
	}
	if n.lines == nil {
		n.lines = map[string]int{}
	}
	n.list = append(n.list, name)
	n.lines[name] = t.Line
}

// refer reads a key that must be one of the names.
func (n *names) refer(t *tables.Table, key string, required bool) string {
	expected := tables.Choices(n.list)
	if required {
		t.Need(key, expected)
	}
	s, ok := t.Text(key, expected)
	if ok && !n.partial && !slices.Contains(n.list, s) {
		t.Wrong(key, expected)
	}
	return s
}

// readCarriers reads the carriers; tun is the overlay's own interface.
func readCarriers(t *tables.Table, s *Scenario, tun string, read *traces) (known names) {
	t.NeedTables("carrier", `a table [[carrier]] with interface = "NAME" for each uplink of the robot`)
	all := t.Tables("carrier", 1, maxCarriers)
	known.partial = len(all) == 0
	for _, c := range all {
		var k Carrier
		c.Need("interface", tables.InterfaceExpected)
		if name, ok := uplink(c, "interface", tun); ok {
			k.Interface = name
			known.add(c, "interface", name, "an interface of its own for every carrier")
			c.Owner = "carrier " + strconv.Quote(name)
		} else {
			known.partial = true
		}
		k.Raw = tables.Choice(c, "kind", "ethernet", "ethernet", "raw-ip") == "raw-ip"
		k.NAT = nat(c)
		k.MTU = int(c.Integer("interface_mtu", minMTU, maxMTU, 0))
		k.Up, k.Down = directions(c, s.Seed, read)
		finish(c)
		s.Carriers = append(s.Carriers, k)
	}
	return known
}

func nat(t *tables.Table) (n lab.NAT) {
	n.Kind = tables.Choice(t, "nat", lab.NoNAT, lab.FullCone, lab.PortRestricted, lab.Symmetric)
	n.Idle = t.Duration("nat_idle", minIdle, maxDuration, 0)
	switch {
	case t.Has("nat_idle") && !t.Has("nat"):
		t.Wrong("nat_idle", "nat beside it, without which it has no effect")
	case n.Idle%minIdle != 0:
		t.Wrong("nat_idle", `whole seconds, such as "30s"`)
	}
	return n
}

func readGateways(t *tables.Table, s *Scenario) (known names) {
	for _, name := range []string{"west", "east"} {
		if !t.Has("gateway") {
			s.Gateways = append(s.Gateways, Gateway{Name: name})
			known.list = append(known.list, name)
		}
	}
	all := t.Tables("gateway", 1, maxGateways)
	known.partial = t.Has("gateway") && len(all) == 0
	for _, g := range all {
		var k Gateway
		if k.Name = gatewayName(g); k.Name != "" {
			known.add(g, "name", k.Name, "a name of its own for every gateway")
			g.Owner = "gateway " + strconv.Quote(k.Name)
		} else {
			known.partial = true
		}
		k.PauseEvery = g.Duration("pause_every", minPositive, maxDuration, 0)
		k.PauseFor = g.Duration("pause_for", minPositive, maxDuration, 0)
		for _, pair := range [][2]string{{"pause_every", "pause_for"}, {"pause_for", "pause_every"}} {
			if g.Has(pair[0]) {
				g.Need(pair[1], "a time, since there is "+pair[0])
			}
		}
		finish(g)
		s.Gateways = append(s.Gateways, k)
	}
	return known
}

// gatewayName reads the name of a gateway, which is also that of its node. It is
// empty when it is missing or wrong.
func gatewayName(t *tables.Table) string {
	const expected = "a name of letters, digits, '-' and '_', at most 12 of them, that begins with a letter or digit"
	s, ok := t.Require("name", expected)
	bad := func(r rune) bool { return !tables.NameRune(r) || r == '.' }
	switch {
	case !ok:
	case s == "" || len(s) > maxGatewayName || strings.IndexFunc(s, bad) >= 0 || strings.ContainsAny(s[:1], "-_"):
		t.Wrong("name", expected)
	case s == "robot", s == "inet", strings.HasPrefix(s, "nat-"):
		t.Wrong("name", "a name that the laboratory does not use itself (robot, inet, nat-a ...)")
	default:
		return s
	}
	return ""
}
