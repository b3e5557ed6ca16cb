package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/play"
	"github.com/fogplr/fogplr/test/scenario"
	"github.com/fogplr/fogplr/test/tunnels"
)

// The laboratory that stands: its holder answers on the socket and logs beside it.
const (
	standingSocket = "/run/fogplr-lab/standing.sock"
	standingLog    = "/run/fogplr-lab/standing.log"
	// readyFD is where the holder says that it is ready, or why it is not.
	readyFD = 3
	// maxRequest bounds a request to the holder, in bytes.
	maxRequest = 1 << 20
	// answersWithin is how long the holder may take: a gateway that is started
	// again takes a second.
	answersWithin = 30 * time.Second
)

// request is what the command asks of the holder: one JSON object.
type request struct {
	Op    string // "ping", "exec", "fault", "undo" or "down"
	Node  string
	Args  []string
	Fault *scenario.Fault
}

type reply struct {
	Error     string
	Namespace string
	Args      []string
	Env       []string
	Text      string
}

// up starts a holder in the background and waits until it is ready. A holder that
// is not to become ready ends with ctx.
func up(ctx context.Context, o *playOptions) error {
	if _, err := ask(request{Op: "ping"}); err == nil {
		return errors.New("a laboratory is standing already; `fogplr-lab down` takes it down")
	}
	if _, err := o.load(); err != nil { // with the user's terminal, not in the holder's log
		return err
	}
	if err := os.MkdirAll(filepath.Dir(standingLog), 0o755); err != nil {
		return err
	}
	log, err := os.Create(standingLog)
	if err != nil {
		return err
	}
	defer log.Close()
	ready, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	holder := exec.Command("/proc/self/exe", append([]string{"hold"}, o.args()...)...)
	holder.Stdout, holder.Stderr, holder.ExtraFiles = log, log, []*os.File{tell}
	holder.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = holder.Start()
	_ = tell.Close()
	if err != nil {
		return err
	}
	interrupted := context.AfterFunc(ctx, func() { _ = holder.Process.Signal(syscall.SIGTERM) })
	told, err := io.ReadAll(ready)
	interrupted()
	if err != nil {
		return err
	}
	if text, ok := strings.CutPrefix(string(told), "ready\n"); ok {
		fmt.Print(text)
		return nil
	}
	return fmt.Errorf("the laboratory did not come up: %s(its log is %s)", strings.TrimSpace(string(told))+" ", standingLog)
}

// hold keeps a laboratory until it is asked to end.
func hold(ctx context.Context, o *playOptions) error {
	unix.CloseOnExec(readyFD)
	ready := os.NewFile(readyFD, "ready")
	h := &holder{ended: make(chan struct{})}
	err := h.open(ctx, o)
	if err != nil {
		if h.lab != nil {
			h.lab.KeepLogs()
		}
		err = errors.Join(err, h.close())
		fmt.Fprintln(ready, err)
		return errors.Join(err, ready.Close())
	}
	if _, err = fmt.Fprintf(ready, "ready\n%s", h.text()); err != nil { // nobody waits for it
		return errors.Join(err, h.close())
	}
	err = ready.Close()
	served := make(chan error, 1)
	go func() { served <- h.serve(ctx) }()
	select {
	case <-ctx.Done():
	case <-h.ended:
	}
	return errors.Join(err, h.close(), h.listener.Close(), <-served)
}

// holder is the process that a standing laboratory belongs to.
type holder struct {
	lab      *lab.Lab
	standing play.Standing
	listener net.Listener
	ended    chan struct{}
	once     sync.Once
	mu       sync.Mutex // one request at a time
	closed   bool
	undo     []func(context.Context) error
}

func (h *holder) open(ctx context.Context, o *playOptions) (err error) {
	if h.standing.Scenario, err = o.load(); err != nil {
		return err
	}
	if h.standing.Tunnel, err = tunnels.ByName(o.Tunnel, tunnels.Options{Config: h.standing.Scenario.Robot}); err != nil {
		return err
	}
	if h.lab, err = lab.New("lab"); err != nil {
		return err
	}
	if h.standing.World, err = play.Build(h.lab, h.standing.Scenario); err != nil {
		return err
	}
	if err = h.standing.Up(ctx, nil); err != nil {
		return err
	}
	if _, err = h.standing.Play(); err != nil {
		return err
	}
	_ = os.Remove(standingSocket) // of a holder that was killed; up asked
	if h.listener, err = net.Listen("unix", standingSocket); err != nil {
		return err
	}
	return os.Chmod(standingSocket, 0o600)
}

// close takes the laboratory down. The socket is there until that is done.
func (h *holder) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lab == nil || h.closed {
		return nil
	}
	h.closed = true
	return h.lab.Close()
}

// text says what there is and what to do with it.
func (h *holder) text() string {
	var b strings.Builder
	w := h.standing.World
	fmt.Fprintf(&b, "The laboratory stands, connected by %s:\n", h.standing.Tunnel.Name())
	nodes := []*lab.Node{w.Robots[0].Node}
	for _, g := range w.Gateways {
		nodes = append(nodes, g.Node)
	}
	for _, n := range nodes {
		fmt.Fprintf(&b, "  %-10s %v inside, namespace %s\n", n.Name(), h.standing.Tunnel.Address(n), n.Namespace())
	}
	fmt.Fprintf(&b, "Next: fogplr-lab exec %s -- ping %v; fogplr-lab fault black-hole --carrier %s; fogplr-lab down\n",
		nodes[0].Name(), h.standing.Tunnel.Address(nodes[len(nodes)-1]), w.Robots[0].Carriers[0].Interface)
	return b.String()
}

