package config

import (
	"fmt"
	"net/netip"

	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/internal/tables"
	"github.com/fogplr/fogplr/replicate"
)

// claims remembers who has a name, address, key or node number already.
// WireGuard would silently give a peer's traffic to the last one that claims
// its address, so every second claim is refused.
type claims map[string]string

// claim notes that owner has what, and returns who else has it, or nothing.
func (c claims) claim(kind, what, owner string) (other string) {
	key := kind + " " + what
	if other, taken := c[key]; taken {
		return other
	}
	c[key] = owner
	return ""
}

// peerBase is what every peer has: [[gateway]] and [[robot]].
type peerBase struct {
	name      string
	addresses []netip.Addr
}

// peer reads the common part of a peer's table and checks it against taken,
// which has what self claims.
func peer(t *tables.Table, kind string, self *Node, taken claims) peerBase {
	var p peerBase
	t.Need("name", tables.NameExpected)
	if name, ok := t.Name("name"); ok {
		p.name = name
		if other := taken.claim("name", p.name, fmt.Sprintf("the %s of line %d", kind, t.Line)); other != "" {
			t.Fail("name", fmt.Sprintf("%q, which %s has already", p.name, other), "a name of its own for every "+kind)
		}
		t.Owner = fmt.Sprintf("%s %q", kind, p.name)
	}
	for _, it := range texts(t, "address", plainExpected, maxAddresses) {
		a, complaint := parsePlain(it.Text, self.Addresses)
		if complaint != "" {
			t.FailAt(it.Line, "address", tables.Show(it.Text), complaint)
			continue
		}
		if other := taken.claim("address", a.String(), t.Owner); other != "" {
			t.FailAt(it.Line, "address", fmt.Sprintf("%q, which %s has already", it.Text, other), "an address of its own for every node")
			continue
		}
		p.addresses = append(p.addresses, a)
	}
	if len(p.addresses) > 0 {
		claimNumber(t, p.addresses[0], self.Addresses, taken)
	}
	return p
}

// claimNumber claims the node number of a peer whose first address is a.
func claimNumber(t *tables.Table, a netip.Addr, overlay []netip.Prefix, taken claims) {
	n, err := replicate.NodeOf(within(a, overlay))
	if err != nil {
		return // reported already: the overlay is not known, or parsePlain said it
	}
	if other := taken.claim("node", fmt.Sprint(n), t.Owner); other != "" {
		t.Fail("address", fmt.Sprintf("%v, which means node number %d, and %s has that number already", a, n, other),
			"a first address whose host part (at most its last 24 bits) differs from every other node's")
	}
}

// within returns a with the prefix length of the overlay it lies in, or the
// zero Prefix.
func within(a netip.Addr, overlay []netip.Prefix) netip.Prefix {
	for _, p := range overlay {
		if p.Contains(a) {
			return netip.PrefixFrom(a, p.Bits())
		}
	}
	return netip.Prefix{}
}

// parsePlain returns the address s, which must lie in the overlay, or what was
// expected instead. When the overlay itself is not known it is not checked.
func parsePlain(s string, overlay []netip.Prefix) (a netip.Addr, complaint string) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return a, plainExpected
	}
	if len(overlay) == 0 {
		return a, ""
	}
	p := within(a, overlay)
	if !p.IsValid() {
		list := ""
		for i, o := range overlay {
			if i > 0 {
				list += " or "
			}
			list += o.Masked().String()
		}
		return a, "an address inside this node's own prefix, " + list
	}
	return a, checkHost(p)
}

// selfClaims returns the claims of the node that the file is for.
func selfClaims(self *Node) claims {
	taken := claims{}
	for _, p := range self.Addresses {
		taken.claim("address", p.Addr().String(), "this node itself")
	}
	if len(self.Addresses) > 0 {
		taken.claim("node", fmt.Sprint(self.Number), "this node itself")
	}
	return taken
}

func gateways(t *tables.Table, self *Node) []GatewayPeer {
	t.NeedTables("gateway", "here the [[gateway]] block that `fogplr init gateway` prints on each gateway")
	taken := selfClaims(self)
	var out []GatewayPeer
	for _, g := range t.Tables("gateway", 1, maxGateways) {
		base := peer(g, "gateway", self, taken)
		p := GatewayPeer{Name: base.name, Addresses: base.addresses}
		const expected = "the gateway's public key, 44 characters, as `fogplr pubkey` prints it"
		if s, ok := g.Require("public_key", expected); ok {
			p.PublicKey = publicKey(g, "public_key", tables.Item{Text: s, Line: g.LineOf("public_key")}, expected, taken, self)
		}
		p.Endpoints = endpoints(g, self.Addresses, taken)
		g.Finish()
		out = append(out, p)
	}
	return out
}

func robots(t *tables.Table, self *Node) []RobotPeer {
	taken := selfClaims(self)
	var out []RobotPeer
	for _, r := range t.Tables("robot", 0, maxPeers) {
		base := peer(r, "robot", self, taken)
		p := RobotPeer{Name: base.name, Addresses: base.addresses}
		const expected = "a list of up to 8 public keys, as `fogplr pubkey --robot` prints it"
		for _, it := range texts(r, "carrier_keys", expected, maxCarriers) {
			p.CarrierKeys = append(p.CarrierKeys, publicKey(r, "carrier_keys", it, "a public key, 44 characters, as `fogplr pubkey --robot` prints it", taken, self))
		}
		r.Finish()
		out = append(out, p)
	}
	return out
}

// publicKey reads one public key. The text is not repeated in the error, since
// it may be a private key in the wrong place.
func publicKey(t *tables.Table, key string, it tables.Item, expected string, taken claims, self *Node) keys.Public {
	k, err := keys.ParsePublic(it.Text)
	if it.Text == "" {
		t.FailAt(it.Line, key, tables.Show(it.Text), expected)
		return k
	}
	if err != nil {
		t.FailAt(it.Line, key, fmt.Sprintf("a text of %d characters that is %v", len(it.Text), err), expected)
		return k
	}
	if other := taken.claim("key", k.String(), t.Owner); other != "" {
		t.FailAt(it.Line, key, fmt.Sprintf("%v, which %s has already", k, other), "a key of its own for every carrier and every gateway")
		return k
	}
	if self.peerKeys == nil {
		self.peerKeys = map[keys.Public]peerKey{}
	}
	self.peerKeys[k] = peerKey{t.Title(key), it.Line}
	return k
}
