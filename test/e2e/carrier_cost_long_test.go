//go:build long

package e2e

import (
	"testing"
	"time"
)

// As TestIdleRobots, for half an hour, with a translator such as operators have and
// data that costs, so that the robot tries to be silent for longer.
func TestLongIdleRobots(t *testing.T) {
	idleRobots(t, forgetful{
		after: 20 * time.Second, tried: 25 * time.Second, learnt: 15 * time.Second, extra: "\nmonthly_cap = \"5GB\"",
	}, 31*time.Minute)
}