func (h *holder) serve(ctx context.Context) error {
	for {
		c, err := h.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go h.talk(ctx, c)
	}
}

func (h *holder) talk(ctx context.Context, c net.Conn) {
	defer c.Close()
	var q request
	if err := json.NewDecoder(io.LimitReader(c, maxRequest)).Decode(&q); err != nil {
		return
	}
	h.mu.Lock()
	r, err := h.answer(ctx, &q)
	h.mu.Unlock()
	if err != nil {
		r.Error = err.Error()
	}
	_ = json.NewEncoder(c).Encode(r) // whoever does not wait for the answer
}

func (h *holder) answer(ctx context.Context, q *request) (r reply, err error) {
	if h.closed {
		return r, errors.New("the laboratory is being taken down")
	}
	switch q.Op {
	case "ping":
	case "exec":
		if len(q.Args) == 0 {
			return r, errors.New("no program is named")
		}
		node, err := h.node(q.Node)
		if err != nil {
			return r, err
		}
		cmd, err := h.standing.Tunnel.Command(ctx, node, q.Args[0], q.Args[1:]...)
		if err != nil {
			return r, err
		}
		r.Namespace, r.Args, r.Env = node.Namespace(), cmd.Args(), cmd.Env
	case "fault":
		if q.Fault == nil {
			return r, errors.New("no fault is named")
		}
		if err := h.standing.Scenario.CheckFault(q.Fault); err != nil {
			return r, err
		}
		if k := q.Fault.Kind; k == scenario.ServerStop || k == scenario.ServerKill {
			return r, fmt.Errorf("%s is for the programs of workloads, and a standing laboratory runs none; signal your own", k)
		}
		undo, err := h.standing.Inject(ctx, q.Fault)
		h.remember(ctx, q.Fault, undo)
		if err != nil {
			return r, err
		}
		r.Text = play.Describe(q.Fault)
	case "undo":
		done := 0
		var left []func(context.Context) error
		for _, undo := range slices.Backward(h.undo) {
			if e := undo(ctx); e != nil {
				err, left = errors.Join(err, e), append(left, undo)
				continue
			}
			done++
		}
		slices.Reverse(left)
		r.Text, h.undo = fmt.Sprintf("undone: %d", done), left
	case "down":
		h.once.Do(func() { close(h.ended) })
	default:
		err = fmt.Errorf("there is no request %q", q.Op)
	}
	return r, err
}

// remember keeps how a fault is undone, and does it when its time has come.
func (h *holder) remember(ctx context.Context, f *scenario.Fault, undo func(context.Context) error) {
	if undo == nil {
		return
	}
	if f.For == 0 {
		h.undo = append(h.undo, undo)
		return
	}
	time.AfterFunc(f.For, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.closed {
			return
		}
		if err := undo(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "the end of %s: %v\n", play.Describe(f), err)
		}
	})
}

func (h *holder) node(name string) (*lab.Node, error) {
	w := h.standing.World
	names := []string{w.Robots[0].Name()}
	if name == names[0] {
		return w.Robots[0].Node, nil
	}
	for _, g := range w.Gateways {
		if g.Name() == name {
			return g.Node, nil
		}
		names = append(names, g.Name())
	}
	return nil, fmt.Errorf("there is no node %s; there are %s", name, strings.Join(names, ", "))
}

// ask asks the holder.
func ask(q request) (r reply, err error) {
	c, err := net.Dial("unix", standingSocket)
	if errors.Is(err, os.ErrPermission) {
		return r, errors.New("the standing laboratory is root's: run this as root")
	}
	if err != nil {
		return r, errors.New("no laboratory is standing; `fogplr-lab up SCENARIO.toml` makes one")
	}
	defer c.Close()
	err = c.SetDeadline(time.Now().Add(answersWithin))
	if err == nil {
		err = json.NewEncoder(c).Encode(q)
	}
	if err == nil {
		err = json.NewDecoder(c).Decode(&r)
	}
	if err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	return r, err
}

// execute runs a program in a node in the place of this process.
func execute(node string, args []string) error {
	r, err := ask(request{Op: "exec", Node: node, Args: args})
	if err != nil {
		return err
	}
	program, err := exec.LookPath(r.Args[0])
	if err != nil {
		return err
	}
	ns, err := netns.GetFromName(r.Namespace)
	if err != nil {
		return fmt.Errorf("enter %s: %w", node, err)
	}
	runtime.LockOSThread() // a namespace is a thread's
	if err := netns.Set(ns); err != nil {
		return fmt.Errorf("enter %s: %w", node, err)
	}
	return unix.Exec(program, r.Args, append(os.Environ(), r.Env...))
}

// down ends the holder and waits until it is gone.
func down() error {
	if _, err := ask(request{Op: "down"}); err != nil {
		return errors.Join(err, lab.Sweep()) // of a holder that was killed
	}
	for end := time.Now().Add(answersWithin); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(standingSocket); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	return fmt.Errorf("the laboratory does not end; its log is %s", standingLog)
}
