package tunnel

import (
	"os"
	"sync"

	"golang.zx2c4.com/wireguard/tun"
)

// memTUN is the inner side of one WireGuard device: a tun.Device in memory.
// wireguard-go reads frames to encrypt from its queue and writes the frames
// that it has authenticated to deliver.
type memTUN struct {
	name    string
	mtu     int
	queue   *queue
	deliver func(frames [][]byte, offset int)
	events  chan tun.Event
	once    sync.Once
	// sending and receiving are the bind's windows, from their other ends.
	sending, receiving *window
}

// newMemTUN returns a device for frames of at most mtu bytes. deliver may be
// called from several goroutines at once, and must not keep frames after it
// returns.
func newMemTUN(name string, mtu int, q *queue, deliver func([][]byte, int)) *memTUN {
	return &memTUN{name: name, mtu: mtu, queue: q, deliver: deliver, events: make(chan tun.Event)}
}

func (t *memTUN) Read(bufs [][]byte, sizes []int, offset int) (int, error) {
	t.sending.admit()
	n, err := t.queue.fill(bufs, sizes, offset)
	t.sending.enter(n)
	return n, err
}

func (t *memTUN) Write(bufs [][]byte, offset int) (int, error) {
	t.deliver(bufs, offset)
	t.receiving.leave(len(bufs))
	return len(bufs), nil
}

// MTU is exactly the largest frame: with less or more, wireguard-go pads full
// frames and makes them grow.
func (t *memTUN) MTU() (int, error)        { return t.mtu, nil }
func (t *memTUN) Name() (string, error)    { return t.name, nil }
func (t *memTUN) File() *os.File           { return nil }
func (t *memTUN) Events() <-chan tun.Event { return t.events }
func (t *memTUN) BatchSize() int           { return batchPackets }

func (t *memTUN) Close() error {
	t.once.Do(func() {
		t.queue.close()
		close(t.events)
	})
	return nil
}
