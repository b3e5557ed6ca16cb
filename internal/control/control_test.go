package control

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/tunnel"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("CONTROL_TEST_LISTEN"); path != "" {
		crashAfterListen(path)
	}
	goleak.VerifyTestMain(m)
}

// crashAfterListen ends the process with the socket and the lock held.
func crashAfterListen(path string) {
	if _, err := Listen(path); err != nil {
		os.Exit(3)
	}
	os.Exit(0)
}

// serve runs a Server until the test ends.
func serve(t *testing.T, path string, h Handlers) (stop func()) {
	t.Helper()
	s, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, h) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func socket(t *testing.T) string { return filepath.Join(t.TempDir(), "robot.sock") }

func TestStatusRoundTrip(t *testing.T) {
	want := tunnel.Status{
		Role: "robot", Name: "stretch", Uptime: 1.5, Ready: true, Warnings: []string{"A sentence."},
		Peers: []tunnel.PeerStatus{{Name: "west", Paths: []tunnel.PathStatus{{Carrier: "wlan0", LossIn: -1, Up: true}}}},
	}
	path := filepath.Join(t.TempDir(), "made", "robot.sock")
	serve(t, path, Handlers{Status: func() tunnel.Status { return want }})
	got, err := Status(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != os.ModeSocket|0o660 {
		t.Errorf("socket %v, %v; want mode 0660", info.Mode(), err)
	}
}

func TestReload(t *testing.T) {
	path := socket(t)
	var answer error
	calls := 0
	serve(t, path, Handlers{Reload: func() error { calls++; return answer }})
	if err := Reload(context.Background(), path); err != nil {
		t.Errorf("reload: %v", err)
	}
	answer = errors.New("robot.toml:3: mtu: found 1\nand more")
	if err := Reload(context.Background(), path); err == nil || err.Error() != answer.Error() {
		t.Errorf("refused reload: %v, want %v", err, answer)
	}
	if calls != 2 {
		t.Errorf("%d calls, want 2", calls)
	}
}

func TestOtherRequestsAreRefused(t *testing.T) {
	path := socket(t)
	serve(t, path, Handlers{
		Status: func() tunnel.Status { t.Error("status was asked"); return tunnel.Status{} },
		Reload: func() error { t.Error("reload was asked"); return nil },
	})
	for _, c := range [][2]string{{"POST", "/v1/status"}, {"GET", "/v1/reload"}, {"GET", "/v2/status"}} {
		if _, err := call(context.Background(), path, c[0], c[1]); err == nil || !strings.Contains(err.Error(), "another version") {
			t.Errorf("%s %s: %v", c[0], c[1], err)
		}
	}
}

func TestTwoDaemons(t *testing.T) {
	path := socket(t)
	stop := serve(t, path, Handlers{Status: func() tunnel.Status { return tunnel.Status{Name: "first"} }})
	if !Running(path) {
		t.Error("a live daemon is taken for dead")
	}
	_, err := Listen(path)
	if !errors.Is(err, ErrRunning) || !strings.Contains(err.Error(), path) {
		t.Errorf("second daemon: %v", err)
	}
	if s, err := Status(context.Background(), path); err != nil || s.Name != "first" {
		t.Errorf("after the second daemon: %+v, %v", s, err)
	}
	stop()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	serve(t, path, Handlers{Status: func() tunnel.Status { return tunnel.Status{Name: "second"} }})
	if s, err := Status(context.Background(), path); err != nil || s.Name != "second" {
		t.Errorf("after a restart: %+v, %v", s, err)
	}
}

func TestSocketOfADeadDaemonIsReplaced(t *testing.T) {
	path := socket(t)
	dead := exec.Command(os.Args[0])
	dead.Env = append(os.Environ(), "CONTROL_TEST_LISTEN="+path)
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("the dead daemon left no socket: %v", err)
	}
	if Running(path) {
		t.Error("a dead daemon is taken for alive")
	}
	if _, err := Status(context.Background(), path); !errors.Is(err, ErrNotRunning) {
		t.Errorf("status of a dead daemon: %v", err)
	}
	serve(t, path, Handlers{Status: func() tunnel.Status { return tunnel.Status{Name: "new"} }})
	if s, err := Status(context.Background(), path); err != nil || s.Name != "new" {
		t.Errorf("status %+v, %v", s, err)
	}
}

