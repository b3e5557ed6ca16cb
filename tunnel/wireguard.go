package tunnel

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.zx2c4.com/wireguard/device"
)

// Key is a Curve25519 private or public key.
type Key = [32]byte

// wireguard is one WireGuard device with its two sides and the peers on it.
type wireguard struct {
	name  string
	dev   *device.Device
	bind  *bind
	queue *queue
	uapi  *uapi
	log   *slog.Logger
}

// complaints are called when the device refuses something of a peer's; nil ones
// are not.
type complaints struct {
	// disallowed: an authenticated frame claims an Address that is not its peer's.
	disallowed func(*device.Peer)
	// replayed: a handshake is not later than an earlier one, by its time stamp.
	replayed func(*device.Peer)
}

// newWireguard brings a device without peers up.
func newWireguard(name string, key Key, port uint16, t *memTUN, b *bind, to complaints, log *slog.Logger) (*wireguard, error) {
	w := &wireguard{name: name, bind: b, queue: t.queue, log: log}
	t.sending, t.receiving = b.sending, b.receiving
	w.dev = device.NewDevice(t, b, w.logger(to))
	err := w.dev.IpcSet(fmt.Sprintf("private_key=%s\nlisten_port=%d\n", hex.EncodeToString(key[:]), port))
	if err != nil {
		w.dev.Close()
		return nil, fmt.Errorf("configure WireGuard device %s: %w", name, err)
	}
	if err := w.dev.Up(); err != nil {
		w.dev.Close()
		return nil, fmt.Errorf("start WireGuard device %s: %w", name, err)
	}
	if w.uapi, err = serveUAPI(name, w.dev); err != nil { // a node works without it
		log.Info("wg show will not list this device.", "device", name, "err", err)
	}
	return w, nil
}

// expect makes the other ends of links peers of the device; those that it has
// already stay as they are.
func (w *wireguard) expect(links []*link) error {
	var c strings.Builder
	for _, l := range links {
		if w.dev.LookupPeer(device.NoisePublicKey(l.key)) == nil {
			fmt.Fprintf(&c, "public_key=%s\nallowed_ip=%s/32\n", hex.EncodeToString(l.key[:]), l.remote.Addr())
		}
	}
	if err := w.dev.IpcSet(c.String()); err != nil {
		return fmt.Errorf("add peers to WireGuard device %s: %w", w.name, err)
	}
	return nil
}

// remove makes the device forget peers.
func (w *wireguard) remove(keys ...Key) {
	for _, k := range keys {
		w.dev.RemovePeer(device.NoisePublicKey(k))
	}
}

// logger adapts wireguard-go's log. Of its verbose lines only two matter here;
// its errors are rare, but a peer can provoke some, so they are limited.
func (w *wireguard) logger(to complaints) *device.Logger {
	limit := new(rateLimit)
	return &device.Logger{
		Verbosef: func(format string, args ...any) {
			var tell func(*device.Peer)
			switch format {
			case disallowedSource:
				tell = to.disallowed
			case replayedHandshake:
				tell = to.replayed
			}
			if tell == nil || len(args) == 0 {
				return
			}
			if p, ok := args[0].(*device.Peer); ok {
				tell(p)
			}
		},
		Errorf: func(format string, args ...any) {
			if limit.allow(warningsPerSecond, time.Now()) {
				w.log.Debug("wireguard: "+fmt.Sprintf(format, args...), "device", w.name)
			}
		},
	}
}

// How wireguard-go says that a peer sent from an address that is not among its
// allowed ones, and that a handshake is not later than the last one; tests hold
// them against the library.
const (
	disallowedSource  = "IPv4 packet with disallowed source address from %v"
	replayedHandshake = "%v - ConsumeMessageInitiation: handshake replay @ %v"
)

// close stops the device and waits for its goroutines.
func (w *wireguard) close() {
	if w.uapi != nil {
		w.uapi.close()
	}
	w.dev.Close()
}

// wgSession is what the device knows of one peer.
type wgSession struct {
	handshake int64 // nanoseconds since 1970 of the last handshake, 0 if never
	endpoint  string
}

// sessions asks the device about its peers.
func (w *wireguard) sessions() map[Key]wgSession {
	text, err := w.dev.IpcGet()
	if err != nil {
		return nil
	}
	all := make(map[Key]wgSession)
	var key Key
	var s wgSession
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "=")
		switch name {
		case "public_key":
			s = wgSession{}
			_, _ = hex.Decode(key[:], []byte(value))
		case "endpoint":
			s.endpoint = value
		case "last_handshake_time_sec":
			sec, _ := strconv.ParseInt(value, 10, 64)
			s.handshake = sec * int64(time.Second)
		case "last_handshake_time_nsec":
			nsec, _ := strconv.ParseInt(value, 10, 64)
			s.handshake += nsec
		default:
			continue
		}
		all[key] = s
	}
	return all
}

// move has what is sent to the peer go to another of its addresses; its keys stay.
func (w *wireguard) move(key Key, to netip.AddrPort) {
	if p := w.dev.LookupPeer(device.NoisePublicKey(key)); p != nil {
		p.SetEndpointFromPacket(newEndpoint(to))
	}
}

// handshake starts one with the peer, at the address that it last sent from unless
// to is valid: whoever delivers a copy of a packet of its from elsewhere sets that
// address. With expire, the keys in use are given up first, which also lifts
// wireguard-go's limit of one initiation in 5 s. What waits for a session is
// dropped: it is stale.
func (w *wireguard) handshake(key Key, to netip.AddrPort, expire bool) {
	p := w.dev.LookupPeer(device.NoisePublicKey(key))
	if p == nil {
		return
	}
	p.FlushStagedPackets()
	if expire {
		p.ExpireCurrentKeypairs()
	}
	if to.IsValid() {
		p.SetEndpointFromPacket(w.bind.peers.to(to))
	}
	_ = p.SendHandshakeInitiation(false) // its send cannot fail, see bind.Send
}
