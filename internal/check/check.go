// Package check says what on this machine keeps a robot or a gateway from
// working, before its daemon starts and while it runs. Facts are gathered by a
// thin shell (Host); Judge, which is pure, says what they mean.
package check

import (
	"fmt"
	"slices"
)

// Level is how bad a finding is.
type Level int

// Levels, the worst last.
const (
	OK      Level = iota // of a report: nothing was found
	Note                 // good to know; nothing to repair, or fogplr repairs it itself
	Warning              // works, but not all of it, or not always
	Fails                // will not work
)

var levels = []string{"ok", "note", "warning", "fails"}

// String returns the level as users see it.
func (l Level) String() string { return levels[l] }

// MarshalText is String.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (l *Level) UnmarshalText(b []byte) error {
	i := slices.Index(levels, string(b))
	if i < 0 {
		return fmt.Errorf("%q is no level", b)
	}
	*l = Level(i)
	return nil
}

// Finding is one thing that is not as it should be.
type Finding struct {
	// ID says what was looked at: an area, a dot and a word, such as
	// "carrier.rp_filter". One ID may be found several times.
	ID    string `json:"id"`
	Level Level  `json:"level"`
	// Text is one plain sentence or several: what is the case, what it means,
	// and what to do unless Repair says it.
	Text string `json:"text"`
	// Repair is a command for a shell (root's, for most), or empty when no command
	// repairs it.
	Repair string `json:"repair,omitempty"`
}

// Report is all that was found.
type Report struct {
	Role    string `json:"role,omitempty"` // "robot" or "gateway", empty when not known
	Name    string `json:"name,omitempty"`
	Config  string `json:"config,omitempty"`
	Running bool   `json:"running"` // the daemon answered
	// Stopped says that the daemon does not run. Both are false when that cannot
	// be told.
	Stopped bool `json:"stopped"`
	// Carriers are a robot's: those that the daemon has, else would have now.
	Carriers []string `json:"carriers,omitempty"`
	// LeftOut are the interfaces that are no carriers although the configuration lets
	// them be.
	LeftOut []Other `json:"left_out,omitempty"`
	// Level is the worst of the findings'.
	Level    Level     `json:"level"`
	Findings []Finding `json:"findings"`
	// Answers are those of the gateways, nil when they were not to be asked.
	Answers []Answer `json:"answers,omitzero"`
}

// areas are the judges in the order of the report. Each looks at facts of its own
// and depends on no other.
var areas = []func(*Facts) []Finding{
	judgeConfig, judgeKernel, judgeCarriers, judgeVPNs, judgeOverlay, judgeGateway, judgeFirewall, judgeNames, judgeAnswers,
	judgeClock, judgeDDS, judgeDaemon,
}

// Judge says what the facts mean. It is pure.
func Judge(f *Facts) Report {
	r := Report{Role: f.Config.Role, Config: f.Config.File, Running: f.Daemon.Status != nil, Stopped: f.stopped(), Findings: []Finding{}, Answers: f.Answers}
	if f.Config.Node != nil {
		r.Name = f.Config.Node.Name
	}
	if f.robot() {
		r.Carriers, r.LeftOut = f.Config.Carriers, f.Config.candidates()
	}
	said := map[string]bool{}
	for _, judge := range areas {
		for _, finding := range judge(f) {
			if said[finding.Text] { // the daemon warns of much that is found here, too
				continue
			}
			said[finding.Text] = true
			r.Findings = append(r.Findings, finding)
			r.Level = max(r.Level, finding.Level)
		}
	}
	return r
}
