package scenario

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fogplr/fogplr/test/lab"
)

// Load reads a scenario file and the traces that it names, so that a mistake in a
// trace is found before anything starts. Its error is a *config.Error with every
// problem of the file.
func Load(file string) (*Scenario, error) {
	d := &document{file: file, traces: newTraces(onDisk)}
	d.read()
	return d.scenario()
}

// Parse is Load for a text. Files that it names are relative to the folder of
// file, which need not exist itself.
func Parse(file, text string) (*Scenario, error) {
	return parse(file, text, onDisk)
}

func parse(file, text string, from source) (*Scenario, error) {
	d := &document{file: file, traces: newTraces(from)}
	d.parse([]byte(text))
	return d.scenario()
}

func (d *document) scenario() (*Scenario, error) {
	if err := d.err(); err != nil {
		return nil, err
	}
	t := d.top()
	s := &Scenario{File: d.file}
	s.Name = t.name("name", fileName(d.file))
	s.Seed = uint64(t.number("seed", 0, 1<<63-1, defaultSeed))
	s.Duration = t.duration("duration", minDuration, maxDuration, defaultDuration)
	var tun string
	s.Robot, tun = t.robotConfig()
	carriers := t.carriers(s, tun)
	gateways := t.gateways(s)
	t.faults(s, carriers, gateways, tun)
	t.workloads(s, gateways)
	t.finish()
	if err := d.err(); err != nil {
		return nil, err
	}
	return s, nil
}

// fileName makes a scenario's name of its file's.
func fileName(file string) string {
	name := strings.Map(func(r rune) rune {
		if nameRune(r) {
			return r
		}
		return '-'
	}, strings.TrimSuffix(filepath.Base(file), ".toml"))
	return name[:min(len(name), maxName)]
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
func (n *names) add(t *table, key, name, expected string) {
	if line, taken := n.lines[name]; taken {
		t.fail(key, strconv.Quote(name)+", as in the table of line "+strconv.Itoa(line), expected)
		return
	}
	if n.lines == nil {
		n.lines = map[string]int{}
	}
	n.list = append(n.list, name)
	n.lines[name] = t.line
}

// refer reads a key that must be one of the names.
func (n *names) refer(t *table, key string, required bool) string {
	var quoted []string
	for _, name := range n.list {
		quoted = append(quoted, strconv.Quote(name))
	}
	expected := "one of " + strings.Join(quoted, ", ")
	if required && !t.has(key) {
		t.missing(key, expected)
	}
	s, ok := t.text(key, expected)
	if ok && !n.partial && !slices.Contains(n.list, s) {
		t.fail(key, show(s), expected)
	}
	return s
}

// carriers reads the carriers; tun is the overlay's own interface.
func (t *table) carriers(s *Scenario, tun string) (known names) {
	tables := t.tables("carrier", maxCarriers)
	if !t.has("carrier") {
		t.doc.report(t.doc.end, "carrier", "no [[carrier]]", `a table [[carrier]] with interface = "NAME" for each uplink of the robot`)
	}
	known.partial = len(tables) == 0
	for _, c := range tables {
		var k Carrier
		name, ok := c.require("interface", interfaceExpected)
		if ok && c.checkInterface("interface", name, tun) {
			k.Interface = name
			known.add(c, "interface", name, "an interface of its own for every carrier")
			c.owner = "carrier " + strconv.Quote(name)
		} else {
			known.partial = true
		}
		k.Raw = choice(c, "kind", "ethernet", "ethernet", "raw-ip") == "raw-ip"
		k.NAT = c.nat()
		k.MTU = int(c.number("interface_mtu", minMTU, maxMTU, 0))
		k.Up, k.Down = c.directions(s.Seed)
		c.finish()
		s.Carriers = append(s.Carriers, k)
	}
	return known
}

func (t *table) nat() (n lab.NAT) {
	n.Kind = choice(t, "nat", lab.NoNAT, lab.FullCone, lab.PortRestricted, lab.Symmetric)
	n.Idle = t.duration("nat_idle", minIdle, maxDuration, 0)
	switch {
	case t.has("nat_idle") && !t.has("nat"):
		t.fail("nat_idle", show(t.m["nat_idle"]), "nat beside it, without which it has no effect")
	case n.Idle%minIdle != 0:
		t.fail("nat_idle", show(t.m["nat_idle"]), `whole seconds, such as "30s"`)
	}
	return n
}

func (t *table) gateways(s *Scenario) (known names) {
	for _, name := range []string{"west", "east"} {
		if !t.has("gateway") {
			s.Gateways = append(s.Gateways, Gateway{Name: name})
			known.list = append(known.list, name)
		}
	}
	tables := t.tables("gateway", maxGateways)
	if t.has("gateway") {
		known.partial = len(tables) == 0
	}
	for _, g := range tables {
		var k Gateway
		if k.Name = g.gatewayName(); k.Name != "" {
			known.add(g, "name", k.Name, "a name of its own for every gateway")
			g.owner = "gateway " + strconv.Quote(k.Name)
		} else {
			known.partial = true
		}
		k.PauseEvery = g.duration("pause_every", minPositive, maxDuration, 0)
		k.PauseFor = g.duration("pause_for", minPositive, maxDuration, 0)
		for _, pair := range [][2]string{{"pause_every", "pause_for"}, {"pause_for", "pause_every"}} {
			if g.has(pair[0]) && !g.has(pair[1]) {
				g.missing(pair[1], "a time, since there is "+pair[0])
			}
		}
		g.finish()
		s.Gateways = append(s.Gateways, k)
	}
	return known
}

// gatewayName reads the name of a gateway, which is also that of its node. It is
// empty when it is missing or wrong.
func (t *table) gatewayName() string {
	const expected = "a name of letters, digits, '-' and '_', at most 12 of them, that begins with a letter or digit"
	s, ok := t.require("name", expected)
	bad := func(r rune) bool { return !nameRune(r) || r == '.' }
	switch {
	case !ok:
	case s == "" || len(s) > maxGatewayName || strings.IndexFunc(s, bad) >= 0 || strings.ContainsAny(s[:1], "-_"):
		t.fail("name", show(s), expected)
	case s == "robot", s == "inet", strings.HasPrefix(s, "nat-"):
		t.fail("name", show(s), "a name that the laboratory does not use itself (robot, inet, nat-a ...)")
	default:
		return s
	}
	return ""
}
