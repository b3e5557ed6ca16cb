package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/tunnel"
)

// Widths of the columns of the live table.
const lineFormat = "%4s %8s %5s %11s"

func printHeader(w io.Writer, carriers []carrier) {
	fmt.Fprintf(w, lineFormat, "", "replies", "lost", "slowest")
	for _, c := range carriers {
		fmt.Fprintf(w, "   %-28s", c.name)
	}
	fmt.Fprintln(w, "   replies by")
}

// printLine prints what the robot and the client know after elapsed.
func printLine(w io.Writer, elapsed time.Duration, carriers []carrier, s *tunnel.Status, events []apps.Event) {
	replies, lost, slowest := 0, 0, 0.0
	by := map[string]int{}
	for _, e := range events {
		switch {
		case e.Lost:
			lost++
		case e.First():
			replies++
			slowest = max(slowest, e.LatencyMS)
			by[e.By]++
		}
	}
	fmt.Fprintf(w, lineFormat, fmt.Sprintf("%.0f s", elapsed.Seconds()), fmt.Sprint(replies), fmt.Sprint(lost), fmt.Sprintf("%.0f ms", slowest))
	for _, c := range carriers {
		fmt.Fprintf(w, "   %-28s", describe(s, c.name))
	}
	fmt.Fprintf(w, "   west %d, east %d\n", by["west"], by["east"])
}

// describe tells how a carrier is: how many of its paths are up, and their mean
// round-trip time and loss (both directions together).
func describe(s *tunnel.Status, name string) string {
	paths, up, measured := 0, 0, 0
	var rtt, loss float64
	for _, peer := range s.Peers {
		for _, p := range peer.Paths {
			if p.Carrier != name {
				continue
			}
			paths++
			if !p.Up {
				continue
			}
			up++
			rtt += p.RTTms
			if p.LossIn >= 0 && p.LossOut >= 0 {
				loss += 1 - (1-p.LossIn)*(1-p.LossOut)
				measured++
			}
		}
	}
	if up == 0 {
		return fmt.Sprintf("down (0 of %d paths up)", paths)
	}
	text := fmt.Sprintf("%d of %d up, %.0f ms", up, paths, rtt/float64(up))
	if measured > 0 {
		text += fmt.Sprintf(", %.1f %% lost", 100*loss/float64(measured))
	}
	return text
}

// printResults prints the last table.
func printResults(w io.Writer, results []*result) {
	const format = "%-25s %6v %8v %5v %12v %8v %8v %8v %8v   %s\n"
	ms := func(x float64) string { return fmt.Sprintf("%.0f ms", x) }
	fmt.Fprintf(w, format, "", "calls", "replies", "lost", fmt.Sprintf("over %d ms", deadlineMS), "mean", "p50", "p99", "max", "sent and received")
	for _, r := range results {
		c := r.Calls
		fmt.Fprintf(w, format, r.Run, c.Requests, c.Replies, c.Lost, c.Missed, ms(c.MeanMS), ms(c.P50MS), ms(c.P99MS), ms(c.MaxMS), r.bytes())
	}
}

func (r *result) bytes() string {
	var parts []string
	for _, c := range []carrier{cellA, cellB} {
		if t, ok := r.Traffic[c.name]; ok {
			parts = append(parts, fmt.Sprintf("%s: %d and %d kB", c.name, t.Sent/1000, t.Received/1000))
		}
	}
	return strings.Join(parts, ", ")
}
