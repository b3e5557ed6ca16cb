package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/fogplr/fogplr/internal/check"
)

type checkCmd struct {
	Config fileName `placeholder:"FILE" help:"Configuration of this robot or gateway (/etc/fogplr/robot.toml or gateway.toml)."`
	Probe  bool     `help:"Also ask every gateway through every carrier whether it answers (STUN); takes up to 3 s."`
}

// Run ends with exitFailed when something will not work. A configuration that is
// wrong or missing is a finding like others.
func (c checkCmd) Run(a *app) error {
	file := string(c.Config)
	if there := defaultConfigs(); file == "" && len(there) == 1 {
		file = there[0]
	} else if file == "" && len(there) > 1 {
		return errBothConfigs
	}
	r := check.Judge(check.Local(version, built()).Gather(context.Background(), file, c.Probe))
	if err := a.print(r, func(w io.Writer) { checkText(w, &r) }); err != nil {
		return err
	}
	if r.Level == check.Fails {
		return failure{}
	}
	return nil
}

// built is when this program was made, or else put here; the zero time when
// neither can be told.
func built() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if t, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
				return t
			}
		}
	}
	if file, err := os.Executable(); err == nil {
		if info, err := os.Stat(file); err == nil {
			return info.ModTime()
		}
	}
	return time.Time{}
}

// checkText prints r for people: what belongs together stands together.
func checkText(w io.Writer, r *check.Report) {
	head := "no configuration"
	if r.Config != "" {
		head = r.Config
	}
	if r.Name != "" {
		head = fmt.Sprintf("%s %s (%s)", r.Role, r.Name, head)
	}
	switch {
	case r.Running:
		head += ", running"
	case r.Stopped:
		head += ", not running"
	}
	verdict := "all is well"
	if len(r.Findings) > 0 {
		verdict = tally(r.Findings)
	}
	paragraph(w, printable(head)+": "+verdict+".")
	if len(r.Carriers) > 0 {
		paragraph(w, "carriers: "+printable(strings.Join(r.Carriers, ", "))+".")
		leftOutText(w, r.LeftOut)
	}
	findingsText(w, r.Findings)
	if r.Answers != nil {
		fmt.Fprintln(w)
		answersText(w, r)
	}
}

// maxLeftOut bounds the interfaces that are named as no carriers.
const maxLeftOut = 8

func leftOutText(w io.Writer, others []check.Other) {
	var words []string
	for _, o := range others[:min(len(others), maxLeftOut)] {
		words = append(words, fmt.Sprintf("%s (%s)", o.Interface, o.Reason))
	}
	if n := len(others) - maxLeftOut; n > 0 {
		words = append(words, fmt.Sprintf("%d more", n))
	}
	if len(words) > 0 {
		paragraph(w, "no carriers: "+printable(strings.Join(words, ", "))+".")
	}
}

func findingsText(w io.Writer, findings []check.Finding) {
	var areas []string
	for _, f := range findings {
		if a := area(f); !slices.Contains(areas, a) {
			areas = append(areas, a)
		}
	}
	for _, a := range areas {
		fmt.Fprintln(w)
		for _, f := range findings {
			if area(f) != a {
				continue
			}
			paragraph(w, fmt.Sprintf("%s: %s: %s", f.Level, f.ID, printable(f.Text)))
			if f.Repair != "" {
				fmt.Fprintln(w, "  repair:", printable(f.Repair)) // never broken, to be copied
			}
		}
	}
}

// answersText prints one line for each question of --probe.
func answersText(w io.Writer, r *check.Report) {
	switch {
	case len(r.Answers) > 0:
	case r.Role == "gateway":
		paragraph(w, "probe: nobody was asked, since a gateway waits for its robots: use --probe on a robot.")
	default:
		paragraph(w, "probe: nobody was asked, since no carrier that can be used has a route to a gateway whose address is known.")
	}
	for _, a := range r.Answers {
		what := "no answer"
		if a.Heard {
			what = "answers after " + milliseconds(a.RTTms)
		}
		fmt.Fprintln(w, printable(fmt.Sprintf("probe: %s (%v) through %s: %s", a.Gateway, a.Endpoint, a.Carrier, what)))
	}
}

func area(f check.Finding) string {
	a, _, _ := strings.Cut(f.ID, ".")
	return a
}

// tally counts the findings of each level, the worst first.
func tally(findings []check.Finding) string {
	var words []string
	for level := check.Fails; level > check.OK; level-- {
		n := 0
		for _, f := range findings {
			if f.Level == level {
				n++
			}
		}
		switch {
		case n == 1:
			words = append(words, fmt.Sprint("1 ", level))
		case n > 0 && level == check.Fails:
			words = append(words, fmt.Sprint(n, " fail"))
		case n > 0:
			words = append(words, fmt.Sprint(n, " ", level, "s"))
		}
	}
	return strings.Join(words, ", ")
}
