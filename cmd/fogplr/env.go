package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/dds"
	"github.com/fogplr/fogplr/internal/shell"
)

const (
	robotConfig   = config.RobotPath
	gatewayConfig = config.GatewayPath
)

type envCmd struct {
	Config fileName `placeholder:"FILE" help:"Configuration of this robot or gateway (/etc/fogplr/robot.toml or gateway.toml)."`
	Dir    fileName `placeholder:"DIR" help:"Where to put the profiles (a folder of this user's)."`
}

// variable is one line of `fogplr env`.
type variable struct{ name, value string }

func (c envCmd) Run(a *app) error {
	file, err := c.configFile()
	if err != nil {
		return err
	}
	node, err := config.LoadNode(file)
	if err != nil {
		return err
	}
	o := dds.Overlay{Interface: node.Interface, MTU: node.MTU}
	for _, p := range node.Addresses {
		o.Addresses = append(o.Addresses, p.Addr())
	}
	dir := string(c.Dir)
	if dir == "" {
		if dir, err = profileDir(); err != nil {
			return err
		}
	}
	f, err := dds.Write(dir, o)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return fmt.Errorf("%w; name a folder that this user can write to with --dir DIR", err)
	}
	if err != nil {
		return err
	}
	variables := []variable{{"CYCLONEDDS_URI", "file://" + f.Cyclone}}
	note := ""
	if f.FastDDS != "" {
		variables = append(variables, variable{"FASTRTPS_DEFAULT_PROFILES_FILE", f.FastDDS}, variable{"FASTDDS_DEFAULT_PROFILES_FILE", f.FastDDS})
	} else {
		note = "Fast DDS cannot use " + node.Interface + " by IPv6: its discovery would leave by an uplink, in clear. " +
			"Give every node an IPv4 overlay address as well, or use Cyclone DDS (RMW_IMPLEMENTATION=rmw_cyclonedds_cpp)."
		fmt.Fprintln(a.stderr, "fogplr:", note)
	}
	if _, err := net.InterfaceByName(node.Interface); err != nil {
		fmt.Fprintf(a.stderr, "fogplr: there is no interface %s yet, and DDS looks for interfaces only at its start: start fogplr before ROS 2\n", node.Interface)
	}
	for _, warning := range dds.Obstacles(os.Getenv) {
		fmt.Fprintln(a.stderr, "fogplr:", warning)
	}
	byName := map[string]string{}
	for _, v := range variables {
		byName[v.name] = v.value
	}
	return a.print(struct {
		Env   map[string]string `json:"env"`
		Files dds.Files         `json:"files"`
	}{byName, f}, func(w io.Writer) { printEnv(w, node, variables, note) })
}

func printEnv(w io.Writer, node *config.Node, variables []variable, note string) {
	for _, v := range variables { // first, and with semicolons, in case eval's quotes are forgotten
		fmt.Fprintf(w, "export %s=%s;\n", v.name, shell.Quote(v.value))
	}
	fmt.Fprintf(w, "# ROS 2 over %s (%v), on every robot and every replica; here: eval \"$(%s)\"\n",
		node.Interface, node.Addresses[0].Addr(), node.Command("env"))
	if note != "" {
		fmt.Fprintln(w, "#", note)
	} else {
		fmt.Fprint(w, "# All nodes of a service need the same vendor, such as\n"+
			"#   export RMW_IMPLEMENTATION=rmw_cyclonedds_cpp    (or rmw_fastrtps_cpp)\n")
	}
	fmt.Fprint(w, "# The daemon of the ros2 command keeps its old settings until: ros2 daemon stop\n")
}

// configFile returns the configuration to read.
func (c envCmd) configFile() (string, error) {
	if c.Config != "" {
		return string(c.Config), nil
	}
	there := defaultConfigs()
	switch len(there) {
	case 0:
		return "", usageError{fmt.Errorf("there is neither %s nor %s: name the configuration with --config FILE, or write one with `fogplr init`", robotConfig, gatewayConfig)}
	case 1:
		return there[0], nil
	}
	return "", errBothConfigs
}

var errBothConfigs = usageError{fmt.Errorf("there are both %s and %s: say with --config which one is meant", robotConfig, gatewayConfig)}

// defaultConfigs returns those of the default configurations that are there.
func defaultConfigs() []string {
	var there []string
	for _, file := range []string{robotConfig, gatewayConfig} {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			there = append(there, file)
		}
	}
	return there
}

// profileDir returns a folder that this user can write to and that stays when
// the user logs out, since a node that starts later must find its profile.
func profileDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil && os.Geteuid() == 0 { // a service without HOME
		return "/run/fogplr-dds", nil
	}
	if err != nil {
		return "", usageError{fmt.Errorf("this user has no folder for the profiles (%w): name one with --dir DIR", err)}
	}
	return filepath.Join(dir, "fogplr"), nil
}
