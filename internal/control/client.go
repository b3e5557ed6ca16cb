package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/tunnel"
)

// Errors of the client.
var (
	// ErrNotRunning says that nobody has the socket.
	ErrNotRunning = errors.New("the fogplr daemon is not running")
	// ErrForbidden says that this user may not open the socket.
	ErrForbidden = errors.New("this user may not talk to the fogplr daemon")
	// ErrSilent says that somebody has the socket and says nothing.
	ErrSilent = errors.New("the fogplr daemon has not answered")
)

// Status asks the daemon at the control socket path for its status. Errors are
// plain sentences; they wrap ErrNotRunning, ErrForbidden or ErrSilent where that is it.
func Status(ctx context.Context, path string) (*tunnel.Status, error) {
	body, err := call(ctx, path, http.MethodGet, "/v1/status")
	if err != nil {
		return nil, err
	}
	var s tunnel.Status
	if err := json.Unmarshal(body, &s); err != nil {
		return nil, fmt.Errorf("the daemon at %s gives an answer that is no status: %w", path, err)
	}
	return &s, nil
}

// Reload has the daemon at the control socket path read its configuration
// again. The error is the daemon's own when it refuses.
func Reload(ctx context.Context, path string) error {
	_, err := call(ctx, path, http.MethodPost, "/v1/reload")
	return err
}

// Running says whether a daemon has the control socket path. It needs the right
// to open it.
func Running(path string) bool {
	c, err := net.Dial("unix", path)
	if err != nil {
		return errors.Is(err, unix.EAGAIN) // so many knock that it cannot keep up
	}
	_ = c.Close()
	return true
}

func call(ctx context.Context, path, method, what string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://fogplr"+what, nil)
	if err != nil {
		return nil, err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, explain(path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, explain(path, err)
	}
	if resp.StatusCode >= 300 {
		return nil, refused(path, resp.StatusCode, body)
	}
	return body, nil
}

func explain(path string, err error) error {
	info, statErr := os.Stat(path)
	switch {
	case statErr == nil && info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is not a socket, so no daemon can be asked there: the daemon's configuration names its control socket", path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no control socket %s", ErrNotRunning, path)
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%w: nobody answers at the control socket %s, so it has crashed or was killed", ErrNotRunning, path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w at %s: use root, or add the user to the group fogplr", ErrForbidden, path)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w within %v: the daemon at %s may be stuck", ErrSilent, clientTimeout, path)
	}
	return fmt.Errorf("cannot talk to the daemon at %s: %w", path, err)
}

// refused returns the error that an answer carries.
func refused(path string, status int, body []byte) error {
	var r refusal
	if err := json.Unmarshal(body, &r); err == nil && r.Error != "" {
		return errors.New(r.Error[:min(len(r.Error), maxError)])
	}
	return fmt.Errorf("the daemon at %s does not understand the question (HTTP status %d): it may be of another version", path, status)
}
