package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/tunnel"
)

// statusText prints s for people. Texts from other nodes pass through printable,
// since they end up on a terminal.
func statusText(w io.Writer, s *tunnel.Status) {
	state := "ready"
	if !s.Ready {
		state = "not ready"
	}
	fill(w, []string{s.Role, printable(s.Name) + ":", state + ",", "up " + age(s.Uptime) + ",", "version " + printable(s.Version)}, " ")
	fill(w, slices.Concat([]string{s.Interface}, s.Addresses, []string{fmt.Sprint("mtu ", s.MTU)}), "  ")
	paragraph(w, overhead(s))
	if len(s.Carriers) > 0 { // else the daemon's warnings say so, and what to do
		warnings(w, unreached(s))
	}
	warnings(w, s.Warnings)
	if len(s.Carriers) > 0 {
		fmt.Fprintln(w)
		carrierTable(w, s.Carriers)
		fmt.Fprintln(w)
		dataTable(w, s.Carriers)
	}
	if s.Socket != nil {
		fmt.Fprintln(w)
		t := newTable([]int{0}, append([]string{"SOCKET"}, socketHead...)...)
		t.row(socketCells("udp", s.Socket)...)
		t.write(w)
		lastError(w, "udp", s.Socket)
	}
	fmt.Fprintln(w)
	pathTables(w, s)
	fmt.Fprintln(w)
	eliminationTable(w, s)
	fmt.Fprintln(w)
	counters(w, "out", []counter{{"packets", s.Out.Packets}, {"bytes", s.Out.Bytes}, {"local", s.Out.Local},
		{"no_peer", s.Out.NoPeer}, {"no_path", s.Out.NoPath}, {"not_allowed", s.Out.NotAllowed}, {"stale", s.Out.Stale}})
	counters(w, "in", []counter{{"frames", s.In.Frames}, {"malformed", s.In.Malformed}, {"bad_version", s.In.BadVersion},
		{"not_allowed", s.In.NotAllowed}, {"tun_errors", s.In.TUNErrors}, {"stale", s.In.Stale}})
}

func warnings(w io.Writer, sentences []string) {
	for _, s := range sentences {
		paragraph(w, "warning: "+printable(s))
	}
}

// overhead adds up what the largest packet becomes on a carrier.
func overhead(s *tunnel.Status) string {
	c := &s.OnCarrier
	return fmt.Sprintf("a full packet on a carrier: %d + %d tag + %d WireGuard + %d UDP + %d IPv4 = %d bytes, or with %d IPv6 = %d bytes",
		s.MTU, c.Tag, c.WireGuard, c.UDP, c.IPv4, c.LargestIPv4, c.IPv6, c.LargestIPv6)
}

type counter struct {
	name  string
	value uint64
}

func counters(w io.Writer, head string, list []counter) {
	words := []string{head}
	for _, c := range list {
		words = append(words, fmt.Sprint(c.name, " ", c.value))
	}
	fill(w, words, "  ")
}

var socketHead = []string{"TX", "RX", "DROPPED", "ERRORS", "OVERFLOW"}

func socketCells(name string, s *tunnel.SocketStatus) []string {
	return []string{printable(name), size(s.TxBytes), size(s.RxBytes), count(s.TxDropped), count(s.TxErrors), count(s.RxOverflow)}
}

func lastError(w io.Writer, name string, s *tunnel.SocketStatus) {
	if s.LastError != "" {
		paragraph(w, fmt.Sprintf("%s: last error: %s", printable(name), printable(s.LastError)))
	}
}

func carrierTable(w io.Writer, carriers []tunnel.CarrierStatus) {
	t := newTable([]int{0}, slices.Concat([]string{"CARRIER", "SLOT"}, socketHead, []string{"STATE"})...)
	for i := range carriers {
		c := &carriers[i]
		state := "usable"
		switch {
		case c.Gone:
			state = "gone"
		case !c.Usable:
			state = "unusable"
		case c.Captive:
			state = "captive"
		}
		cells := socketCells(c.Interface, &c.Socket)
		t.row(slices.Concat(cells[:1], []string{fmt.Sprint(c.Slot)}, cells[1:], []string{state})...)
	}
	t.write(w)
	names := carrierNames(carriers)
	for i := range carriers {
		c := &carriers[i]
		if c.Problem != "" {
			paragraph(w, fmt.Sprintf("%s: %s", names[c.Slot], printable(c.Problem)))
		} else {
			lastError(w, names[c.Slot], &c.Socket)
		}
	}
}

// carrierNames returns what to call carriers in sentences, by slot: by their
// interface, with the slot where several had the same.
func carrierNames(carriers []tunnel.CarrierStatus) map[int]string {
	same, names := map[string]int{}, map[int]string{}
	for _, c := range carriers {
		same[c.Interface]++
	}
	for _, c := range carriers {
		names[c.Slot] = printable(c.Interface)
		if same[c.Interface] > 1 {
			names[c.Slot] += fmt.Sprintf(" (slot %d)", c.Slot)
		}
	}
	return names
}

