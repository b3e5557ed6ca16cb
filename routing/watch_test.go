package routing

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

const soon = 10 * time.Second

func kicked(t *testing.T, kicks <-chan struct{}) {
	t.Helper()
	select {
	case _, ok := <-kicks:
		if !ok {
			t.Fatal("channel closed")
		}
	case <-time.After(soon):
		t.Fatal("no kick")
	}
}

func quiet(t *testing.T, kicks <-chan struct{}, d time.Duration) {
	t.Helper()
	select {
	case <-kicks:
		t.Fatal("kick without a change")
	case <-time.After(d):
	}
}

func ended(t *testing.T, kicks <-chan struct{}) {
	t.Helper()
	for deadline := time.After(soon); ; {
		select {
		case _, ok := <-kicks:
			if !ok {
				return
			}
		case <-deadline:
			t.Fatal("channel not closed")
		}
	}
}

func TestWatch(t *testing.T) {
	defer goleak.VerifyNone(t)
	k := newFake(world())
	m, _ := manage(t, k)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	kicks, err := m.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	quiet(t, kicks, 2*settleTime)

	// Many changes are one kick.
	for range 20 {
		k.events.messages <- nil
	}
	kicked(t, kicks)

	// Lost messages are a kick, an interruption is none.
	k.events.messages <- unix.EINTR
	quiet(t, kicks, 2*settleTime)
	k.events.messages <- unix.ENOBUFS
	kicked(t, kicks)

	// A subscription that fails is opened again, with a kick for what was missed.
	k.events.messages <- errors.New("short message")
	kicked(t, kicks)
	k.events.messages <- nil
	kicked(t, kicks)

	// Nobody takes the kick: nothing blocks.
	for range 5 {
		k.events.messages <- nil
		time.Sleep(2 * settleTime)
	}
	cancel()
	ended(t, kicks)
	if !k.events.released || k.events.opened != 2 {
		t.Errorf("released %v, opened %d times", k.events.released, k.events.opened)
	}
}

func TestWatchPolls(t *testing.T) {
	defer goleak.VerifyNone(t)
	k := newFake(world())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &watcher{source: k.events, changed: make(chan struct{}, 1), kicks: make(chan struct{}, 1),
		settle: time.Millisecond, poll: 5 * time.Millisecond, retry: time.Hour}
	go w.run(ctx)
	for range 3 {
		kicked(t, w.kicks)
	}
	cancel()
	ended(t, w.kicks)
}
