package tunnel

import (
	"fmt"
	"net"
	"sync"

	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/ipc"
)

// uapi serves WireGuard's configuration socket, so that wg(8) can look at a
// device. The socket is its owner's alone.
type uapi struct {
	listener net.Listener
	served   sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

func serveUAPI(name string, dev *device.Device) (*uapi, error) {
	file, err := ipc.UAPIOpen(name)
	if err != nil {
		return nil, fmt.Errorf("open WireGuard's socket for %s: %w", name, err)
	}
	defer file.Close()
	l, err := ipc.UAPIListen(name, file)
	if err != nil {
		return nil, fmt.Errorf("listen on WireGuard's socket for %s: %w", name, err)
	}
	u := &uapi{listener: l, open: make(map[net.Conn]bool)}
	u.served.Add(1)
	go u.accept(dev)
	return u, nil
}

func (u *uapi) accept(dev *device.Device) {
	defer u.served.Done()
	for {
		c, err := u.listener.Accept()
		if err != nil {
			return
		}
		if !u.admit(c) {
			_ = c.Close()
			continue
		}
		u.served.Add(1)
		go func() {
			defer u.served.Done()
			defer u.forget(c)
			dev.IpcHandle(c) // closes c
		}()
	}
}

func (u *uapi) admit(c net.Conn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || len(u.open) >= uapiClients {
		return false
	}
	u.open[c] = true
	return true
}

func (u *uapi) forget(c net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.open, c)
}

// close ends all conversations and waits for them.
func (u *uapi) close() {
	u.mu.Lock()
	u.closed = true
	for c := range u.open {
		_ = c.Close()
	}
	u.mu.Unlock()
	_ = u.listener.Close()
	u.served.Wait()
}
