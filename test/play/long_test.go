//go:build long

package play_test

import "testing"

// Two hundred faults, some ten minutes.
func TestLongSingleFaults(t *testing.T) { campaign(t, 2, 200) }

// Any two of three carriers are unplugged, for ten minutes.
func TestLongUnplugAnyTwo(t *testing.T) {
	t.Parallel()
	noneLost(t, played(t, "p127-unplug-any-two"))
}

// The other scenario files can be played to their end; what gets lost in them is
// not the point.
func TestLongScenarios(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"quick", "driving", "nat", "everything", "streams"} {
		t.Run(name, func(t *testing.T) { played(t, name) })
	}
}
