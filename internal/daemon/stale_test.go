package daemon

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/tunnel"
)

// A gateway that goes on with an address that its endpoint does not mean any more is
// named, with what is wrong.
func TestOldAddresses(t *testing.T) {
	old, other := netip.MustParseAddrPort("203.0.113.10:51820"), netip.MustParseAddrPort("203.0.113.99:51820")
	path := func(slot int, up bool) tunnel.PathState {
		return tunnel.PathState{Slot: slot, Gateway: "east", Endpoint: old, Up: up}
	}
	name := config.Endpoint{Host: "nosuch.example.invalid", Port: 51820}
	literal := func(a netip.AddrPort) config.Endpoint { return config.Endpoint{Addr: a.Addr(), Port: a.Port()} }
	both := []tunnel.PathState{path(0, true), path(1, true)}
	for what, c := range map[string]struct {
		ends  []config.Endpoint
		found map[place][]netip.AddrPort
		paths []tunnel.PathState
		want  string
	}{
		"the same":              {[]config.Endpoint{literal(old)}, nil, both, ""},
		"one of two":            {[]config.Endpoint{literal(other), literal(old)}, nil, both, ""},
		"a name that is found":  {[]config.Endpoint{name}, map[place][]netip.AddrPort{{0, "east"}: {old}, {1, "east"}: {old}}, both, ""},
		"found elsewhere now":   {[]config.Endpoint{name}, map[place][]netip.AddrPort{{0, "east"}: {other}, {1, "east"}: {other}}, both, ""},
		"a name that is not":    {[]config.Endpoint{name}, nil, both, "Gateway east goes on with its old address 203.0.113.10:51820; nosuch.example.invalid is not found so far. "},
		"not found on one":      {[]config.Endpoint{name}, map[place][]netip.AddrPort{{0, "east"}: {old}}, both, "nosuch.example.invalid is not found so far. "},
		"another address":       {[]config.Endpoint{literal(other)}, nil, both, "old address 203.0.113.10:51820; what endpoint says now is tried when that does not answer any more. "},
		"it does not go on":     {[]config.Endpoint{name}, nil, []tunnel.PathState{path(0, false)}, ""},
		"another gateway's":     {[]config.Endpoint{name}, nil, []tunnel.PathState{{Gateway: "west", Endpoint: old, Up: true}}, ""},
		"translated (RFC 6052)": {[]config.Endpoint{literal(other)}, map[place][]netip.AddrPort{{0, "east"}: {old}}, []tunnel.PathState{path(0, true)}, ""},
	} {
		cfg := &config.Robot{Node: config.Node{File: "robot.toml"}, Gateways: []config.GatewayPeer{{Name: "east", Endpoints: c.ends}}}
		said := strings.Join(oldAddresses(cfg, c.found, c.paths), "\n")
		if (said == "") != (c.want == "") || !strings.Contains(said, c.want) || strings.Count(said, "Gateway") > 1 ||
			said != "" && !strings.HasSuffix(said, "correct it in robot.toml and run `fogplr reload`.") {
			t.Errorf("%s: %q, want %q", what, said, c.want)
		}
	}
}
