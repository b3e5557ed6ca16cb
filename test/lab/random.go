package lab

import "math"

// draw numbers the random decisions about one packet. Each has its own number,
// so that changing one parameter does not shift the others' luck.
type draw uint64

const (
	drawLoss draw = iota
	drawJitter
	drawJitter2
	drawDuplicate
	drawReorder
	drawState
	drawBurst
	drawBig
	draws // how many there are
)

// uniform returns a number in [0, 1) that depends on its arguments alone
// (SplitMix64 by Steele, Lea and Flood, used as a hash of a counter).
func uniform(seed, packet uint64, d draw) float64 {
	return float64(mix(mix(seed)+packet*uint64(draws)+uint64(d))>>11) / (1 << 53)
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// normal returns a number of the standard normal distribution (Box and
// Muller), cut at four standard deviations.
func normal(seed, packet uint64) float64 {
	u, v := 1-uniform(seed, packet, drawJitter), uniform(seed, packet, drawJitter2)
	x := math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
	return max(-4, min(4, x))
}
