package routing

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// bubble runs f with a Manager that watches a fake kernel, on a fake clock.
func bubble(t *testing.T, f func(t *testing.T, k *fakeKernel, m *Manager, kicks <-chan struct{}, out *strings.Builder)) {
	synctest.Test(t, func(t *testing.T) {
		k := newFake(world())
		m, out := manage(t, k)
		ctx, cancel := context.WithCancel(t.Context())
		kicks, err := m.Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		f(t, k, m, kicks, out)
		cancel()
		ended(t, kicks)
		if !k.events.released {
			t.Error("the source of subscriptions stays open")
		}
		if len(m.watchers.all) != 0 {
			t.Error("the Manager still knows the watcher")
		}
	})
}

func TestWatch(t *testing.T) {
	bubble(t, func(t *testing.T, k *fakeKernel, _ *Manager, kicks <-chan struct{}, _ *strings.Builder) {
		quiet(t, kicks, pollInterval/2)

		// Many changes are one kick, and it comes soon after the first.
		began := time.Now()
		for range 20 {
			k.events.messages <- nil
			time.Sleep(time.Millisecond)
		}
		kicked(t, kicks)
		if late := time.Since(began); late > settleTime {
			t.Errorf("kick %s after the first change", late)
		}

		// Lost messages are a kick, an interruption is none.
		k.events.messages <- unix.EINTR
		quiet(t, kicks, 2*settleTime)
		k.events.messages <- unix.ENOBUFS
		kicked(t, kicks)

		// A subscription that fails is opened again, with a kick for what was missed.
		k.events.messages <- errors.New("short message")
		quiet(t, kicks, watchRetry-time.Millisecond)
		kicked(t, kicks)
		k.events.messages <- nil
		kicked(t, kicks)

		// Nobody takes the kick: nothing blocks.
		for range 5 {
			k.events.messages <- nil
			time.Sleep(2 * settleTime)
		}
		if k.events.opened != 2 {
			t.Errorf("opened %d times", k.events.opened)
		}
	})
}

// TestWatchInAStorm: a network that never rests wakes nobody more often than
// each settleTime, and no change waits longer.
func TestWatchInAStorm(t *testing.T) {
	bubble(t, func(t *testing.T, k *fakeKernel, _ *Manager, kicks <-chan struct{}, _ *strings.Builder) {
		var counted atomic.Int64
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case <-kicks:
					counted.Add(1)
				case <-stop:
					return
				}
			}
		}()
		const storm = 2 * time.Second
		for range storm / time.Millisecond {
			k.events.messages <- nil
			time.Sleep(time.Millisecond)
		}
		close(stop)
		synctest.Wait()
		if n := counted.Load(); n > int64(storm/settleTime) || n < int64(storm/settleTime)*9/10 {
			t.Errorf("%d kicks in %s", n, storm)
		}
	})
}

func TestWatchPolls(t *testing.T) {
	bubble(t, func(t *testing.T, k *fakeKernel, _ *Manager, kicks <-chan struct{}, _ *strings.Builder) {
		for range 3 {
			quiet(t, kicks, pollInterval-time.Millisecond)
			time.Sleep(time.Millisecond)
			kicked(t, kicks)
		}
	})
}

// TestWatchDeaf: a kernel that gives no subscription is looked at every second,
// with one warning, until it gives one.
func TestWatchDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFake(world())
		k.events.deaf.Store(true)
		m, out := manage(t, k)
		ctx, cancel := context.WithCancel(t.Context())
		kicks, err := m.Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			began := time.Now()
			kicked(t, kicks)
			if d := time.Since(began); d < watchRetry || d > watchRetry+2*settleTime {
				t.Errorf("kick after %s", d)
			}
		}
		k.events.deaf.Store(false)
		kicked(t, kicks)
		k.events.messages <- nil
		kicked(t, kicks)
		quiet(t, kicks, 10*watchRetry)
		cancel()
		ended(t, kicks)
		if n := strings.Count(out.String(), "does not tell"); n != 1 || !strings.Contains(out.String(), "CAP_NET_ADMIN") {
			t.Errorf("said %d times:\n%s", n, out)
		}
		if !strings.Contains(out.String(), "tells of changes of the network again") {
			t.Errorf("said:\n%s", out)
		}
	})
}

// TestKickAfter: of several kicks put off, the first is enough; a Manager that is
// closed makes none.
func TestKickAfter(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fakeKernel, m *Manager, kicks <-chan struct{}, _ *strings.Builder) {
		m.watchers.kickAfter(time.Second)
		m.watchers.kickAfter(2 * time.Second)
		quiet(t, kicks, time.Second)
		kicked(t, kicks)
		quiet(t, kicks, 5*time.Second)
		m.watchers.kickAfter(time.Second)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		quiet(t, kicks, 5*time.Second)
	})
}
