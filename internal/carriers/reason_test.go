package carriers

import "testing"

func TestReason(t *testing.T) {
	for _, c := range []struct{ config, name, want string }{
		{"", "eth1", "a member of br0, which has its addresses"},
		{"", "wg0", "a WireGuard tunnel, which itself needs an uplink"},
		{"", "ppp0", "no route leads from it to the internet"},
		{"", "down0", "it is down or not connected"},
		{"", "eth0", "all slots are taken"},
		{"[discovery]\ndeny = ['kind:wifi', 'name:e*']", "eth0", `deny of [discovery] has "name:e*"`},
		{"[discovery]\ndeny = ['kind:wifi', 'name:e*']", "wlan0", `deny of [discovery] has "kind:wifi"`},
		{"[[carrier]]\ninterface = 'wlan0'", "eth0", "no [[carrier]] matches it"},
		{"[[carrier]]\ninterface = 'wlan0'", "wg0", "no [[carrier]] matches it"},
	} {
		m := machine()
		down := *m["ppp0"]
		down.Name, down.Up = "down0", false
		m["down0"] = &down
		if got := Reason(robot(t, c.config), *m[c.name]); got != c.want {
			t.Errorf("%s with %q: %q, want %q", c.name, c.config, got, c.want)
		}
	}
}
