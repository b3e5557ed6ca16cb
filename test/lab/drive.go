package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// builtin opens the names of generated traces.
const builtin = "builtin:"

// Generated traces stand in for a file: RTT.File is one of these names, and
// RTT.Column a number. Equal seeds give equal traces; all columns of one kind and
// seed belong to one drive, so that they can fail together.
const (
	// Driving is a car with four operators (columns 1 to 4): handovers, stretches
	// of bad coverage, holes, and now and then a tunnel that several share.
	Driving = builtin + "driving"
	// Indoor is a Wi-Fi with contention and roaming gaps (column 1) beside a 5G
	// without holes (column 2).
	Indoor = builtin + "indoor"
)

// generatedRows is how long a generated trace is: an hour of seconds.
const generatedRows = 3600

// episode is a stretch of rows that begins with a chance for every row outside
// of one and lasts for low to high rows.
type episode struct {
	chance    float64
	low, high int
	left      int
}

func (e *episode) step(r *rand.Rand) bool {
	if e.left > 0 {
		e.left--
		return true
	}
	if r.Float64() >= e.chance {
		return false
	}
	e.left = e.low + r.IntN(e.high-e.low+1) - 1
	return true
}

// radio is one operator, or one Wi-Fi.
type radio struct {
	base, spread, noise float64 // ms, of a logarithmic normal that changes slowly
	spike, slow, hole   episode
	spikeMS, slowBy     [2]float64 // added, times
	slowLoss            float64    // share of rows without service in slow stretches
	shared              [2]float64 // chances that a shared episode is slow, or a hole
}

func between(r *rand.Rand, span [2]float64) float64 { return span[0] + r.Float64()*(span[1]-span[0]) }

// row returns the next row in ms, -1 without service. shared says that there is
// an episode common to all, and fate (0 to 1) what it does here.
func (c *radio) row(r *rand.Rand, shared bool, fate float64) float64 {
	c.noise = 0.7*c.noise + math.Sqrt(1-0.7*0.7)*r.NormFloat64()
	ms := c.base * math.Exp(c.spread*c.noise)
	slow, hole := c.slow.step(r), c.hole.step(r)
	if shared {
		slow = slow || fate < c.shared[0]
		hole = hole || fate > 1-c.shared[1]
	}
	if c.spike.step(r) {
		ms += between(r, c.spikeMS)
	}
	if slow {
		ms *= between(r, c.slowBy)
		hole = hole || r.Float64() < c.slowLoss
	}
	if hole {
		return -1
	}
	return min(ms, 5000)
}

func drivingRadio(i int) *radio {
	return &radio{
		base: 52 + 11*float64(i), spread: 0.25,
		spike: episode{chance: 1. / 35, low: 1, high: 1}, spikeMS: [2]float64{100, 450},
		slow: episode{chance: 1. / 150, low: 3, high: 15}, slowBy: [2]float64{2, 12}, slowLoss: 0.15,
		hole:   episode{chance: 1. / 400, low: 2, high: 12},
		shared: [2]float64{0.6, 0.2},
	}
}

func indoorRadios() []*radio {
	return []*radio{
		{
			base: 6, spread: 0.35,
			spike: episode{chance: 1. / 20, low: 1, high: 2}, spikeMS: [2]float64{10, 60},
			slow: episode{chance: 1. / 60, low: 3, high: 20}, slowBy: [2]float64{4, 30},
			hole: episode{chance: 1. / 90, low: 1, high: 3},
		},
		{base: 24, spread: 0.15, spike: episode{chance: 1. / 80, low: 1, high: 1}, spikeMS: [2]float64{20, 80}},
	}
}

// generate returns all columns of a generated trace, in ms.
func generate(kind string, seed uint64) ([][]float64, error) {
	r := rand.New(rand.NewPCG(seed, 0x666f67706c72))
	var radios []*radio
	tunnel := episode{}
	switch kind {
	case Driving:
		for i := range 4 {
			radios = append(radios, drivingRadio(i))
		}
		tunnel = episode{chance: 1. / 600, low: 3, high: 8}
	case Indoor:
		radios = indoorRadios()
	default:
		return nil, fmt.Errorf("there is no trace %s; the built-in ones are %s and %s", kind, Driving, Indoor)
	}
	columns := make([][]float64, len(radios))
	fates := make([]float64, len(radios))
	for range generatedRows {
		began := tunnel.left == 0
		shared := tunnel.step(r)
		for i, c := range radios {
			if shared && began {
				fates[i] = r.Float64()
			}
			columns[i] = append(columns[i], c.row(r, shared, fates[i]))
		}
	}
	return columns, nil
}

// generated returns the text of a generated trace, as a file would have it.
func generated(kind string, seed uint64) (string, error) {
	columns, err := generate(kind, seed)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for i := range columns {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, "%d", i+1)
	}
	for row := range generatedRows {
		before := byte('\n')
		for i := range columns {
			text.WriteByte(before)
			text.WriteString(strconv.FormatFloat(columns[i][row], 'f', 3, 64))
			before = ','
		}
	}
	return text.String(), nil
}
