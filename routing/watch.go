package routing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Watch returns a channel that receives settleTime after interfaces, addresses,
// routes, rules or rp_filter changed (also by this Manager), when putting back
// what another program removed was put off and is due, and every pollInterval
// besides. Many changes are one kick; a kick that nobody took yet is not
// repeated. The channel is closed soon after ctx ends. Lost messages are a kick
// like any other. While the kernel refuses to tell of changes at all, there is a
// warning in the log, and a kick every watchRetry.
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
	w := &watcher{source: source, log: m.log, changed: make(chan struct{}, 1), kicks: make(chan struct{}, 1),
		poll: pollInterval}
	w.subscribe()
	m.watchers.add(w)
	go func() {
		defer close(w.kicks)
		defer m.watchers.remove(w)
		w.run(ctx)
	}()
	return w.kicks, nil
}

type watcher struct {
	source  subscriber
	sub     subscription // nil: none at the moment
	deaf    bool         // the log says that there is none
	log     *slog.Logger
	changed chan struct{}
	kicks   chan struct{}
	poll    time.Duration
}

// run turns changes into kicks until ctx ends.
func (w *watcher) run(ctx context.Context) {
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
			if !sleep(ctx, settleTime) {
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

// listen receives until ctx ends. Without a subscription its attempts to get one
// are the poll.
func (w *watcher) listen(ctx context.Context) {
	defer w.source.close()
	for {
		if w.sub != nil {
			stop := context.AfterFunc(ctx, w.sub.close)
			w.drain()
			stop()
			w.sub.close()
		}
		if !sleep(ctx, watchRetry) {
			return
		}
		w.subscribe()
		w.change() // whatever was missed
	}
}

func (w *watcher) subscribe() {
	var err error
	if w.sub, err = w.source.subscribe(); err != nil {
		w.sub = nil
		if !w.deaf {
			w.log.Warn(fmt.Sprintf("The kernel does not tell fogplr of changes of the network (%s). fogplr looks every %s instead.",
				why(err), watchRetry))
		}
	} else if w.deaf {
		w.log.Info("the kernel tells of changes of the network again")
	}
	w.deaf = err != nil
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

// watchers are those of one Manager that run.
type watchers struct {
	mu    sync.Mutex
	all   map[*watcher]bool
	later *time.Timer // nil: no kick is put off
}

func (s *watchers) add(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*watcher]bool{}
	}
	s.all[w] = true
}

func (s *watchers) remove(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, w)
}

// kickAfter makes every watcher kick once d has passed, at the latest.
func (s *watchers) kickAfter(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.later != nil {
		return
	}
	s.later = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.later = nil
		for w := range s.all {
			w.change()
		}
	})
}

// stop drops the kick that is put off.
func (s *watchers) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.later != nil {
		s.later.Stop()
		s.later = nil
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
