package scenario

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/internal/tables"
)

// The robot.toml in which robot_config is tried: what comes before it and behind
// it in the real one.
const (
	robotHead = `name = "robot"
address = "10.77.0.2/16"
private_key_file = "node.key"
control_socket = "robot.sock"
state_dir = "state"
log_level = "debug"
`
	robotTail = `[[carrier]]
interface = "lab-try"
[[gateway]]
name = "lab-try"
address = "10.77.0.11"
public_key = %q
endpoint = "198.51.100.10:51820"
`
)

// robotConfig reads the lines for robot.toml and tries them. tun is the name of
// the overlay's interface.
func robotConfig(t *tables.Table) (lines, tun string) {
	const expected = "lines for the top of a robot.toml, besides name, address, private_key_file, control_socket, state_dir and log_level"
	text, ok := t.Text("robot_config", expected)
	if !ok || strings.TrimSpace(text) == "" {
		return "", config.DefaultInterface
	}
	lines = strings.TrimSuffix(text, "\n") + "\n"
	robot, err := config.ParseRobot("", robotHead+lines+fmt.Sprintf(robotTail, keys.Generate().PublicKey()))
	if err == nil {
		return lines, robot.Interface
	}
	var problems *tables.Error
	if !errors.As(err, &problems) {
		t.Fail("robot_config", fmt.Sprintf("lines that fogplr does not take (%v)", err), expected)
		return "", config.DefaultInterface
	}
	for _, p := range problems.Problems {
		line := min(max(p.Line-strings.Count(robotHead, "\n"), 1), strings.Count(lines, "\n"))
		t.Fail("robot_config", fmt.Sprintf("in its line %d what fogplr does not take (%s: %s; wanted: %s)", line, p.Key, p.Found, p.Expected), expected)
	}
	return "", config.DefaultInterface
}
