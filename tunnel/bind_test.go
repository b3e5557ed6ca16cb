package tunnel

import (
	"net"
	"testing"
)

// A carrier's sockets come back on the port that it asks for, and on another one
// while somebody else has it.
func TestCarriersKeepTheirPort(t *testing.T) {
	b := newBind(socketOptions{}, false, nil)
	if _, _, err := b.Open(0); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	attach := func() uint16 {
		t.Helper()
		if err := b.attach(""); err != nil {
			t.Fatal(err)
		}
		return b.port()
	}
	b.options.port = attach()
	for range 3 {
		if p := attach(); p != b.options.port {
			t.Errorf("port %d, want %d", p, b.options.port)
		}
	}
	b.detach()
	other, err := net.ListenUDP("udp", &net.UDPAddr{Port: int(b.options.port)})
	if err != nil {
		t.Fatal(err)
	}
	if p := attach(); p == b.options.port || p == 0 {
		t.Errorf("port %d, which another program has", p)
	}
	_ = other.Close()
	if p := attach(); p != b.options.port {
		t.Errorf("port %d, want %d, which is free again", p, b.options.port)
	}
}
