//go:build long

package e2e

import (
	"testing"
	"time"
)

// As TestCarrierStorm, for ten minutes.
func TestLongCarrierStorm(t *testing.T) { carrierStorm(t, 10*time.Minute) }

// As TestIdleRobotNoticesADeadCarrier, after a minute without traffic.
func TestLongIdleRobotNoticesADeadCarrier(t *testing.T) { idleRobot(t, time.Minute) }

// As TestNoStaleSourceAddress, with half a minute without an address.
func TestLongNoStaleSourceAddress(t *testing.T) { staleSource(t, 30*time.Second) }

// As TestSilentCarrierReturnsWithAnotherAddress, after five minutes: WireGuard's
// keys are too old by then.
func TestLongSilentCarrierReturnsWithAnotherAddress(t *testing.T) { silentReturn(t, 5*time.Minute) }

// As TestTrafficResumesAfterOutages, with outages of up to a minute.
func TestLongTrafficResumesAfterOutages(t *testing.T) { outages(t, 10, 8, time.Minute) }
