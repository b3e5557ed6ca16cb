package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/tables"
	"github.com/fogplr/fogplr/test/lab"
)

// CheckFault says what is wrong with a fault that is injected by hand into this
// scenario's laboratory.
func (s *Scenario) CheckFault(f *Fault) error {
	var kinds, carriers, gateways []string
	for i := range rules {
		kinds = append(kinds, string(rules[i].kind))
	}
	for i := range s.Carriers {
		carriers = append(carriers, s.Carriers[i].Interface)
	}
	for i := range s.Gateways {
		gateways = append(gateways, s.Gateways[i].Name)
	}
	i := slices.Index(kinds, string(f.Kind))
	if i < 0 {
		return fmt.Errorf("there is no fault %q; there are %s", f.Kind, strings.Join(kinds, ", "))
	}
	for _, target := range []struct {
		of, name string
		known    []string
	}{{ofCarrier, f.Carrier, carriers}, {ofGateway, f.Gateway, gateways}} {
		switch needed := rules[i].of == target.of; {
		case needed && !slices.Contains(target.known, target.name):
			return fmt.Errorf("%s happens to a %s: name one of %s", f.Kind, target.of, strings.Join(target.known, ", "))
		case !needed && target.name != "":
			return fmt.Errorf("%s does not happen to a %s", f.Kind, target.of)
		}
	}
	switch {
	case f.For < 0:
		return fmt.Errorf("a fault cannot last %v", f.For)
	case f.For > 0 && !rules[i].lasts:
		return fmt.Errorf("%s undoes itself, so that it does not last for %v", f.Kind, f.For)
	case !slices.Contains([]Direction{BothWays, Up, Down}, f.Direction):
		return fmt.Errorf("a link has no direction %q; there are both, up and down", f.Direction)
	case f.As != "" && f.Kind != Replug:
		return fmt.Errorf("%s gives no new name", f.Kind)
	case f.As != "" && f.As != f.Carrier && slices.Contains(carriers, f.As):
		return fmt.Errorf("%s is another carrier's name", f.As)
	case f.As != "" && (!tables.ValidInterface(f.As) || f.As == config.DefaultInterface || slices.Contains(kernelNames, f.As)):
		return fmt.Errorf("%q cannot be the name of a carrier", f.As)
	case f.Kind == NATRebind && s.carrier(f.Carrier).NAT.Kind == lab.NoNAT:
		return fmt.Errorf("%s has no NAT to rebind", f.Carrier)
	case (f.Kind == NATRebind || f.Kind == AddressChange) && s.carrier(f.Carrier).NAT.Kind == lab.FullCone:
		return fmt.Errorf("%s has a full cone, which always leads to the same address and ports", f.Carrier)
	}
	return nil
}

// Lasts says whether a fault of the kind goes on until it is undone.
func (k Kind) Lasts() bool {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.kind == k })
	return i >= 0 && rules[i].lasts
}

func (s *Scenario) carrier(name string) *Carrier {
	return &s.Carriers[slices.IndexFunc(s.Carriers, func(c Carrier) bool { return c.Interface == name })]
}
