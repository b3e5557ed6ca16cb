// Package daemon wires a robot or a gateway together: what is started in which
// order, what is watched while it runs, and what is undone at its end.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/tun"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/control"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

// txQueueLen is the TUN device's queue in packets. The kernel's 500 overflow
// when DDS writes a large sample at once: 1 MB is 800 packets of 1,280 bytes.
const txQueueLen = 2000

// retryNetwork is the pause after the kernel refused a change.
const retryNetwork = 5 * time.Second

// diesWithin is for how long a start waits for a killed daemon to be gone. Closing
// its sockets and its TUN device takes the kernel some tens of milliseconds.
const diesWithin = time.Second

// diesEvery is how often it looks meanwhile.
const diesEvery = 25 * time.Millisecond

// Options are what the command line gives a daemon.
type Options struct {
	ConfigFile string
	Version    string
	Log        *slog.Logger
	// Level is the level of Log, which the configuration sets.
	Level *slog.LevelVar
}

// endpoint is the part of tunnel.Robot and tunnel.Gateway that the daemon
// drives.
type endpoint interface {
	Run(context.Context) error
	Status() tunnel.Status
}

// base is what robots and gateways start alike.
type base struct {
	opts Options
	role string // "robot" or "gateway"
	cfg  *config.Node
	net  *routing.Manager
	host tun.Device
	ctl  *control.Server

	kicks chan struct{} // makes follow look now; has room for one
	// decorate adds to the tunnel's status, nil for nothing.
	decorate func(*tunnel.Status)

	mu    sync.Mutex
	notes []note // for status

	// refused is the sentence about a network configuration that cannot be read
	// or set, while that is so.
	refused atomic.Pointer[string]
}

// newBase takes the node's control socket (so that two daemons never meet), its
// TUN device and its network configuration. Closing the TUN device becomes the
// tunnel's task once it has it.
func newBase(ctx context.Context, o Options, role string, cfg *config.Node) (*base, error) {
	o.Level.Set(cfg.LogLevel)
	b := &base{opts: o, role: role, cfg: cfg, kicks: make(chan struct{}, 1)}
	err := cfg.CheckSocket()
	if err != nil {
		return nil, err
	}
	waits := func(busy error) {
		o.Log.Info("Another process, maybe a daemon that was just killed, has what this one needs. It is waited for.", "err", busy, "for", diesWithin)
	}
	b.ctl, err = outlive(ctx, diesWithin, control.ErrRunning, waits, func() (*control.Server, error) { return control.Listen(cfg.ControlSocket) })
	if err != nil {
		return nil, err
	}
	b.host, err = outlive(ctx, diesWithin, unix.EBUSY, waits, func() (tun.Device, error) { return tunnel.OpenHostTUN(cfg.Interface, cfg.MTU) })
	if err != nil {
		return nil, b.fail(err)
	}
	// Not before the TUN device is ours: New removes rules and routes that it
	// takes for a dead daemon's.
	if b.net, err = routing.New(b.runtimeDir(), cfg.Interface, o.Log); err != nil {
		return nil, b.fail(err)
	}
	if err := b.setupTUN(); err != nil {
		return nil, b.fail(err)
	}
	return b, nil
}

