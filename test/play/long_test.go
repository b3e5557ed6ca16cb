//go:build long

package play_test

import "testing"

// Two hundred faults, some ten minutes.
func TestLongSingleFaults(t *testing.T) { campaign(t, 2, 200) }
