package check

import (
	"slices"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/shell"
)

// judgeConfig looks at the configuration and the private key.
func judgeConfig(f *Facts) []Finding {
	c := &f.Config
	if c.File == "" {
		return []Finding{{ID: "config.missing", Level: Fails, Repair: "fogplr init robot",
			Text: "There is neither /etc/fogplr/robot.toml nor /etc/fogplr/gateway.toml, so no node can start here, and this check looks at the machine alone. Write one with `fogplr init robot` or `fogplr init gateway`, or name another with --config."}}
	}
	var out []Finding
	for _, p := range c.Problems {
		out = append(out, Finding{ID: "config.file", Level: Fails, Text: "The daemon refuses its configuration: " + p + "."})
	}
	for _, p := range c.KeyProblems {
		out = append(out, Finding{ID: "config.key", Level: Fails, Text: "The daemon refuses its key: " + p + "."})
	}
	if c.KeyWarning != "" {
		out = append(out, Finding{ID: "config.key_mode", Level: Warning, Text: c.KeyWarning, Repair: "chmod 600 " + shell.Quote(c.Node.PrivateKeyFile)})
	}
	for _, p := range c.Places {
		level := Warning
		if p.Fails {
			level = Fails
		}
		out = append(out, Finding{ID: "config." + p.Key, Level: level, Text: p.Problem})
	}
	if c.Warning != "" {
		out = append(out, Finding{ID: "config.peers", Level: Warning, Text: c.Warning})
	}
	return out
}

// command is a command line of fogplr that means this configuration.
func (f *Facts) command(words string) string {
	return "fogplr " + words + config.Flag(f.Config.File, f.Config.Both)
}

// start is the command that starts the node, or empty while it cannot.
func (f *Facts) start() string {
	cannot := slices.ContainsFunc(f.Config.Places, func(p Place) bool { return p.Fails })
	if cannot || len(f.Config.Problems)+len(f.Config.KeyProblems) > 0 || f.tenant() != "" {
		return ""
	}
	return config.StartCommand(f.Config.Role, f.Config.File)
}

// restarts adds to a finding how to restart the daemon, as a repair where one
// command does it.
func (f *Facts) restarts(found Finding) Finding {
	if unit := config.Unit(f.Config.File); unit != "" {
		found.Repair = "systemctl restart " + unit
		return found
	}
	found.Text += " For a restart, " + config.RestartAdvice(f.Config.Role, f.Config.File) + "."
	return found
}
