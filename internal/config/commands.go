package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fogplr/fogplr/internal/shell"
)

// Where commands without --config, and the units, look for configurations.
const (
	RobotPath   = "/etc/fogplr/robot.toml"
	GatewayPath = "/etc/fogplr/gateway.toml"
)

// Unit returns the name of the systemd unit that runs the node of a configuration,
// or nothing where none of fogplr's own does.
func Unit(file string) string {
	switch absolute(file) {
	case RobotPath:
		return "fogplr-robot"
	case GatewayPath:
		return "fogplr-gateway"
	}
	return ""
}

// Flag returns " --config FILE" for a command that is to mean that configuration,
// or nothing where it is meant anyhow. both says that there are Both.
func Flag(file string, both bool) string {
	if Unit(file) != "" && !both {
		return ""
	}
	return " --config " + shell.Quote(absolute(file))
}

// Both says that there are a robot's and a gateway's configuration at the default
// places, so that commands must be told which one is meant.
func Both() bool {
	for _, file := range []string{RobotPath, GatewayPath} {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// StartCommand is the command that starts the node of a configuration.
func StartCommand(role, file string) string {
	if unit := Unit(file); unit != "" {
		return "systemctl start " + unit
	}
	return fmt.Sprintf("fogplr %s --config %s", role, shell.Quote(absolute(file)))
}

// RestartAdvice says with a verb how to restart the daemon of a configuration, for
// the end or the middle of a sentence.
func RestartAdvice(role, file string) string {
	if unit := Unit(file); unit != "" {
		return "run `systemctl restart " + unit + "`"
	}
	return "end the daemon and start it again with `" + StartCommand(role, file) + "`"
}

// Taken says that the daemon of another node, owner ("robot NAME" or "gateway NAME"),
// has the interface of a node, and what to do.
func Taken(role, file, iface, owner string) string {
	return fmt.Sprintf("%s belongs to another node of this machine, %s, whose daemon runs, so this %s cannot start. Stop that one, or give interface in %s another name",
		iface, owner, role, file)
}

// absolute returns a path that means the same in another folder.
func absolute(file string) string {
	if a, err := filepath.Abs(file); err == nil {
		return a
	}
	return file
}

// Command returns a command line of fogplr for this node, such as "fogplr reload".
// It looks at no file, for those who are pure: whether there were Both was found out
// when the configuration was loaded, and is so again at a reload.
func (n *Node) Command(words string) string { return "fogplr " + words + n.flag }
