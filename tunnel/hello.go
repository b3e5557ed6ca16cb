package tunnel

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"time"

	"github.com/pion/stun/v3"
)

// A robot asks each gateway's port with a STUN binding request (RFC 8489)
// outside of WireGuard, and the gateway answers anybody. The answer proves
// nothing and decides nothing; it only lets status tell a gateway that cannot
// be reached from one that refuses the handshake.

// stunPadding makes a request at least as long as its answer, so that a gateway
// never sends more than it got (no amplification).
const stunPadding = "fogplr reachability check, padded"

// isSTUN tells STUN from WireGuard by the first octet and the magic cookie (RFC
// 8489 section 5): a WireGuard message begins with 1 to 4 and three zeros.
func isSTUN(d []byte) bool {
	return len(d) >= 20 && d[0] < 2 && binary.BigEndian.Uint32(d[4:]) == 0x2112a442
}

// stunRequest returns an encoded binding request with its transaction.
func stunRequest() ([]byte, [stun.TransactionIDSize]byte, error) {
	m, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.NewSoftware(stunPadding))
	if err != nil {
		return nil, [stun.TransactionIDSize]byte{}, err
	}
	return m.Raw, m.TransactionID, nil
}

// stunAnswer returns the answer to a binding request from that address, nil if
// msg is not one or is shorter than the answer would be.
func stunAnswer(msg []byte, from netip.AddrPort) []byte {
	var req stun.Message
	if err := stun.Decode(msg, &req); err != nil || req.Type != stun.BindingRequest {
		return nil
	}
	answer, err := stun.Build(&req, stun.BindingSuccess,
		&stun.XORMappedAddress{IP: from.Addr().AsSlice(), Port: int(from.Port())})
	if err != nil || len(answer.Raw) > len(msg) {
		return nil
	}
	return answer.Raw
}

// stunTransaction returns the transaction of a successful answer.
func stunTransaction(msg []byte) (id [stun.TransactionIDSize]byte, ok bool) {
	var m stun.Message
	if err := stun.Decode(msg, &m); err != nil || m.Type != stun.BindingSuccess {
		return id, false
	}
	return m.TransactionID, true
}

// rateLimit allows n events in any one second, counted from its first.
type rateLimit struct {
	mu    sync.Mutex
	since time.Time
	used  int
}

func (r *rateLimit) allow(n int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.since) >= time.Second {
		r.since, r.used = now, 0
	}
	r.used++
	return r.used <= n
}

// answerSTUN is a gateway's bind.stun.
func answerSTUN() func(*bind, []byte, netip.AddrPort) {
	limit := new(rateLimit)
	return func(b *bind, msg []byte, from netip.AddrPort) {
		if !limit.allow(stunPerSecond, time.Now()) {
			return
		}
		if a := stunAnswer(msg, from); a != nil {
			to := newEndpoint(from)
			if s := b.socketFor(to); s != nil {
				s.transmit([][]byte{a}, to)
			}
		}
	}
}
