package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"
)

// What every modem of the same make hands out.
const (
	modemSubnet = "192.168.8.0/24"
	modemRouter = "192.168.8.1"
	modemClient = "192.168.8.100"
)

// addModem adds a carrier behind a modem of its own:
//
//	robot --wwan0 192.168.8.100/24 === lan 192.168.8.1-- modem --wan 100.64.0.2/24 ~~~ up-a 100.64.0.1-- inet
func (w *World) addModem(r *Robot, s seat, o CarrierOptions) (*Carrier, error) {
	name := "modem-" + letter(s.slot)
	if s.robot > 0 {
		name = fmt.Sprintf("%s-%d", name, s.robot+1)
	}
	modem, err := w.router(name)
	if err != nil {
		return nil, err
	}
	if err := w.Veth(r.Node, o.Interface, modem, "lan"); err != nil {
		return nil, err
	}
	link, err := w.Link(modem, "wan", w.Inet, s.port(), LinkParams{AB: o.Up, BA: o.Down, Seed: s.seed})
	if err != nil {
		return nil, err
	}
	c := &Carrier{
		Interface: o.Interface,
		Address:   netip.MustParsePrefix(modemClient + "/24"),
		Router:    netip.MustParseAddr(modemRouter),
		Modem:     modem,
		Link:      link,
	}
	wan := fmt.Sprintf("100.%d.%d.", 64+s.slot, s.robot)
	return c, errors.Join(
		// As network managers do it: the route to the subnet has the
		// interface's metric, so that several of them can stand side by side.
		r.addAddress(o.Interface, c.Address.String(), unix.IFA_F_NOPREFIXROUTE),
		r.AddRoute(modemSubnet, "", o.Interface, s.metric()),
		r.AddRoute("default", modemRouter, o.Interface, s.metric()),
		modem.AddAddress("lan", modemRouter+"/24"),
		modem.AddAddress("wan", wan+"2/24"),
		modem.AddRoute("default", wan+"1", "wan", 0),
		w.Inet.AddAddress(s.port(), wan+"1/24"),
		modem.NFT(`table ip nat {
	chain postrouting {
		type nat hook postrouting priority srcnat
		oifname "wan" masquerade
	}
}`),
	)
}

// NFT loads an nftables ruleset into the node, in addition to what is there.
func (n *Node) NFT(ruleset string) error {
	c := n.Command(context.Background(), "nft", "-f", "-")
	c.Stdin = strings.NewReader(ruleset + "\n")
	return c.Run()
}
