package routing

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"
)

func familyName(v6 bool) string {
	if v6 {
		return "IPv6"
	}
	return "IPv4"
}

// report says what the plan means, given what could not be done.
func (c carrierPlan) report(v *view, failed failures) Carrier {
	r := Carrier{Interface: c.want.Interface, Slot: c.want.Slot, Index: c.link.index,
		Reached: make(map[netip.Addr]bool, len(c.want.Endpoints)), Problem: c.problem}
	table := TableBase + c.want.Slot
	warnings := append([]string(nil), c.warnings...)
	reached := map[bool]map[netip.Addr]bool{}
	for i, f := range []familyPlan{c.ipv4, c.ipv6} {
		v6 := i == 1
		reached[v6] = f.with
		err := failed.tables[familyKey{table, v6}]
		switch {
		case !f.usesTable():
		case err == nil:
			r.Table = table
		default:
			reached[v6] = f.bound
			warnings = append(warnings, refusal(c.want.Interface, table, v6, err))
		}
	}
	r.Usable4, r.Usable6 = usable(reached[false]), usable(reached[true])
	for _, e := range c.want.Endpoints {
		a := e.Unmap().WithZone("")
		r.Reached[e] = reached[!a.Is4()][a]
	}
	if err := failed.loose[c.want.Interface]; err != nil {
		warnings = append(warnings, strictWarning(c.want.Interface, err))
	}
	if c.problem == "" && !r.Usable4 && !r.Usable6 {
		r.Problem = c.explain(v, warnings)
	}
	r.Warning = strings.Join(warnings, " ")
	return r
}

func refusal(name string, table int, v6 bool, err error) string {
	if errors.Is(err, unix.EEXIST) {
		return fmt.Sprintf("Routing table %d, which fogplr uses for %s, holds another program's routes. Let that program use another table.",
			table, name)
	}
	return fmt.Sprintf("The kernel refused the %s routes or rules for %s (%s). Its sockets are only bound to it, which other "+
		"programs' rules may divert.", familyName(v6), name, why(err))
}

func strictWarning(name string, err error) string {
	return fmt.Sprintf("The kernel checks the way back strictly (rp_filter=1) and drops answers that arrive by %s, because it would "+
		"send to their source by another interface. fogplr could not change that (%s). Set it with `sysctl -w %s=%d`.",
		name, why(err), rpFilterKey(name), rpLoose)
}

// explain is the problem of a carrier that is up and yet reaches nothing.
func (c carrierPlan) explain(v *view, warnings []string) string {
	name := c.want.Interface
	need4, need6 := !c.anyEndpoints, !c.anyEndpoints
	var first netip.Addr
	for _, e := range c.want.Endpoints {
		a := e.Unmap()
		need4, need6 = need4 || a.Is4(), need6 || !a.Is4()
		if !first.IsValid() && ((a.Is4() && c.ipv4.hasAddress) || (!a.Is4() && c.ipv6.hasAddress)) {
			first = a
		}
	}
	if (!need4 || !c.ipv4.hasAddress) && (!need6 || !c.ipv6.hasAddress) {
		kind := "IPv4 or IPv6"
		switch {
		case !need6:
			kind = "IPv4"
		case !need4:
			kind = "IPv6"
		}
		return fmt.Sprintf("%s has no %s address to send from. Wait for its network to give it one, or set one.", name, kind)
	}
	if len(warnings) > 0 && (c.ipv4.usesTable() || c.ipv6.usesTable()) {
		return fmt.Sprintf("%s cannot be used: its routes are refused.", name)
	}
	if v.noRules4 && c.ipv4.hasAddress {
		return fmt.Sprintf("There is no route through %s in the main table, and this kernel has no policy routing. "+
			"Add one with `ip route add default via GATEWAY dev %s metric 1000`.", name, name)
	}
	if !first.IsValid() {
		return fmt.Sprintf("There is no default route through %s. Add one with `ip route add default via GATEWAY dev %s metric 1000`.", name, name)
	}
	return fmt.Sprintf("There is no route through %s to %s. Add one with `%s route add default via GATEWAY dev %s metric 1000`.",
		name, first, ip(!first.Is4()), name)
}
