package scenario

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fogplr/fogplr/internal/tables"
	"github.com/fogplr/fogplr/test/lab"
)

// What a fault happens to.
const (
	ofCarrier = "carrier"
	ofGateway = "gateway"
	ofRobot   = "robot"
)

// rule says what a kind of fault needs, and what no other fault can have while it
// lasts.
type rule struct {
	kind  Kind
	of    string
	lasts bool // false for one that undoes itself
	holds []string
}

var rules = []rule{
	{BlackHole, ofCarrier, true, nil}, // its directions
	{LinkDown, ofCarrier, true, []string{"interface"}},
	{Unplug, ofCarrier, true, []string{"cable"}},
	{AddressChange, ofCarrier, false, []string{"interface"}},
	{Replug, ofCarrier, false, []string{"interface", "cable"}},
	{NATRebind, ofCarrier, false, nil},
	{GatewayKill, ofGateway, true, []string{"daemon", "programs"}},
	{GatewayStop, ofGateway, true, []string{"daemon", "programs"}},
	{GatewayRestart, ofGateway, false, []string{"daemon"}},
	{ServerStop, ofGateway, true, []string{"programs"}},
	{ServerKill, ofGateway, true, []string{"programs"}},
	{RobotRestart, ofRobot, false, []string{"daemon"}},
}

// fault is a Fault with what it is checked by.
type fault struct {
	Fault
	t     *tables.Table
	holds []string
	end   time.Duration // when it is over, At for one that undoes itself
}

// faultReader has what faults refer to.
type faultReader struct {
	s                  *Scenario
	carriers, gateways names
	tun                string            // the overlay's own interface
	owners             map[string]string // which carrier has an interface's name
}

func readFaults(t *tables.Table, s *Scenario, carriers, gateways names, tun string) {
	r := faultReader{s, carriers, gateways, tun, map[string]string{}}
	for _, name := range carriers.list {
		r.owners[name] = name
	}
	var all []*fault
	for _, f := range t.Tables("fault", 1, maxFaults) {
		if one := r.read(f); one != nil {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b *fault) int { return cmp.Compare(a.At, b.At) })
	checkOverlap(all)
	for _, f := range all {
		s.Faults = append(s.Faults, f.Fault)
	}
}

// read reads a fault; nil when its time is not known, or its kind, and so not which
// keys it may have.
func (r *faultReader) read(t *tables.Table) *fault {
	f := &fault{t: t}
	timed := r.readAt(f)
	var kinds []Kind
	for i := range rules {
		kinds = append(kinds, rules[i].kind)
	}
	var ok bool
	if f.Kind, ok = tables.OneOf(t, "do", kinds...); !ok {
		return nil
	}
	rule := rules[slices.Index(kinds, f.Kind)]
	f.end = f.At
	if rule.lasts {
		f.For = t.Duration("for", minPositive, maxDuration, 0)
		f.end += f.For
		if f.For == 0 {
			f.end = math.MaxInt64
		}
	} else {
		refuse(t, "for", fmt.Sprintf("a fault %s undoes itself", f.Kind))
	}
	f.Carrier = r.target(f, rule.of, ofCarrier, &r.carriers)
	f.Gateway = r.target(f, rule.of, ofGateway, &r.gateways)
	r.readDirection(f)
	r.readAs(f)
	r.checkNAT(f)
	if slices.Contains(rule.holds, "programs") {
		r.checkPauses(f)
	}
	for _, what := range rule.holds {
		f.hold(what)
	}
	finish(t)
	if !timed {
		return nil
	}
	return f
}

// readAt reads when the fault happens and reports whether that is known.
func (r *faultReader) readAt(f *fault) bool {
	before := f.t.Problems()
	f.t.Need("at", `a time after the start of the workloads, such as "5s"`)
	f.At = f.t.Duration("at", 0, maxDuration, 0)
	if f.At >= r.s.Duration && f.t.Problems() == before {
		f.t.Wrong("at", fmt.Sprintf("a time before the end, which is at %q", tables.ShowTime(r.s.Duration)))
	}
	return f.t.Problems() == before
}

// target reads key if the fault is of such, and refuses it otherwise.
func (r *faultReader) target(f *fault, of, key string, known *names) string {
	if of == key {
		return known.refer(f.t, key, true)
	}
	refuse(f.t, key, fmt.Sprintf("a fault %s happens to a %s", f.Kind, of))
	return ""
}

func (r *faultReader) readDirection(f *fault) {
	if f.Kind != BlackHole {
		refuse(f.t, "direction", fmt.Sprintf("a fault %s has both", f.Kind))
		return
	}
	f.Direction = tables.Choice(f.t, "direction", BothWays, BothWays, Up, Down)
	for _, d := range []Direction{Up, Down} {
		if f.Direction == BothWays || f.Direction == d {
			f.hold(string(d))
		}
	}
}

// readAs reads the new name of a replugged interface.
func (r *faultReader) readAs(f *fault) {
	if f.Kind != Replug {
		refuse(f.t, "as", fmt.Sprintf("a fault %s leaves the interface its name", f.Kind))
		return
	}
	s, ok := uplink(f.t, "as", r.tun)
	if !ok {
		return
	}
	if owner, taken := r.owners[s]; taken && owner != f.Carrier {
		f.t.Wrong("as", fmt.Sprintf("a name that no other carrier has; this one belongs to carrier %q", owner))
		return
	}
	r.owners[s] = f.Carrier
	f.As = s
}

// checkNAT reports what the laboratory's translators cannot do.
func (r *faultReader) checkNAT(f *fault) {
	if f.Kind != NATRebind && f.Kind != AddressChange {
		return
	}
	for i := range r.s.Carriers {
		c := &r.s.Carriers[i]
		if c.Interface == "" || c.Interface != f.Carrier {
			continue
		}
		switch {
		case c.NAT.Kind == lab.FullCone:
			f.t.Wrong("do", fmt.Sprintf("another kind of fault, or another nat for carrier %q: the full cone of the laboratory always leads to the same address and ports", c.Interface))
		case c.NAT.Kind == lab.NoNAT && f.Kind == NATRebind:
			f.t.Wrong("do", fmt.Sprintf("another kind of fault, or a nat for carrier %q, which has none", c.Interface))
		}
	}
}

// checkPauses reports a fault of programs that pauses would undo.
func (r *faultReader) checkPauses(f *fault) {
	for i := range r.s.Gateways {
		if g := &r.s.Gateways[i]; g.Name != "" && g.Name == f.Gateway && g.PauseEvery > 0 && g.PauseFor > 0 {
			f.t.Wrong(ofGateway, "a gateway without pause_every, since its pauses stop the same programs and let them go on")
		}
	}
}

// hold notes something that no other fault can have meanwhile.
func (f *fault) hold(what string) {
	if target := f.Carrier + f.Gateway; target != "" || f.Kind == RobotRestart {
		f.holds = append(f.holds, what+" of "+target)
	}
}

// checkOverlap reports faults, sorted by time, that come while another one still
// has what they need.
func checkOverlap(all []*fault) {
	holders := map[string]*fault{}
	for _, f := range all {
		for _, what := range f.holds {
			other := holders[what]
			if other == nil || other.end < f.At {
				holders[what] = f
				continue
			}
			expected := fmt.Sprintf("a time after %q, when that is over", tables.ShowTime(other.end))
			if other.end == math.MaxInt64 {
				expected = `a time before that, or a "for" there`
			}
			f.t.Fail("at", fmt.Sprintf("%s, when the %s of line %d lasts", tables.Show(f.t.Value("at")), other.Kind, other.t.Line), expected)
			break
		}
	}
}
