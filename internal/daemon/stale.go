package daemon

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/tunnel"
)

// oldAddresses has a sentence for each gateway that is still used at an address
// which its endpoint does not mean any more, since what it means now is not found, or
// was never tried: a path that is up stays where it is. meant are the addresses that
// endpoints stand for on each carrier.
func oldAddresses(cfg *config.Robot, meant map[place][]netip.AddrPort, paths []tunnel.PathState) (sentences []string) {
	for i := range cfg.Gateways {
		g := &cfg.Gateways[i]
		var literal []netip.AddrPort
		var names []string
		for _, e := range g.Endpoints {
			if a, ok := e.AddrPort(); ok {
				literal = append(literal, a)
			} else {
				names = append(names, e.Host)
			}
		}
		var old []string
		for _, p := range paths {
			now := meant[place{p.Slot, g.Name}]
			switch at := p.Endpoint.String(); {
			case p.Gateway != g.Name || !p.Up || slices.Contains(old, at):
			case slices.Contains(literal, p.Endpoint) || slices.Contains(now, p.Endpoint):
			case len(names) > 0 && len(now) > 0: // a name has other addresses at times
			default:
				old = append(old, at)
			}
		}
		if len(old) == 0 {
			continue
		}
		why := fmt.Sprintf("%s is not found so far", strings.Join(names, ", "))
		if len(names) == 0 {
			why = "what endpoint says now is tried when that does not answer any more"
		}
		sentences = append(sentences, fmt.Sprintf("Gateway %s goes on with its old address %s; %s. If the endpoint is wrong, correct it in %s and run `%s`.",
			g.Name, strings.Join(old, ", "), why, cfg.File, cfg.Command("reload")))
	}
	return sentences
}
