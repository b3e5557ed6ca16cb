// Package control is the daemon's control socket: HTTP with JSON over a Unix
// socket.
//
//	GET  /v1/status   tunnel.Status
//	POST /v1/reload   nothing, or {"error": "..."} with status 422
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/net/netutil"

	"github.com/fogplr/fogplr/internal/files"
	"github.com/fogplr/fogplr/tunnel"
)

// ErrRunning says that another daemon has the socket.
var ErrRunning = errors.New("a fogplr daemon runs already")

// Handlers are what a Server answers with. They may be called at the same time.
type Handlers struct {
	Status func() tunnel.Status
	// Reload takes the configuration file over, or says why not.
	Reload func() error
}

// Server has a control socket.
type Server struct {
	listener *net.UnixListener
	lock     *os.File
}

// Listen makes the control socket path, mode 0660. A socket that a dead daemon
// left is replaced; when a daemon is alive the error wraps ErrRunning. What
// keeps two daemons apart is a lock on path.lock, which ends with its process
// and not a moment later. The caller must call Close, or Serve, which does.
func Listen(path string) (*Server, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the control socket: %w", err)
	}
	lock, err := lockSocket(path)
	switch {
	case errors.Is(err, ErrRunning):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("cannot make the control socket: %w", err)
	}
	l, err := listenUnix(path)
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("cannot make the control socket: %w", err)
	}
	return &Server{listener: l, lock: lock}, nil
}

// listenUnix is called with the lock held, so whatever is at path is stale.
func listenUnix(path string) (*net.UnixListener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("%s is there and is not a socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(files.LikeDir(path), os.Chmod(path, 0o660)); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Close removes the socket and lets the next daemon have it. It may be called
// more than once.
func (s *Server) Close() error {
	err := s.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	if e := s.lock.Close(); e != nil && !errors.Is(e, os.ErrClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// Serve answers until ctx ends and closes the Server. Its error is nil when ctx
// was the reason.
func (s *Server) Serve(ctx context.Context, h Handlers) error {
	defer s.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, h.Status())
	})
	mux.HandleFunc("POST /v1/reload", func(w http.ResponseWriter, _ *http.Request) {
		if err := h.Reload(); err != nil {
			answer(w, http.StatusUnprocessableEntity, refusal{err.Error()})
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	srv := &http.Server{Handler: mux, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(netutil.LimitListener(s.listener, maxConnections)) }()
	select {
	case err := <-failed:
		return fmt.Errorf("the control socket failed: %w", err)
	case <-ctx.Done():
	}
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := srv.Shutdown(deadline); err != nil {
		_ = srv.Close() // an answer takes too long; its client sees the cut
	}
	<-failed
	return nil
}

// refusal is the body of an answer that carries an error.
type refusal struct {
	Error string `json:"error"`
}

func answer(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // a client that has gone needs no answer
}
