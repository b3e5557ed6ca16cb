package replicate

import "testing"

// BenchmarkAccept is two copies of every number, the second one 300 ms of
// 20,000 packets/s later.
func BenchmarkAccept(b *testing.B) {
	e := NewEliminator()
	const lag = 6000
	for i := range b.N {
		e.Accept(epA, Seq(i), t0)
		e.Accept(epA, Seq(i-lag), t0)
	}
}

// BenchmarkRestart is the dearest call: a new epoch.
func BenchmarkRestart(b *testing.B) {
	e := NewEliminator()
	for i := range b.N {
		e.Accept(uint32(i), 1, t0)
	}
}

func BenchmarkTag(b *testing.B) {
	frame := make([]byte, 1300)
	tag := Tag{Type: Data, Epoch: 1, Src: MakeAddress(2, 1), Dst: MakeAddress(11, 1)}
	for i := range b.N {
		tag.Seq = Seq(i)
		PutTag(frame, &tag)
		if _, _, err := DecodeTag(frame); err != nil {
			b.Fatal(err)
		}
	}
}