// pathTables prints how every path is, and what passed it.
func pathTables(w io.Writer, s *tunnel.Status) {
	// A gateway knows the robots' carriers by their slots alone.
	from, other, names := []string{"CARRIER", "SLOT"}, "GATEWAY", []int{0, 2}
	if s.Role == "gateway" {
		from, other, names = from[:1], "ROBOT", []int{0, 1}
	}
	states := newTable(names, slices.Concat(from, []string{other, "STATE", "RTT", "LOSS_IN", "LOSS_OUT"})...)
	endpoint := len(from) + 6
	traffic := newTable(append(names, endpoint), slices.Concat(from, []string{other, "SENT", "RECV", "DROP", "LATENT", "LARGEST", "ENDPOINT"})...)
	gone := map[int]bool{}
	for _, c := range s.Carriers {
		gone[c.Slot] = c.Gone
	}
	hidden := 0
	for _, peer := range s.Peers {
		for i := range peer.Paths {
			p := &peer.Paths[i]
			if unused(s.Role, p) {
				hidden++
				continue
			}
			way := append([]string{printable(p.Carrier), fmt.Sprint(p.Slot)}[:len(from)], printable(peer.Name))
			rtt, in, out := "-", "-", "-"
			if p.Up { // else they are what they were before
				rtt, in, out = milliseconds(p.RTTms), share(p.LossIn), share(p.LossOut)
			}
			states.row(append(way, pathState(p, gone[p.Slot]), rtt, in, out)...)
			traffic.row(append(way, count(p.TxFrames), count(p.RxFrames), count(p.TxDropped), count(p.LatentErrors),
				known(p.LargestPacket), dash(p.Endpoint))...)
		}
	}
	states.write(w)
	for _, h := range hints(s) {
		paragraph(w, h)
	}
	fmt.Fprintln(w)
	traffic.write(w)
	if hidden > 0 {
		paragraph(w, fmt.Sprintf("(%d carrier slots that no robot has used are left out; --json has them)", hidden))
	}
}

// known prints a size in bytes, if it is known.
func known(bytes int) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprint(bytes)
}

// sizeHint says what becomes of the largest packets on a path that does not take
// them as they are, empty when it does or when that has been said.
func sizeHint(p *tunnel.PathStatus) string {
	switch {
	case !p.Up || p.LargestPacket == 0 || p.Parts == 1 || p.Stage == path.StageLargeLost.String():
		return ""
	case p.Parts == 0:
		return fmt.Sprintf("IP packets of up to %d bytes pass here, which is too little for the largest that plr0 takes: those go over other paths only.", p.LargestPacket)
	}
	return fmt.Sprintf("IP packets of up to %d bytes pass here, so the largest that plr0 takes go in %d parts.", p.LargestPacket, p.Parts)
}

// hints returns every different hint once, with the paths that it is about. What
// is wrong with a carrier has been said of the carrier.
func hints(s *tunnel.Status) []string {
	unusable, names := map[int]bool{}, carrierNames(s.Carriers)
	for _, c := range s.Carriers {
		unusable[c.Slot] = c.Problem != ""
	}
	var texts []string
	paths := map[string][]string{}
	for _, peer := range s.Peers {
		for i := range peer.Paths {
			p := &peer.Paths[i]
			for _, hint := range []string{p.Hint, sizeHint(p)} {
				if hint == "" || unusable[p.Slot] {
					continue
				}
				if paths[hint] == nil {
					texts = append(texts, hint)
				}
				paths[hint] = append(paths[hint], cmp.Or(names[p.Slot], p.Carrier)+" to "+peer.Name)
			}
		}
	}
	for i, text := range texts {
		list, rest := paths[text], ""
		if n := len(list) - manyPaths; n > 0 {
			list, rest = list[:manyPaths], fmt.Sprintf(" and %d more", n)
		}
		texts[i] = printable(strings.Join(list, ", ") + rest + ": " + text)
	}
	return texts
}

func eliminationTable(w io.Writer, s *tunnel.Status) {
	t := newTable([]int{0}, "ELIMINATION", "PASSED", "DISCARDED", "OUT_OF_ORDER", "ROGUE", "LOST", "RESETS", "INCOMPLETE")
	for _, peer := range s.Peers {
		e := peer.Elimination
		cells := []string{printable(peer.Name)}
		for _, n := range []uint64{e.Passed, e.Discarded, e.OutOfOrder, e.Rogue, e.Lost, e.Resets, peer.Incomplete} {
			cells = append(cells, count(n))
		}
		t.row(cells...)
	}
	t.write(w)
}

// pathState says how a path is; gone says that its carrier is.
func pathState(p *tunnel.PathStatus, gone bool) string {
	state := "up"
	switch {
	case !p.Up:
		state = "down: " + downFor(p, gone)
	case !p.Carries:
		state = "up, idle"
	}
	switch {
	case p.Up && p.Stage != "":
		state += ", " + printable(p.Stage)
	case p.Latent && (p.Up || !gone):
		state += ", latent error"
	}
	return state
}

func milliseconds(ms float64) string {
	if ms <= 0 {
		return "-"
	}
	if ms >= 1000 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f ms", ms)
}

func share(x float64) string {
	if x < 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*x)
}

// size prints bytes, count anything else: in five digits at most.
func size(n uint64) string  { return short(n, 1000, "B") }
func count(n uint64) string { return short(n, 1_000_000, "") }

// short prints n, from least on with a decimal prefix.
func short(n, least uint64, unit string) string {
	gap := ""
	if unit != "" {
		gap = " "
	}
	if n < least {
		return fmt.Sprint(n) + gap + unit
	}
	x, prefix := float64(n)/1000, 0
	for x >= 999.95 && prefix < 4 {
		x /= 1000
		prefix++
	}
	return fmt.Sprintf("%.1f%s%c%s", x, gap, "kMGTP"[prefix], unit)
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
