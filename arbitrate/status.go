package arbitrate

import (
	"slices"
	"strings"

	"github.com/fogplr/fogplr/rtps"
)

// Counters count since the start; a sample counts once, however often it is sent.
type Counters struct {
	Requests  uint64 `json:"requests"`  // left
	Replies   uint64 `json:"replies"`   // came, to requests that are known
	Delivered uint64 `json:"delivered"` // of those, the first to its request, for sure
	Withheld  uint64 `json:"withheld"`  // of those, became a GAP
	Unknown   uint64 `json:"unknown"`   // came, to requests that are not known
	Parked    uint64 `json:"parked"`    // kept for a moment
	Released  uint64 `json:"released"`  // of those, delivered as they are

	Refused  uint64 `json:"refused"`  // could not become a GAP
	Expired  uint64 `json:"expired"`  // were parked for too long
	Overflow uint64 `json:"overflow"` // would have been parked if there had been room
	Unasked  uint64 `json:"unasked"`  // parked samples taken out of what a reader asks for
	Doubted  uint64 `json:"doubted"`  // samples that were lost in the host
	Full     uint64 `json:"full"`     // writers, readers, requests, fragments and the like that there was no room for
}

// Service is a ROS 2 service, or a part of an action, that clients here or servers
// behind gateways have announced.
type Service struct {
	Name    string `json:"name"`             // as ROS 2 shows it
	Action  string `json:"action,omitempty"` // that it is a part of
	Clients int    `json:"clients"`          // here
	Servers int    `json:"servers"`          // behind gateways, alive
	Counters
}

// Counters returns those of all services together.
func (a *Arbiter) Counters() Counters {
	c := a.counters
	c.Full = a.graph.full + a.bitmaps.full
	return c
}

// Services returns up to limit services that have clients here, by name.
func (a *Arbiter) Services(limit int) []Service {
	var all []Service
	for _, s := range a.graph.services {
		if len(s.readers) == 0 {
			continue
		}
		v := Service{Name: s.name, Clients: len(s.readers), Counters: s.counters}
		if action, ok := rtps.ActionOf([]byte(s.name)); ok {
			v.Action = string(action)
		}
		for _, w := range s.writers {
			if w.owner.alive(a.now) {
				v.Servers++
			}
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(x, y Service) int { return strings.Compare(x.Name, y.Name) })
	return all[:min(limit, len(all))]
}
