package routing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Watch returns a channel that receives after interfaces, addresses, routes or
// rules changed (also by this Manager), and every pollInterval without a change.
// Many changes are one kick; a kick that nobody took yet is not repeated. The
// channel is closed soon after ctx ends. Lost messages are a kick like any
// other, and a subscription that fails is opened again.
func (m *Manager) Watch(ctx context.Context) (<-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed
	}
	source, err := m.kernel.subscriber()
	if err != nil {
		return nil, fmt.Errorf("subscribing to changes of the network configuration: %w", err)
	}
	first, err := source.subscribe()
	if err != nil {
		source.close()
		return nil, fmt.Errorf("subscribing to changes of the network configuration: %w", err)
	}
	w := &watcher{source: source, sub: first, changed: make(chan struct{}, 1), kicks: make(chan struct{}, 1),
		settle: settleTime, poll: pollInterval, retry: watchRetry}
	go w.run(ctx)
	return w.kicks, nil
}

type watcher struct {
	source  subscriber
	sub     subscription // nil: none at the moment
	changed chan struct{}
	kicks   chan struct{}

	settle, poll, retry time.Duration
}

// run turns changes into kicks until ctx ends.
func (w *watcher) run(ctx context.Context) {
	defer close(w.kicks)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.listen(ctx)
	}()
	defer func() { <-done }()
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		case <-w.changed:
			if !sleep(ctx, w.settle) {
				return
			}
			select {
			case <-w.changed:
			default:
			}
		}
		select {
		case w.kicks <- struct{}{}:
		default:
		}
	}
}

// listen receives until ctx ends.
func (w *watcher) listen(ctx context.Context) {
	defer w.source.close()
	for {
		if w.sub != nil {
			stop := context.AfterFunc(ctx, w.sub.close)
			w.drain()
			stop()
			w.sub.close()
		}
		if !sleep(ctx, w.retry) {
			return
		}
		w.sub, _ = w.source.subscribe()
		w.change() // whatever was missed
	}
}

// drain receives until the subscription fails for good.
func (w *watcher) drain() {
	for {
		err := w.sub.receive()
		switch {
		case err == nil || errors.Is(err, unix.ENOBUFS):
			w.change()
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
		default:
			return
		}
	}
}

func (w *watcher) change() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// sleep waits for d, or returns false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