// outlive takes what a killed daemon may still have: its process needs a moment to
// die. It tries again while the error is busy, until ctx ends or limit has passed, and
// calls waits once if that is needed.
func outlive[T any](ctx context.Context, limit time.Duration, busy error, waits func(error), take func() (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for tries := 0; ; tries++ {
		got, err := take()
		if !errors.Is(err, busy) || ctx.Err() != nil {
			return got, err
		}
		if tries == 0 {
			waits(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(diesEvery):
		}
	}
}

// setupTUN makes the TUN device as it should be; it changes nothing if it is.
func (b *base) setupTUN() error {
	err := b.net.SetupTUN(routing.TUN{Name: b.cfg.Interface, MTU: b.cfg.MTU, TxQueueLen: txQueueLen, Addresses: b.cfg.Addresses,
		Owner: b.role + " " + b.cfg.Name})
	if err != nil {
		return fmt.Errorf("set up %s: %w", b.cfg.Interface, err)
	}
	return nil
}

// keepOverlay keeps the TUN device and the overlay's routes as they should be, for
// a node without carriers.
func (b *base) keepOverlay() (time.Duration, error) {
	err := b.setupTUN()
	_, e := b.net.Apply(nil)
	return 0, errors.Join(err, e)
}

// follow calls keep now, whenever the kernel's network changes, and after the time
// that keep returned unless that is 0; it tells of its errors.
func (b *base) follow(ctx context.Context, keep func() (time.Duration, error)) error {
	changes, err := b.net.Watch(ctx)
	if err != nil {
		return err
	}
	for {
		soon, err := keep()
		again := b.judge(err)
		if soon > 0 {
			again = time.After(soon)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again:
		case <-b.kicks:
		case _, ok := <-changes:
			if !ok {
				return nil
			}
		}
	}
}

// kick makes follow look at the network now.
func (b *base) kick() {
	select {
	case b.kicks <- struct{}{}:
	default:
	}
}

// judge keeps err for status and returns when to try again, nil without one.
func (b *base) judge(err error) <-chan time.Time {
	old := b.refused.Load()
	if err == nil {
		b.refused.Store(nil)
		return nil
	}
	text := fmt.Sprintf("The kernel's network configuration could not be read or set, so the overlay may not work as it should; fogplr keeps trying: %s",
		strings.ReplaceAll(err.Error(), "\n", "; "))
	b.refused.Store(&text)
	if old == nil || *old != text { // not at every change of a restless network
		b.opts.Log.Warn(text)
	}
	return time.After(retryNetwork)
}

// fail undoes newBase and returns err. A TUN device that this start made goes
// with its file.
func (b *base) fail(err error) error {
	if b.host != nil {
		_ = b.host.Close()
	}
	if b.net != nil {
		b.left(b.net.Abandon())
	}
	_ = b.ctl.Close()
	return err
}

// runtimeDir is where what must be undone after a crash is written down.
func (b *base) runtimeDir() string { return filepath.Dir(b.cfg.ControlSocket) }

func (b *base) common() tunnel.Common {
	return tunnel.Common{
		Name: b.cfg.Name, Version: b.opts.Version, Interface: b.cfg.Interface, MTU: b.cfg.MTU,
		Addresses: b.cfg.Addresses, Deadline: config.DefaultDeadline, Mark: routing.Mark, Log: b.opts.Log,
	}
}

// left logs what the end of a Manager has left undone.
func (b *base) left(err error) {
	if err != nil {
		b.opts.Log.Warn("Not all of the network configuration is put back yet; `"+b.cfg.Command("cleanup")+"` does it.", "err", err)
	}
}

// run drives the tunnel until ctx ends: READY is told once the control socket
// answers, and never waits for a carrier. What watch does runs beside it.
func (b *base) run(ctx context.Context, end endpoint, reload func() error, watch func(context.Context) error) error {
	if err := tunnel.KeepHostTUN(b.host); err != nil {
		b.note("persistence", fmt.Sprintf("%s goes when fogplr stops, and DDS programs must then be restarted after it (%v).", b.cfg.Interface, err))
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return end.Run(ctx) })
	g.Go(func() error { return b.ctl.Serve(ctx, control.Handlers{Status: b.status(end), Reload: reload}) })
	g.Go(func() error { return watch(ctx) })
	g.Go(func() error { return b.hangups(ctx, reload) })
	g.Go(func() error { return b.heartbeat(ctx, end) })
	g.Go(func() error {
		<-ctx.Done()
		notify(sd.SdNotifyStopping)
		return nil
	})
	notify(sd.SdNotifyReady)
	b.opts.Log.Info("fogplr runs.", "name", b.cfg.Name, "interface", b.cfg.Interface, "control", b.cfg.ControlSocket)
	err := g.Wait()
	b.left(b.net.Close())
	return err
}

func (b *base) status(end endpoint) func() tunnel.Status {
	return func() tunnel.Status {
		s := end.Status()
		b.mu.Lock()
		for _, n := range b.notes {
			s.Warnings = append(s.Warnings, n.sentence)
		}
		b.mu.Unlock()
		if b.decorate != nil {
			b.decorate(&s)
		}
		s.Restored = b.net.Restored()
		s.Warnings = append(s.Warnings, b.net.Warnings()...)
		if refused := b.refused.Load(); refused != nil {
			s.Warnings = append(s.Warnings, *refused)
		}
		return s
	}
}

// note is a plain sentence about something that is not as it should be.
type note struct{ about, sentence string }

// note keeps a sentence for status, in the place of the last one about the same,
// and logs it. An empty one says that all is well.
func (b *base) note(about, sentence string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.notes, func(n note) bool { return n.about == about })
	switch {
	case i >= 0 && b.notes[i].sentence == sentence:
		return
	case i >= 0 && sentence == "":
		b.notes = slices.Delete(b.notes, i, i+1)
	case i >= 0:
		b.notes[i].sentence = sentence
	case sentence != "":
		b.notes = append(b.notes, note{about, sentence})
	}
	if sentence != "" {
		b.opts.Log.Warn(sentence)
	}
}

// hangups reloads at every SIGHUP.
func (b *base) hangups(ctx context.Context, reload func() error) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, unix.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hup:
			notify(sd.SdNotifyReloading)
			_ = reload() // which logs it
			notify(sd.SdNotifyReady)
		}
	}
}

// heartbeat tells systemd's watchdog that the daemon lives: only as long as the
// locks that a status needs can be had.
func (b *base) heartbeat(ctx context.Context, end endpoint) error {
	interval, err := sd.SdWatchdogEnabled(false)
	if err != nil || interval == 0 {
		return nil
	}
	t := time.NewTicker(interval / 2)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			end.Status()
			notify(sd.SdNotifyWatchdog)
		}
	}
}

// notify tells systemd, if it started this process.
func notify(state string) { _, _ = sd.SdNotify(false, state) }
