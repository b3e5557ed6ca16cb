package path

import (
	"math"
	"time"
)

// course remembers how the totals of one direction went on, for about ten
// seconds.
type course struct {
	marks [lossBuckets]mark // ring, the newest at pos
	pos   int
	now   mark
}

// mark is how far the totals were at a time, of which the low 24 bits are known.
// excused are losses that do not count.
type mark struct {
	at                          time.Time
	received, expected, excused uint32
}

// total takes the totals as they are now. Probes that were lost for their size are
// excused: whichever way they got lost, they say nothing of other frames. When the
// totals are smaller than before, the other side has begun anew, and so does the
// course.
func (c *course) total(received, expected, excused uint32, now time.Time) {
	if since24(expected, c.now.expected) < 0 || since24(received, c.now.received) < 0 {
		*c = course{}
	}
	c.now = mark{now, received, expected, excused}
	if m := &c.marks[c.pos]; m.at.IsZero() || now.Sub(m.at) >= lossBucket {
		c.pos = (c.pos + 1) % lossBuckets
		c.marks[c.pos] = c.now
	}
}

// window returns the share lost and the frames expected over the last ten seconds.
func (c *course) window(now time.Time) (w sample) {
	var oldest mark
	for i := range c.marks {
		oldest = c.marks[(c.pos+1+i)%lossBuckets]
		if !oldest.at.IsZero() && now.Sub(oldest.at) <= lossBuckets*lossBucket {
			break
		}
	}
	if oldest.at.IsZero() || now.Sub(oldest.at) > lossBuckets*lossBucket {
		return sample{}
	}
	expected := float64(since24(c.now.expected, oldest.expected))
	excused := min(expected, float64(c.now.excused-oldest.excused))
	lost := expected - float64(since24(c.now.received, oldest.received))
	w.n = expected - excused
	w.share = max(0, lost-excused) / max(w.n, 1)
	return w
}

// sample is a share measured on n frames.
type sample struct{ share, n float64 }

func (s sample) enough() bool { return s.n >= lossEvidence }

// arrived is the share of frames that arrived, as far as one knows.
func (s sample) arrived() float64 {
	if !s.enough() {
		return 1
	}
	return 1 - s.share
}

// margin is by how much the true share differs at most, mostly (two standard
// deviations).
func (s sample) margin() float64 {
	p := (s.share*s.n + 1) / (s.n + 2)
	return 2 * math.Sqrt(p*(1-p)/(s.n+2))
}

// ways are the directions in which a path loses much more than in the other.
type ways uint8

const (
	neither ways = iota
	wayOut
	wayIn
)

// quality judges what a path loses. A verdict stands until there is evidence
// against it, or for a minute without evidence.
type quality struct {
	out, in course
	judged  time.Time // when there last was evidence
	weighed time.Time // when there last was evidence of way
	turned  time.Time // when the verdict last became another
	lossy   bool      // too much to be of use alone
	way     ways
}

// renew begins the courses anew with the next totals. A verdict that had not stood
// for longer than they reach was that of an outage on its way, and goes with them.
func (q *quality) renew() {
	q.out, q.in = course{}, course{}
	if q.judged.Sub(q.turned) < lossBuckets*lossBucket {
		q.lossy, q.way = false, neither
	}
}

// judge looks at the last ten seconds. answered is the share of probes that are
// answered, which is all there is on an idle path.
func (q *quality) judge(answered float64, now time.Time) {
	out, in := q.out.window(now), q.in.window(now)
	lossy, way := q.lossy, q.way
	if out.enough() || in.enough() {
		q.judged = now
		q.judgeLossy(out, in)
	} else if now.Sub(q.judged) >= verdictFor {
		q.lossy = answered < answeredLeast
	}
	q.judgeWay(out, in, now)
	if q.lossy != lossy || q.way != way {
		q.turned = now
	}
}

func (q *quality) judgeLossy(out, in sample) {
	heavy, light := false, true
	for _, s := range [...]sample{out, in} {
		if s.enough() {
			heavy = heavy || s.share >= lossyShare && s.share-s.margin() >= lossyLeast
			light = light && s.share < lossyLeast
		}
	}
	q.lossy = heavy || q.lossy && !light
}

// judgeWay compares the directions, which takes evidence of both. The verdict on one
// ends by evidence of that one alone as well.
func (q *quality) judgeWay(out, in sample, now time.Time) {
	if !out.enough() || !in.enough() {
		accused := out
		if q.way == wayIn {
			accused = in
		}
		if accused.enough() && accused.share < oneWayLeast || now.Sub(q.weighed) >= verdictFor {
			q.way = neither
		}
		return
	}
	q.weighed = now
	more, less, way := out, in, wayOut
	if in.share > out.share {
		more, less, way = in, out, wayIn
	}
	switch {
	case more.share >= oneWayShare && more.share-more.margin() >= oneWayLeast && less.share+less.margin() <= more.share/oneWayFactor:
		q.way = way
	case more.share < oneWayLeast || way != q.way || less.share >= more.share/2:
		q.way = neither
	}
}
