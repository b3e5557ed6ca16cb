package scenario

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fogplr/fogplr/test/lab"
)

const traceExpected = `FILE:COLUMN, such as "drive.csv:2", or a built-in one, "builtin:driving:1" to "builtin:driving:4", "builtin:indoor:1" (Wi-Fi) or "builtin:indoor:2" (5G)`

// source reads traces.
type source struct {
	rows     func(lab.RTT) (int, error) // how many there are
	capacity func(file string) error
}

var onDisk = source{
	rows: func(r lab.RTT) (int, error) {
		if !isBuiltin(r.File) {
			if err := regular(r.File); err != nil {
				return 0, err
			}
		}
		t, err := r.Load()
		if err != nil {
			return 0, err
		}
		return t.Rows(), nil
	},
	capacity: func(file string) error {
		if err := regular(file); err != nil {
			return err
		}
		return lab.CheckCapacity(file)
	},
}

// regular refuses devices and pipes, which have no end or can be read only once.
func regular(file string) error {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not an ordinary file", file)
	}
	return err
}

// traces reads every trace once.
type traces struct {
	from     source
	rtt      map[lab.RTT]readRTT
	capacity map[string]error
}

type readRTT struct {
	rows int
	err  error
}

func newTraces(from source) *traces {
	return &traces{from: from, rtt: map[lab.RTT]readRTT{}, capacity: map[string]error{}}
}

// rows returns how many rows a trace has, or what is wrong with it.
func (c *traces) rows(r lab.RTT) (int, error) {
	r.First, r.Row, r.Steps = 0, 0, false
	if got, known := c.rtt[r]; known {
		return got.rows, got.err
	}
	n, err := c.from.rows(r)
	c.rtt[r] = readRTT{n, err}
	return n, err
}

func (c *traces) checkCapacity(file string) error {
	err, known := c.capacity[file]
	if !known {
		err = c.from.capacity(file)
		c.capacity[file] = err
	}
	return err
}

func isBuiltin(file string) bool { return file == lab.Driving || file == lab.Indoor }

// splitTrace reads FILE:COLUMN. locate turns FILE into a path from the working
// directory.
func splitTrace(spec string, locate func(string) string) (lab.RTT, error) {
	i := strings.LastIndexByte(spec, ':')
	if i <= 0 || i == len(spec)-1 {
		return lab.RTT{}, errors.New("it has not two parts with a colon between them")
	}
	r := lab.RTT{File: spec[:i], Column: spec[i+1:]}
	switch prefix, _, _ := strings.Cut(spec, ":"); {
	case isBuiltin(r.File):
	case prefix == "builtin":
		return r, errors.New("there is no such built-in trace")
	default:
		r.File = locate(r.File)
	}
	return r, nil
}

// TraceOverride gives the first carrier, the second and so on another trace each,
// in both directions. spec is FILE:COLUMN[,FILE:COLUMN...], where files are
// relative to the working directory and builtin:driving and builtin:indoor are
// built in; rows last for one second, and the first one is the first. An error
// changes nothing.
func (s *Scenario) TraceOverride(spec string) error {
	specs := strings.Split(spec, ",")
	if len(specs) > len(s.Carriers) {
		return fmt.Errorf("there are %d traces, %q, but the scenario has only %d carriers", len(specs), spec, len(s.Carriers))
	}
	found := make([]lab.RTT, len(specs))
	read := newTraces(onDisk)
	for i, one := range specs {
		r, err := splitTrace(one, func(file string) string { return file })
		r.Row, r.Seed = defaultRow, s.Seed
		if err == nil {
			_, err = read.rows(r)
		}
		if err != nil {
			return fmt.Errorf("trace %d, %q, cannot be replayed: %w; expected is %s", i+1, one, err, traceExpected)
		}
		found[i] = r
	}
	for i := range found {
		up, down := found[i], found[i]
		s.Carriers[i].Up.RTT, s.Carriers[i].Down.RTT = &up, &down
	}
	return nil
}
