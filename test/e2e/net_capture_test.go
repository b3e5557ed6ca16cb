package e2e

import "testing"

func TestStartStop(t *testing.T) {
	w := start(t, options{})
	t.Log(w.robots[0].ip)
}
