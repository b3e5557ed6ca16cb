package replicate

import "testing"

func TestNumberer(t *testing.T) {
	n := NewNumberer(0xdecade)
	if n.Epoch() != 0xdecade {
		t.Errorf("epoch %x", n.Epoch())
	}
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

func TestSeq(t *testing.T) {
	tests := []struct {
		a, b  Seq
		sub   int32
		after bool
	}{
		{5, 5, 0, false},
		{6, 5, 1, true},
		{5, 6, -1, false},
		{0, 1<<32 - 1, 1, true},
		{1<<32 - 1, 0, -1, false},
		{1<<31 - 1, 0, 1<<31 - 1, true},
		{1 << 31, 0, -1 << 31, false},
		{10, 1<<31 + 11, 1<<31 - 1, true},
	}
	for _, tt := range tests {
		if got := tt.a.Sub(tt.b); got != tt.sub {
			t.Errorf("Seq(%d).Sub(%d) = %d, want %d", tt.a, tt.b, got, tt.sub)
		}
		if got := tt.a.After(tt.b); got != tt.after {
			t.Errorf("Seq(%d).After(%d) = %v", tt.a, tt.b, got)
		}
	}
}
