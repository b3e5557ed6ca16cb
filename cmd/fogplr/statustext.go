package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fogplr/fogplr/tunnel"
)

// statusText prints s for people. Texts from other nodes pass through printable,
// since they end up on a terminal.
func statusText(w io.Writer, s *tunnel.Status) {
	state := "ready"
	if !s.Ready {
		state = "not ready"
	}
	fmt.Fprintf(w, "%s %s  %s  %s %s mtu %d  up %s  version %s\n", s.Role, printable(s.Name), state,
		s.Interface, strings.Join(s.Addresses, " "), s.MTU, age(s.Uptime), printable(s.Version))
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "warning: %s\n", printable(warning))
	}
	if len(s.Carriers) > 0 {
		fmt.Fprintln(w)
		carrierTable(w, s.Carriers)
	}
	if s.Socket != nil {
		fmt.Fprintln(w)
		t := newTable(w, "SOCKET", socketHead...)
		t.row(socketCells("udp", *s.Socket)...)
		t.flush()
	}
	fmt.Fprintln(w)
	pathTable(w, s)
	fmt.Fprintln(w)
	eliminationTable(w, s)
	fmt.Fprintln(w)
	fmt.Fprintf(w, "out  packets %d  bytes %d  local %d  no_peer %d  no_path %d  not_allowed %d\n",
		s.Out.Packets, s.Out.Bytes, s.Out.Local, s.Out.NoPeer, s.Out.NoPath, s.Out.NotAllowed)
	fmt.Fprintf(w, "in   frames %d  malformed %d  bad_version %d  not_allowed %d  tun_errors %d\n",
		s.In.Frames, s.In.Malformed, s.In.BadVersion, s.In.NotAllowed, s.In.TUNErrors)
}

var socketHead = []string{"TX", "RX", "TX_DROPPED", "TX_ERRORS", "RX_OVERFLOW"}

func socketCells(name string, s tunnel.SocketStatus) []string {
	return []string{name, size(s.TxBytes), size(s.RxBytes), fmt.Sprint(s.TxDropped), fmt.Sprint(s.TxErrors), fmt.Sprint(s.RxOverflow)}
}

func carrierTable(w io.Writer, carriers []tunnel.CarrierStatus) {
	t := newTable(w, "CARRIER", append([]string{"SLOT"}, append(socketHead, "STATE")...)...)
	for _, c := range carriers {
		state := "usable"
		switch {
		case !c.Usable:
			state = printable(c.Problem)
		case c.Socket.LastError != "":
			state = "usable, last error: " + printable(c.Socket.LastError)
		}
		cells := socketCells(c.Interface, c.Socket)
		t.row(append([]string{cells[0], fmt.Sprint(c.Slot)}, append(cells[1:], state)...)...)
	}
	t.flush()
}

func pathTable(w io.Writer, s *tunnel.Status) {
	other := "GATEWAY"
	if s.Role == "gateway" {
		other = "ROBOT"
	}
	t := newTable(w, "CARRIER", other, "STATE", "RTT", "LOSS_IN", "LOSS_OUT", "TX_FRAMES", "RX_FRAMES", "DROPPED", "LATENT", "ENDPOINT")
	hidden := 0
	var hints []string
	for _, peer := range s.Peers {
		for i := range peer.Paths {
			p := &peer.Paths[i]
			if unused(s.Role, p) {
				hidden++
				continue
			}
			t.row(printable(p.Carrier), printable(peer.Name), pathState(p), milliseconds(p.RTTms), share(p.LossIn), share(p.LossOut),
				fmt.Sprint(p.TxFrames), fmt.Sprint(p.RxFrames), fmt.Sprint(p.TxDropped), fmt.Sprint(p.LatentErrors), dash(p.Endpoint))
			if p.Hint != "" {
				hints = append(hints, fmt.Sprintf("%s to %s: %s", printable(p.Carrier), printable(peer.Name), printable(p.Hint)))
			}
		}
	}
	t.flush()
	for _, hint := range hints {
		fmt.Fprintln(w, hint)
	}
	if hidden > 0 {
		fmt.Fprintf(w, "(%d carrier slots that no robot has used are left out; --json has them)\n", hidden)
	}
}

func eliminationTable(w io.Writer, s *tunnel.Status) {
	t := newTable(w, "ELIMINATION", "PASSED", "DISCARDED", "OUT_OF_ORDER", "ROGUE", "LOST", "RESETS")
	for _, peer := range s.Peers {
		e := peer.Elimination
		cells := []string{printable(peer.Name)}
		for _, n := range []uint64{e.Passed, e.Discarded, e.OutOfOrder, e.Rogue, e.Lost, e.Resets} {
			cells = append(cells, fmt.Sprint(n))
		}
		t.row(cells...)
	}
	t.flush()
}

// table aligns its columns.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, first string, rest ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(append([]string{first}, rest...)...)
	return t
}

func (t table) row(cells ...string) { fmt.Fprintln(t.w, strings.Join(cells, "\t")) }

func (t table) flush() { _ = t.w.Flush() }

func pathState(p *tunnel.PathStatus) string {
	state := "up"
	switch {
	case !p.Up && p.Stage != "":
		state = "down: " + printable(p.Stage)
	case !p.Up && p.LastProof < 0:
		state = "down: not yet up"
	case !p.Up:
		state = "down: silent for " + age(p.LastProof)
	case !p.Carries:
		state = "up, idle"
	}
	if p.Latent {
		state += ", latent error"
	}
	return state
}

func milliseconds(ms float64) string {
	if ms <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", ms)
}

func share(x float64) string {
	if x < 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*x)
}

func size(n uint64) string {
	const unit = 1000
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	x, prefix := float64(n)/unit, 0
	for x >= 999.95 && prefix < 3 {
		x /= unit
		prefix++
	}
	return fmt.Sprintf("%.1f %cB", x, "kMGT"[prefix])
}

// age prints seconds in two units at most.
func age(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return printable(s)
}

// printable replaces control characters, which could change a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
