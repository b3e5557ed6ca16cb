package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of figures.
const (
	figureWidth = 8 * vg.Inch
	margin      = vg.Length(10)
	leading     = vg.Length(5) // between lines of the legend
)

// palette is that of Okabe and Ito, which colour-blind people can tell apart,
// without its yellow, which white paper swallows.
var palette = []color.NRGBA{
	{R: 0x00, G: 0x72, B: 0xB2, A: 0xFF}, // blue
	{R: 0xD5, G: 0x5E, B: 0x00, A: 0xFF}, // vermilion
	{R: 0x00, G: 0x9E, B: 0x73, A: 0xFF}, // bluish green
	{R: 0x00, G: 0x00, B: 0x00, A: 0xFF}, // black
	{R: 0xCC, G: 0x79, B: 0xA7, A: 0xFF}, // reddish purple
	{R: 0xE6, G: 0x9F, B: 0x00, A: 0xFF}, // orange
	{R: 0x56, G: 0xB4, B: 0xE9, A: 0xFF}, // sky blue
}

// dashes are the patterns of lines. Their number and that of the colours have no
// divisor in common, so that the pairs do not repeat soon.
var dashes = [][]vg.Length{nil, {7, 2.5}, {14, 2.5}, {2, 4}, {9, 2.5, 2, 2.5}}

var (
	faint = color.NRGBA{R: 0xDD, G: 0xDD, B: 0xDD, A: 0xFF}
	grey  = color.NRGBA{R: 0x77, G: 0x77, B: 0x77, A: 0xFF}
	paper = color.NRGBA{R: 0xFF, G: 0xFF, B: 0xFF, A: 0xCC} // behind text
	guide = draw.LineStyle{Color: grey, Width: 0.8, Dashes: []vg.Length{3, 3}}
)

// lineStyle is that of the i-th line of a figure. Lines that are drawn later are
// thinner and broken, so that one they cover is still seen.
func lineStyle(i int) draw.LineStyle {
	return draw.LineStyle{
		Color:  palette[i%len(palette)],
		Width:  max(2.6-0.3*vg.Length(i), 1.4),
		Dashes: dashes[i%len(dashes)],
	}
}

// figure is a title, panels one above the other, and a legend below them.
type figure struct {
	title   string
	panels  []*plot.Plot
	sides   []string  // what the panels' vertical axes show
	height  vg.Length // of each panel
	legend  plot.Legend
	entries int
}

func newFigure(title string, height vg.Length) *figure {
	f := &figure{title: clean(title), height: height, legend: plot.NewLegend()}
	f.legend.Top, f.legend.Left = true, true
	f.legend.ThumbnailWidth = 34
	f.legend.Padding = leading
	f.legend.TextStyle = textStyle(10)
	return f
}

// textStyle is left-aligned text of this size, in points.
func textStyle(size vg.Length) text.Style {
	return text.Style{
		Color:   color.Black,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size),
		YAlign:  draw.YBottom,
		Handler: plot.DefaultTextHandler,
	}
}

// panel adds an empty panel.
func (f *figure) panel(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = clean(title), clean(x)
	p.Title.TextStyle.Font, p.X.Label.TextStyle.Font = textStyle(10).Font, textStyle(10).Font
	p.X.Tick.Label.Font, p.Y.Tick.Label.Font = textStyle(9).Font, textStyle(9).Font
	p.Title.Padding = 3
	p.X.Padding, p.Y.Padding = 0, 0
	p.X.Tick.Length, p.Y.Tick.Length = 5, 5
	grid := plotter.NewGrid()
	grid.Vertical = draw.LineStyle{Color: faint, Width: 0.5}
	grid.Horizontal = grid.Vertical
	p.Add(grid)
	f.panels, f.sides = append(f.panels, p), append(f.sides, clean(y))
	return p
}

// explain adds a line to the legend.
func (f *figure) explain(what string, thumbs ...plot.Thumbnailer) {
	f.legend.Add(clean(what), thumbs...)
	f.entries++
}

// line is a thumbnail.
func line(s draw.LineStyle) plot.Thumbnailer { return &plotter.Line{LineStyle: s} }

