package main

import (
	"io"
	"slices"

	"github.com/fogplr/fogplr/tunnel"
)

// dataTable prints what carriers cost: fogplr's own traffic, and what was used of
// monthly caps, if there are any.
func dataTable(w io.Writer, carriers []tunnel.CarrierStatus) {
	metered := slices.ContainsFunc(carriers, func(c tunnel.CarrierStatus) bool { return c.Usage != nil })
	head := []string{"CARRIER", "LABEL", "OWN", "OWN/DAY"}
	if metered {
		head = append(head, "USED", "CAP", "MONTH")
	}
	names := carrierNames(carriers)
	t := newTable([]int{0, 1}, head...)
	for i := range carriers {
		c := &carriers[i]
		perDay := "-"
		if c.OwnPerDay > 0 {
			perDay = size(c.OwnPerDay)
		}
		cells := []string{names[c.Slot], dash(c.Label), size(c.OwnBytes), perDay}
		switch {
		case c.Usage != nil:
			cells = append(cells, size(c.Usage.Used), size(c.Usage.Cap), printable(c.Usage.Month))
		case metered:
			cells = append(cells, "-", "-", "-")
		}
		t.row(cells...)
	}
	t.write(w)
}
