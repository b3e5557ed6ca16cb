package slots

import "strconv"

// Carrier is what a carrier is told apart by.
type Carrier struct {
	// Named means that the configuration names the interface outright. Then its
	// name decides and nothing else does.
	Named bool `json:"named,omitempty"`
	// Interface is the name in the configuration when it is Named, else the one
	// that the interface has now, or had last.
	Interface string `json:"interface"`
	// MAC is the hardware address in lower case, and Bus the path of the device in
	// /sys/devices. Each is empty when there is none, and when another interface
	// of the machine has the same, since it tells nothing then.
	MAC string `json:"mac,omitempty"`
	Bus string `json:"bus,omitempty"`
}

// How surely two descriptions mean one carrier.
const (
	stranger = iota
	sameName // and one of them has nothing else, or both have nothing lasting
	samePort // another MAC, which does not mean much
	sameMAC  // in another port
	sameDevice
	// sure is above twice any other: the configuration says so.
	sure = 100
)

// likeness says how surely the carrier of an entry in the book is one that is
// wanted now: 0 not at all. One that was named and no longer is, or the other way
// round, is a little less likely.
func likeness(kept, now Carrier) int {
	if kept.Named && now.Named {
		if kept.Interface == now.Interface {
			return sure
		}
		return stranger
	}
	n := 2 * resemblance(kept, now)
	if n > 0 && kept.Named != now.Named {
		n--
	}
	return n
}

func resemblance(a, b Carrier) int {
	mac := a.MAC != "" && a.MAC == b.MAC
	bus := a.Bus != "" && a.Bus == b.Bus
	switch {
	case mac && bus:
		return sameDevice
	case mac:
		return sameMAC
	case bus && !(fixedMAC(a.MAC) && fixedMAC(b.MAC)):
		return samePort
	case a.Interface == b.Interface && (a.bare() || b.bare() || a.virtual() && b.virtual()):
		return sameName
	}
	return stranger
}

// id is what a carrier is best known by.
func (c Carrier) id() string {
	switch {
	case !c.Named && fixedMAC(c.MAC):
		return "mac:" + c.MAC
	case !c.Named && c.Bus != "":
		return "bus:" + c.Bus
	}
	return "name:" + c.Interface
}

// bare says that a carrier has nothing but its name.
func (c Carrier) bare() bool { return c.MAC == "" && c.Bus == "" }

// virtual says that a carrier has no hardware and no MAC that lasts: when its
// interface is made again, only the name stays.
func (c Carrier) virtual() bool { return c.Bus == "" && !fixedMAC(c.MAC) }

// fixedMAC says whether a MAC was given by a manufacturer, so that another one
// means another device. Those that are made up, often anew every time, have the
// bit of locally administered addresses (IEEE 802, 8.2.2).
func fixedMAC(mac string) bool {
	if len(mac) < 2 {
		return false
	}
	first, err := strconv.ParseUint(mac[:2], 16, 8)
	return err == nil && first&2 == 0
}