// svg draws the figure.
func (f *figure) svg() ([]byte, error) {
	title := textStyle(13)
	var legend vg.Rectangle
	if f.entries > 0 {
		legend = f.legend.Rectangle(draw.Canvas{})
	}
	width := max(figureWidth, legend.Size().X+4*margin)
	for _, p := range f.panels {
		width = max(width, p.Title.TextStyle.Width(p.Title.Text)+14*margin) // numbers and names stand beside it
	}
	title.XAlign, title.YAlign = draw.XCenter, draw.YTop
	heading := wrap(title, f.title, width-2*margin)
	top := title.Rectangle(heading).Size().Y + 2*margin
	bottom := legend.Size().Y + 2*margin
	height := top + vg.Length(len(f.panels))*f.height + bottom

	canvas := vgsvg.NewWith(vgsvg.UseWH(width, height))
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	all.FillText(title, vg.Point{X: width / 2, Y: height - margin}, heading)
	if f.entries > 0 {
		f.legend.Draw(draw.Crop(all, 3*margin, -margin, margin, -(height - bottom)))
	}
	f.drawPanels(draw.Crop(all, margin, -2*margin, bottom, -top))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("draw %q: %w", f.title, err)
	}
	// Fonts of the same widths, for those who lack this one.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arimo,Helvetica,Arial,sans-serif;")), nil
}

// drawPanels draws what stands at their sides, too: the library believes that
// the middle of a logarithmic axis is near its top and keeps room above it.
func (f *figure) drawPanels(c draw.Canvas) {
	style := textStyle(10)
	style.Rotation, style.XAlign, style.YAlign = math.Pi/2, draw.XCenter, draw.YTop
	inner := draw.Crop(c, style.Height("A")+margin/2, 0, 0, 0)
	rows := make([][]*plot.Plot, len(f.panels))
	for i, p := range f.panels {
		rows[i] = []*plot.Plot{p}
	}
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadY: margin}
	for i, tile := range plot.Align(rows, tiles, inner) {
		f.panels[i].Draw(tile[0])
		data := f.panels[i].DataCanvas(tile[0])
		c.FillText(style, vg.Point{X: c.Min.X, Y: data.Center().Y}, f.sides[i])
	}
}

// wrap breaks s between words into lines of at most this width.
func wrap(style text.Style, s string, width vg.Length) string {
	var lines []string
	for _, word := range strings.Fields(s) {
		if n := len(lines); n > 0 && style.Rectangle(lines[n-1]+" "+word).Size().X <= width {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return strings.Join(lines, "\n")
}

// clean removes what XML cannot hold, and line breaks.
func clean(s string) string {
	return oneLine(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == 0xFFFE || r == 0xFFFF {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
}

// inSight leaves out ticks that are not on the axis. The library would keep room
// for their labels.
func inSight(ticks []plot.Tick, low, high float64) []plot.Tick {
	return slices.DeleteFunc(ticks, func(t plot.Tick) bool { return t.Value < low || t.Value > high })
}

// logTicks labels 1, 2, 5, 10 and so on, or powers of ten only where there is no
// room.
type logTicks struct{}

func (logTicks) Ticks(low, high float64) []plot.Tick {
	digits := []float64{1, 2, 5}
	if math.Log10(high/low) > 6 {
		digits = digits[:1]
	}
	return logTicksAt(digits, low, high)
}

// logTicksAt labels these digits times powers of ten.
func logTicksAt(digits []float64, low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for _, d := range digits {
			v := d * math.Pow(10, e)
			ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', max(0, -int(e)), 64)})
		}
	}
	return inSight(ticks, low, high)
}

// linearTicks labels ten numbers or so.
type linearTicks struct{}

func (linearTicks) Ticks(low, high float64) []plot.Tick {
	step := roundUp((high - low) / 12)
	var ticks []plot.Tick
	for k := math.Ceil(low / step); k*step <= high; k++ {
		ticks = append(ticks, plot.Tick{Value: k * step, Label: strconv.FormatFloat(k*step, 'f', max(0, -int(math.Floor(math.Log10(step)))), 64)})
	}
	return ticks
}

// shareTicks labels powers of ten as per cent.
type shareTicks struct {
	notes map[int]string // by exponent
}

func (t shareTicks) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for e := int(math.Floor(math.Log10(low))); e <= 0; e++ {
		v := math.Pow(10, float64(e))
		ticks = append(ticks, plot.Tick{Value: v, Label: t.notes[e] + percent(v)})
		for m := 2.0; m < 10; m++ {
			ticks = append(ticks, plot.Tick{Value: m * v})
		}
	}
	return inSight(ticks, low, high)
}

// roundDown and roundUp go to the next of 1, 2, 5, 10 and so on.
func roundDown(x float64) float64 {
	e := math.Pow(10, math.Floor(math.Log10(x)))
	for _, d := range []float64{5, 2} {
		if x >= d*e {
			return d * e
		}
	}
	return e
}

func roundUp(x float64) float64 {
	if d := roundDown(x); d == x {
		return d
	}
	e := math.Pow(10, math.Floor(math.Log10(x)))
	for _, d := range []float64{1, 2, 5} {
		if x <= d*e {
			return d * e
		}
	}
	return 10 * e
}
