package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fogplr/fogplr/tunnel"
)

// unreached says of a robot which gateways have no path up, and why.
func unreached(s *tunnel.Status) (sentences []string) {
	if s.Role != "robot" {
		return nil
	}
	if !s.Ready {
		return []string{"no gateway can be reached: " + obstacles(s, s.Peers)}
	}
	reached := 0
	for i := range s.Peers {
		if s.Peers[i].Reached() {
			reached++
		}
	}
	for i := range s.Peers {
		if p := &s.Peers[i]; !p.Reached() {
			sentences = append(sentences, fmt.Sprintf("gateway %s cannot be reached (%s); %d of %d gateways can be",
				printable(p.Name), obstacles(s, s.Peers[i:i+1]), reached, len(s.Peers)))
		}
	}
	return sentences
}

// obstacles says what keeps the paths to those peers down, and on which carriers.
func obstacles(s *tunnel.Status, peers []tunnel.PeerStatus) string {
	gone, names := map[int]bool{}, carrierNames(s.Carriers)
	for _, c := range s.Carriers {
		gone[c.Slot] = c.Gone
	}
	type obstacle struct{ stage, carrier string }
	var stages []string
	carriers, told := map[string][]string{}, map[obstacle]bool{}
	for _, peer := range peers {
		for i := range peer.Paths {
			p := &peer.Paths[i]
			o := obstacle{downFor(p, gone[p.Slot]), cmp.Or(names[p.Slot], printable(p.Carrier))}
			if told[o] {
				continue
			}
			told[o] = true
			if carriers[o.stage] == nil {
				stages = append(stages, o.stage)
			}
			carriers[o.stage] = append(carriers[o.stage], o.carrier)
		}
	}
	switch {
	case len(peers) == 0:
		return "none is configured"
	case len(stages) == 0:
		return "there is no carrier"
	}
	for i, stage := range stages {
		stages[i] = stage + " on " + strings.Join(carriers[stage], ", ")
	}
	return strings.Join(stages, "; ")
}

// downFor says why a path is not up; gone says that its carrier is.
func downFor(p *tunnel.PathStatus, gone bool) string {
	switch {
	case gone:
		return "carrier gone"
	case p.Stage != "":
		return printable(p.Stage)
	case p.LastProof < 0:
		return "not yet up"
	}
	return "silent for " + age(p.LastProof)
}