// Only a socket that nobody has is removed.
func TestSweep(t *testing.T) {
	swept := func(what, path string, want bool) {
		t.Helper()
		got, err := Sweep(path)
		_, gone := os.Lstat(path)
		if got != want || err != nil || want && !errors.Is(gone, os.ErrNotExist) || !want && gone != nil {
			t.Errorf("%s: removed %v, %v; then %v", what, got, err, gone)
		}
	}
	live := socket(t)
	stop := serve(t, live, Handlers{})
	swept("a daemon that answers", live, false)
	stop()
	if got, err := Sweep(live); got || err != nil {
		t.Errorf("nothing there: %v, %v", got, err)
	}
	file := socket(t)
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	swept("a file", file, false)

	stale := socket(t)
	dead := exec.Command(os.Args[0])
	dead.Env = append(os.Environ(), "CONTROL_TEST_LISTEN="+stale)
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	lock, err := lockSocket(stale)
	if err != nil {
		t.Fatal(err)
	}
	swept("a daemon that starts", stale, false)
	lock.Close()
	swept("a dead daemon", stale, true)
	serve(t, stale, Handlers{})
	swept("the next daemon", stale, false)
}

// Nobody accepts, and the queue is full: that is a daemon which cannot keep up.
func TestFullQueue(t *testing.T) {
	path := socket(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if !Running(path) {
			t.Error("it is taken for dead")
		}
		if stale, err := Abandoned(path); stale || err != nil {
			t.Errorf("abandoned: %v, %v", stale, err)
		}
		c, err := net.Dial("unix", path)
		if err == nil {
			defer c.Close()
		}
	}
}

func TestAFileIsNotReplaced(t *testing.T) {
	path := socket(t)
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Listen(path); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("server %v, error %v", s, err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "mine" {
		t.Errorf("the file is now %q, %v", b, err)
	}
}

func TestMissingSocket(t *testing.T) {
	path := socket(t)
	for _, err := range []error{Reload(context.Background(), path), func() error { _, err := Status(context.Background(), path); return err }()} {
		if !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v", err)
		}
	}
	if Running(path) {
		t.Error("no daemon is taken for one")
	}
}

func TestStuckDaemon(t *testing.T) {
	path := socket(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := Status(ctx, path); !errors.Is(err, context.DeadlineExceeded) && (err == nil || !strings.Contains(err.Error(), "has not answered")) {
		t.Errorf("error %v", err)
	}
}

func TestServeEndsWhileAClientIdles(t *testing.T) {
	path := socket(t)
	stop := serve(t, path, Handlers{})
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended := make(chan struct{})
	go func() { stop(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("Serve waits for an idle client")
	}
}

// One client that opens connection after connection must not take the daemon's
// file descriptors: those beyond the limit wait until another has gone.
func TestConnectionsAreBounded(t *testing.T) {
	path := socket(t)
	stop := serve(t, path, Handlers{Status: func() tunnel.Status { return tunnel.Status{Name: "stretch"} }})
	defer stop()
	dial := func() net.Conn {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	idle := dial()
	for range maxConnections - 1 {
		dial()
	}
	late := dial()
	if _, err := late.Write([]byte("GET /v1/status HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	_ = late.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := late.Read(one); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection beyond the limit: %q, %v; want to wait", one, err)
	}
	idle.Close()
	_ = late.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := late.Read(one); err != nil {
		t.Errorf("once another has gone: %v", err)
	}
}
