package tunnel

import (
	"testing"
	"time"
)

func TestTwinWatch(t *testing.T) {
	start := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		epoch func(ms int) uint32
		want  bool
	}{
		"one machine":        {func(int) uint32 { return 1 }, false},
		"restart every 20 s": {func(ms int) uint32 { return uint32(ms / 20000) }, false},
		"restart with late frames": {func(ms int) uint32 {
			if ms < 10000 || ms < 11500 && ms%3 == 0 {
				return 1
			}
			return 2
		}, false},
		"two machines": {func(ms int) uint32 { return uint32(ms / 10 % 2) }, true},
		"two, one talks seldom": {func(ms int) uint32 {
			if ms%5000 == 0 {
				return 1
			}
			return 2
		}, true},
	} {
		var w twinWatch
		now := start
		for ms := 0; ms < 60000; ms += 10 {
			now = start.Add(time.Duration(ms) * time.Millisecond)
			w.see(c.epoch(ms), now)
		}
		if got := w.twins(now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if w.twins(now.Add(2 * twinMemory)) {
			t.Errorf("%s: never forgotten", name)
		}
	}
}
