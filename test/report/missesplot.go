package report

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	beside  = 0.09           // how far curves stand apart at one number
	capHalf = vg.Length(4)   // half the width of an interval's ends
	markers = vg.Length(3.5) // radius
)

// glyphs mark the observed shares, by curve.
var glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}}

// missesPlot has the observed shares with their intervals, and lines through the
// predicted ones. It is nil if no call was made at all.
func missesPlot(m Misses) *figure {
	m = m.withCalls()
	if len(m.Curves) == 0 {
		return nil
	}
	f := newFigure(m.Title, 4.2*vg.Inch)
	p := f.panel("", "number of "+m.Number, "share of calls that missed (logarithmic)")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, shareTicks{}
	p.Y.Min, p.Y.Max = m.shares()
	m.numbers(&p.X)
	below := false
	var all []plot.Plotter // above every line
	for i, c := range m.Curves {
		style := draw.LineStyle{Color: lineStyle(i).Color, Width: 1.5}
		marks := observed{
			points: c.Points,
			shift:  beside * (float64(i) - float64(len(m.Curves)-1)/2),
			style:  style,
			glyph:  draw.GlyphStyle{Color: style.Color, Radius: markers, Shape: glyphs[i%len(glyphs)]},
		}
		switch len(m.Curves) {
		case 1:
			marks.values = right
		case 2:
			marks.values = []side{left, right}[i]
		}
		f.explain(fmt.Sprintf("%s, observed with %s interval: %s", c.Name, percent(Confidence), c.calls()), marks)
		if predicted := c.predicted(); len(predicted) > 0 {
			style.Dashes = []vg.Length{6, 3}
			p.Add(&plotter.Line{XYs: predicted, LineStyle: style})
			f.explain(c.Name+", predicted", line(style))
		}
		all = append(all, marks)
		for _, x := range c.Points {
			lo, _ := x.Interval()
			below = below || lo < p.Y.Min
		}
	}
	p.Add(all...)
	if below {
		f.explain("the interval ends further down, at 0 if no call missed", arrow{})
	}
	return f
}

// withCalls leaves out points without calls, which a plot cannot show, and curves
// without points.
func (m Misses) withCalls() Misses {
	var curves []Curve
	for _, c := range m.Curves {
		var points []Point
		for _, p := range c.Points {
			if p.Calls > 0 {
				points = append(points, p)
			}
		}
		if len(points) > 0 {
			curves = append(curves, Curve{c.Name, points})
		}
	}
	m.Curves = curves
	return m
}

// shares is the range of the vertical axis.
func (m Misses) shares() (low, high float64) {
	low = 1
	for _, c := range m.Curves {
		for _, p := range c.Points {
			_, hi := p.Interval()
			low, high = min(low, hi), max(high, hi)
			if p.Missed > 0 {
				low = min(low, p.Share())
			}
			if p.Predicted != nil && *p.Predicted > 0 {
				low, high = min(low, *p.Predicted), max(high, *p.Predicted)
			}
		}
	}
	return math.Pow(10, math.Floor(math.Log10(low/2))), min(1, roundUp(high*1.1))
}

// numbers sets up the horizontal axis.
func (m Misses) numbers(axis *plot.Axis) {
	var ticks plot.ConstantTicks
	first, last := math.MaxInt, math.MinInt
	seen := map[int]bool{}
	for _, c := range m.Curves {
		for _, p := range c.Points {
			first, last = min(first, p.Number), max(last, p.Number)
			if !seen[p.Number] {
				seen[p.Number] = true
				ticks = append(ticks, plot.Tick{Value: float64(p.Number), Label: count(p.Number)})
			}
		}
	}
	axis.Tick.Marker = ticks
	axis.Min, axis.Max = float64(first)-0.5, float64(last)+0.5
}

// calls tells how many calls each point stands for.
func (c Curve) calls() string {
	fewest, most := c.Points[0].Calls, 0
	for _, p := range c.Points {
		fewest, most = min(fewest, p.Calls), max(most, p.Calls)
	}
	if fewest == most {
		return fmt.Sprintf("n = %s calls each", count(most))
	}
	return fmt.Sprintf("n = %s to %s calls", count(fewest), count(most))
}

// predicted are the points that a logarithmic axis can show.
func (c Curve) predicted() (points plotter.XYs) {
	for _, p := range c.Points {
		if p.Predicted != nil && *p.Predicted > 0 {
			points = append(points, plotter.XY{X: float64(p.Number), Y: *p.Predicted})
		}
	}
	return points
}

// side of a marker on which its value stands.
type side int

const (
	nowhere side = iota
	left
	right
)

// observed draws shares with their intervals.
type observed struct {
	points []Point
	shift  float64
	style  draw.LineStyle
	glyph  draw.GlyphStyle
	values side
}

func (o observed) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	for _, point := range o.points {
		x := toX(float64(point.Number) + o.shift)
		lo, hi := point.Interval()
		value := toY(hi)
		if lo < p.Y.Min {
			arrow{o.style}.draw(&c, x, toY(hi), c.Min.Y)
		} else {
			bar(&c, o.style, x, toY(lo), toY(hi))
		}
		if point.Missed > 0 {
			value = toY(point.Share())
			c.DrawGlyph(o.glyph, vg.Point{X: x, Y: value})
		}
		o.values.write(&c, vg.Point{X: x, Y: value}, percent(point.Share()))
	}
}

// write writes at p's side. Predictions fall from the left to the right, so there
// is room below them on the left and above them on the right.
func (s side) write(c *draw.Canvas, p vg.Point, text string) {
	style := textStyle(8)
	switch s {
	case nowhere:
		return
	case left:
		style.XAlign, style.YAlign = draw.XRight, draw.YTop
		p.X -= 1.5 * capHalf
	case right:
		p.X += 1.5 * capHalf
	}
	c.SetColor(paper)
	c.Fill(style.Rectangle(text).Add(p).Path())
	c.FillText(style, p, text)
}

// Thumbnail draws one of them.
func (o observed) Thumbnail(c *draw.Canvas) {
	bar(c, o.style, c.Center().X, c.Min.Y, c.Max.Y)
	c.DrawGlyph(o.glyph, c.Center())
}

// bar is a vertical line with ends.
func bar(c *draw.Canvas, style draw.LineStyle, x, from, to vg.Length) {
	c.StrokeLine2(style, x, from, x, to)
	c.StrokeLine2(style, x-capHalf, from, x+capHalf, from)
	c.StrokeLine2(style, x-capHalf, to, x+capHalf, to)
}

// arrow is an interval that ends further down than the axis.
type arrow struct{ style draw.LineStyle }

func (a arrow) draw(c *draw.Canvas, x, from, to vg.Length) {
	c.StrokeLine2(a.style, x-capHalf, from, x+capHalf, from)
	c.StrokeLine2(a.style, x, from, x, to)
	c.StrokeLines(a.style, []vg.Point{{X: x - capHalf, Y: to + 1.5*capHalf}, {X: x, Y: to}, {X: x + capHalf, Y: to + 1.5*capHalf}})
}

// Thumbnail draws one in grey, as it stands for all curves.
func (arrow) Thumbnail(c *draw.Canvas) {
	arrow{draw.LineStyle{Color: grey, Width: 1.5}}.draw(c, c.Center().X, c.Max.Y, c.Min.Y)
}
