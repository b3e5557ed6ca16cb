package lab

import (
	"fmt"
	"math"
	"time"
)

// Distribution is the shape of a link's jitter.
type Distribution uint8

// Shapes of jitter.
const (
	// Uniform spreads the delay evenly over Delay-Jitter to Delay+Jitter.
	Uniform Distribution = iota
	// Normal has Jitter as its standard deviation and is cut at four of them.
	Normal
)

// GilbertElliott is a loss model with two states, for losses that come in
// bursts. The state is drawn anew for every packet. All values are
// probabilities (0 to 1).
type GilbertElliott struct {
	ToBad    float64 // from good to bad
	ToGood   float64 // from bad to good; 1/ToGood is the mean length of a burst
	LossGood float64
	LossBad  float64
}

// Params is what one direction of a link does to packets. The zero value
// passes everything at once.
//
// The order is: black hole, MTU, rate or capacity and queue, loss, delay. So a
// lost packet used the link, as on a radio.
type Params struct {
	// Delay is the mean time in flight, 0 or more.
	Delay time.Duration
	// RTT, when set, adds a recorded delay and its holes; see LinkParams.Start.
	RTT *RTT
	// Jitter is half the width (Uniform) or the standard deviation (Normal) of
	// the delay. Packets never overtake each other because of it (unless RTT is
	// set): one that is due before its predecessor leaves together with it, so at
	// high packet rates the delay leans to the upper end.
	Jitter       time.Duration
	Distribution Distribution
	// Loss is the share (0 to 1) of packets lost, each for itself.
	Loss float64
	// Burst, when set, loses packets in bursts, in addition to Loss.
	Burst *GilbertElliott
	// Rate is in bit/s of whole Ethernet frames; 0 means no limit. A new rate
	// holds for packets that arrive after it was set.
	Rate float64
	// Capacity, when set, is a file of the times, in ms since LinkParams.Start, at
	// each of which 1,500 bytes may leave, over and over; before the start there is
	// no limit. It stands in for Rate.
	Capacity string
	// Queue is the longest time a packet may wait for its turn; one that would
	// wait longer is dropped (drop tail). 0 means 100 ms.
	Queue time.Duration
	// MTU, when not 0, makes packets longer than this (bytes, without the
	// Ethernet header) vanish without a word.
	MTU int
	// Big, when not 0, makes packets longer than this (bytes, as for MTU) meet
	// BigLoss (0 to 1) in addition to Loss.
	Big     int
	BigLoss float64
	// BlackHole swallows every packet that enters or would leave, while the
	// devices stay up.
	BlackHole bool
	// Duplicate is the share (0 to 1) of packets that arrive twice.
	Duplicate float64
	// Reorder is the share (0 to 1) of packets that are held back by
	// ReorderDelay (0 means 10 ms) while later ones go on.
	Reorder      float64
	ReorderDelay time.Duration
}

// RoundTrip returns the parameters of one direction of a link whose two
// directions together have the given delay (plus or minus jitter, uniform) and
// loss (0 to 1).
func RoundTrip(delay, jitter time.Duration, loss float64) Params {
	return Params{Delay: delay / 2, Jitter: jitter / 2, Loss: 1 - math.Sqrt(1-loss)}
}

func (p *Params) check() error {
	for _, s := range []struct {
		name  string
		share float64
	}{{"Loss", p.Loss}, {"Duplicate", p.Duplicate}, {"Reorder", p.Reorder}, {"BigLoss", p.BigLoss}} {
		if !isShare(s.share) {
			return fmt.Errorf("link parameter %s is %v, want 0 to 1", s.name, s.share)
		}
	}
	if b := p.Burst; b != nil {
		if !isShare(b.ToBad) || !isShare(b.ToGood) || !isShare(b.LossGood) || !isShare(b.LossBad) {
			return fmt.Errorf("link parameter Burst is %+v, want probabilities from 0 to 1", *b)
		}
	}
	if p.Capacity != "" && p.Rate > 0 {
		return fmt.Errorf("link parameters %+v: either Rate or Capacity", *p)
	}
	if p.Delay < 0 || p.Jitter < 0 || p.Queue < 0 || p.ReorderDelay < 0 || p.MTU < 0 || p.Big < 0 || p.Rate < 0 || math.IsNaN(p.Rate) {
		return fmt.Errorf("link parameters %+v: nothing may be negative", *p)
	}
	return nil
}

func isShare(x float64) bool { return x >= 0 && x <= 1 }

func (p *Params) queue() time.Duration {
	if p.Queue == 0 {
		return defaultQueue
	}
	return p.Queue
}

func (p *Params) reorderDelay() time.Duration {
	if p.ReorderDelay == 0 {
		return defaultReorderDelay
	}
	return p.ReorderDelay
}
