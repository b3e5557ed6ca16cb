package check

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/hello"
)

// Answer is whether a gateway answers through a carrier.
type Answer struct {
	Carrier  string         `json:"carrier"`
	Gateway  string         `json:"gateway"`
	Endpoint netip.AddrPort `json:"endpoint"`
	Heard    bool           `json:"answered"`
	// RTTms is from the question that was answered to its answer, in ms; 0 when
	// there is none.
	RTTms float64 `json:"rtt_ms,omitempty"`
}

// questions are all pairs of a usable carrier and an address of a gateway that it
// has a route to. What the daemon does not use is not used here either: no book
// would count it.
func questions(f *Facts) []Answer {
	out := []Answer{}
	if f.Network == nil {
		return out
	}
	spared := f.spared()
	for _, g := range f.Config.Gateways {
		for _, e := range f.endpoints(g) {
			for _, c := range f.Network.Carriers {
				if c.Problem == "" && !spared[c.Interface] && c.Reached[e.Addr()] && len(out) < maxQuestions {
					out = append(out, Answer{Carrier: c.Interface, Gateway: g.Name, Endpoint: e})
				}
			}
		}
	}
	return out
}

// askAll asks all at once, by a plain STUN request (package hello),
// which a gateway answers to anybody.
func (h Host) askAll(ctx context.Context, f *Facts) {
	f.Answers = questions(f)
	var wg sync.WaitGroup
	for i := range f.Answers {
		wg.Go(func() {
			a := &f.Answers[i]
			rtt, err := h.Ask(ctx, a.Carrier, a.Endpoint)
			if a.Heard = err == nil; a.Heard {
				a.RTTms = float64(rtt) / float64(time.Millisecond)
			}
		})
	}
	wg.Wait()
}

// ask sends binding requests through an interface until one is answered, or
// askTries are not, and returns how long the answer took.
func ask(ctx context.Context, iface string, to netip.AddrPort) (time.Duration, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), iface) }); e != nil {
			return e
		}
		return err
	}}
	network := "udp4"
	if to.Addr().Is6() {
		network = "udp6"
	}
	pc, err := lc.ListenPacket(ctx, network, ":0")
	if err != nil {
		return 0, err
	}
	defer pc.Close()
	conn := pc.(*net.UDPConn)
	sent := make(map[hello.TransactionID]time.Time, askTries) // each its own, so that no late answer looks quick
	for range askTries {
		var id hello.TransactionID
		rand.Read(id[:])
		sent[id] = time.Now()
		if _, err := conn.WriteToUDPAddrPort(hello.PlainRequest(id), to); err != nil {
			return 0, err
		}
		if err := conn.SetReadDeadline(time.Now().Add(askPatience)); err != nil {
			return 0, err
		}
		if at, ok := answered(conn, sent, to); ok {
			return time.Since(at), nil
		}
	}
	return 0, errSilent
}

var errSilent = errors.New("no answer")

// answered reads until an answer to one of the questions comes, or the deadline,
// and returns when that question was sent.
func answered(conn *net.UDPConn, sent map[hello.TransactionID]time.Time, from netip.AddrPort) (at time.Time, ok bool) {
	b := make([]byte, hello.MaxMessage+1)
	for {
		n, addr, err := conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return time.Time{}, false
		}
		id, success := hello.Succeeded(b[:n])
		if at, ours := sent[id]; success && ours && netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()) == from {
			return at, true
		}
	}
}

// unasked says through which carriers nobody was asked although they could send.
func (f *Facts) unasked() []Finding {
	if f.Answers == nil || f.Network == nil {
		return nil
	}
	var out []Finding
	spared := f.spared()
	for i := range f.Network.Carriers {
		if c := &f.Network.Carriers[i]; c.Problem == "" && spared[c.Interface] {
			out = append(out, Finding{ID: "carrier.not_asked", Level: Note,
				Text: fmt.Sprintf("No gateway was asked through %s: fogplr does not use it now, or this user may not know whether its monthly_cap is used up, and a question would cost data that nobody counts.", c.Interface)})
		}
	}
	return out
}

// spared are the carriers that must not be used although they could be.
func (f *Facts) spared() map[string]bool {
	out := map[string]bool{}
	for name := range f.unused() {
		out[name] = true
	}
	for _, c := range f.Caps { // there are none while the daemon tells
		if c.Unknown {
			out[c.Carrier] = true
		}
	}
	return out
}

// judgeAnswers looks at which gateways answer, if they were asked.
func judgeAnswers(f *Facts) []Finding {
	var gateways, carriers []string
	heard := map[string]bool{}
	for _, a := range f.Answers {
		if !slices.Contains(gateways, a.Gateway) {
			gateways = append(gateways, a.Gateway)
		}
		if !slices.Contains(carriers, a.Carrier) {
			carriers = append(carriers, a.Carrier)
		}
		if a.Heard {
			heard["gateway "+a.Gateway], heard["carrier "+a.Carrier] = true, true
		}
	}
	level := Fails
	if len(heard) > 0 {
		level = Warning
	}
	out := f.unasked()
	for _, g := range gateways {
		if !heard["gateway "+g] {
			out = append(out, Finding{ID: "gateway.answer", Level: level,
				Text: fmt.Sprintf("Gateway %s does not answer through any carrier: it does not run, its endpoint in %s is wrong, or its port is filtered.", g, f.Config.File)})
		}
	}
	for _, c := range carriers {
		if !heard["carrier "+c] && len(heard) > 0 {
			out = append(out, Finding{ID: "carrier.answer", Level: Warning,
				Text: fmt.Sprintf("No gateway answers through %s, although through another carrier one does: that network has no connection, filters UDP, or waits for a login page to be filled in.", c)})
		}
	}
	return out
}
