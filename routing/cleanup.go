package routing

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// Report says what Cleanup removed or put back, as lines in the syntax of ip(8)
// and sysctl(8).
type Report struct {
	Changes []string `json:"changes"`
}

// Cleanup removes from the current network namespace everything that a fogplr
// daemon which was killed left behind: rules and routes with Protocol; and puts
// rp_filter back from what is remembered under runtimeDir. The TUN device
// tunName, its addresses and the blackhole routes stay, unless all is set; then
// only the blackhole routes that belong to another fogplr TUN device stay. What
// a daemon needs that runs in the namespace with another TUN device stays, too; one
// that runs with tunName restores its rules and routes, but not its device: see
// InUse. What is gone already is no error.
func Cleanup(runtimeDir, tunName string, all bool, log *slog.Logger) (Report, error) {
	k, err := openKernel()
	if err != nil {
		return Report{}, err
	}
	defer k.close()
	return cleanup(k, runtimeDir, tunName, all, log)
}

func cleanup(k kernel, runtimeDir, tunName string, all bool, log *slog.Logger) (Report, error) {
	r := Report{Changes: []string{}}
	v, err := k.view(nil)
	if err != nil {
		return r, err
	}
	var errs []error
	if all {
		line, err := removeTUN(k, v, tunName)
		if line != "" {
			r.Changes = append(r.Changes, line)
		}
		errs = append(errs, err)
	}
	var spare []netip.Prefix
	if all {
		spare = v.overlays(tunName)
	}
	beside := v.others(tunName)
	lines, err := sweep(k, v, beside, all && errs[0] == nil, spare)
	r.Changes = append(r.Changes, lines...)
	errs = append(errs, err)
	if !beside.robot {
		lines, err = newRPStore(runtimeDir, k).restore(k)
		r.Changes = append(r.Changes, lines...)
		errs = append(errs, err)
	}
	for _, line := range r.Changes {
		log.Info("network configuration changed", "change", line)
	}
	return r, errors.Join(errs...)
}

// removeTUN deletes the overlay's device. An interface of that name that is no
// TUN device is somebody else's.
func removeTUN(k kernel, v *view, name string) (string, error) {
	l, ok := v.link(name)
	if !ok {
		return "", nil
	}
	if !l.isTUN() {
		return "", fmt.Errorf("%s is no TUN device, so it is not fogplr's and stays", name)
	}
	if err := k.delLink(l.index); err != nil && !gone(err) {
		return "", fmt.Errorf("removing %s: %w", name, why(err))
	}
	return "ip link del " + name, nil
}

// sweep deletes all rules and routes with Protocol that no other daemon needs,
// blackhole routes only when asked to, and not those for the prefixes to spare.
func sweep(k kernel, v *view, beside others, blackholes bool, spare []netip.Prefix) (removed []string, err error) {
	var errs []error
	try := func(o op, err error) {
		switch {
		case err == nil:
			removed = append(removed, o.String())
		case !gone(err):
			errs = append(errs, fmt.Errorf("%s: %w", o, why(err)))
		}
	}
	for _, r := range v.rules {
		if r.protocol == Protocol && !beside.need(r) {
			try(op{verb: delRule, rule: r}, k.delRule(r))
		}
	}
	for _, r := range slices.Backward(v.routes) {
		stays := beside.robot && isCarrierTable(r.table)
		if r.kind == unix.RTN_BLACKHOLE {
			stays = !blackholes || slices.Contains(spare, r.dst)
		}
		if r.protocol == Protocol && !stays {
			try(op{verb: delRoute, route: r, name: v.linkName(r.oif)}, k.delRoute(r))
		}
	}
	return removed, errors.Join(errs...)
}
