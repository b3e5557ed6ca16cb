package replicate

import "testing"

func TestNumberer(t *testing.T) {
	var n Numberer
	for want := Seq(1); want <= 3; want++ {
		if got := n.Next(); got != want {
			t.Errorf("Next = %d, want %d", got, want)
		}
	}
	n.last = 1<<32 - 2
	for _, want := range []Seq{1<<32 - 1, 0, 1} {
		if got := n.Next(); got != want {
			t.Errorf("Next = %d, want %d", got, want)
		}
	}
}
