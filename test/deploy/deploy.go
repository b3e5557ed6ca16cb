// Package deploy runs the real fogplr program on the nodes of a laboratory: it
// writes keys and configurations, starts and stops daemons, and asks them how
// they are.
package deploy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fogplr/fogplr/internal/control"
	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// Robot is a robot to run.
type Robot struct {
	Node      *lab.Node
	Name      string
	Addresses []string // on the overlay, with prefix
	Carriers  []string // interfaces
	Extra     string   // lines for the top of robot.toml
}

// Gateway is a gateway to run.
type Gateway struct {
	Node      *lab.Node
	Name      string
	Addresses []string // on the overlay, with prefix
	Endpoint  string   // address and port that robots send to
}

// Fleet is robots and gateways that know each other.
type Fleet struct {
	bin     string
	members map[string]*Member
	order   []string // gateways first
}

// Member is one node of a fleet.
type Member struct {
	Name   string
	Role   string // "robot" or "gateway"
	Dir    string // its configuration, key, state and socket
	node   *lab.Node
	daemon *lab.Cmd
	fleet  *Fleet
}

// New writes keys and configurations under dir. bin is the fogplr program.
func New(bin, dir string, robots []Robot, gateways []Gateway) (*Fleet, error) {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(bin); err != nil {
		return nil, fmt.Errorf("the fogplr program is missing (make build makes it): %w", err)
	}
	f := &Fleet{bin: bin, members: make(map[string]*Member)}
	gatewayKeys := make([]keys.Private, len(gateways))
	robotKeys := make([]keys.Private, len(robots))
	for i := range gatewayKeys {
		gatewayKeys[i] = keys.Generate()
	}
	for i := range robotKeys {
		robotKeys[i] = keys.Generate()
	}
	for i, g := range gateways {
		endpoint, err := netip.ParseAddrPort(g.Endpoint)
		if err != nil {
			return nil, fmt.Errorf("gateway %s: %w", g.Name, err)
		}
		m := f.add(g.Name, "gateway", dir, g.Node)
		text := m.head(g.Addresses) + fmt.Sprintf("listen_port = %d\n", endpoint.Port())
		for j, r := range robots {
			text += fmt.Sprintf("[[robot]]\nname = %q\naddress = %s\ncarrier_keys = %s\n", r.Name, list(plain(r.Addresses)), list(carrierKeys(robotKeys[j])))
		}
		if err := m.write(text, gatewayKeys[i]); err != nil {
			return nil, err
		}
	}
	for i, r := range robots {
		m := f.add(r.Name, "robot", dir, r.Node)
		text := m.head(r.Addresses) + r.Extra
		for _, c := range r.Carriers {
			text += fmt.Sprintf("[[carrier]]\ninterface = %q\n", c)
		}
		for j, g := range gateways {
			text += fmt.Sprintf("[[gateway]]\nname = %q\naddress = %s\npublic_key = %q\nendpoint = %q\n",
				g.Name, list(plain(g.Addresses)), gatewayKeys[j].PublicKey(), g.Endpoint)
		}
		if err := m.write(text, robotKeys[i]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *Fleet) add(name, role, dir string, node *lab.Node) *Member {
	m := &Member{Name: name, Role: role, Dir: filepath.Join(dir, name), node: node, fleet: f}
	f.members[name] = m
	f.order = append(f.order, name)
	return m
}

// head is the part of a configuration that both roles have.
func (m *Member) head(addresses []string) string {
	return fmt.Sprintf("name = %q\naddress = %s\nprivate_key_file = \"node.key\"\ncontrol_socket = %q\nstate_dir = %q\nlog_level = \"debug\"\n",
		m.Name, list(addresses), m.Socket(), filepath.Join(m.Dir, "state"))
}

func (m *Member) write(text string, key keys.Private) error {
	if err := os.MkdirAll(m.Dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(m.Config(), []byte(text), 0o644); err != nil {
		return err
	}
	return keys.WritePrivate(filepath.Join(m.Dir, "node.key"), key, true)
}

// Config is the member's configuration file.
func (m *Member) Config() string { return filepath.Join(m.Dir, m.Role+".toml") }

// Socket is the member's control socket.
func (m *Member) Socket() string { return filepath.Join(m.Dir, "run", m.Role+".sock") }

// Member returns the member of that name, which must be there.
func (f *Fleet) Member(name string) *Member { return f.members[name] }

// Start starts every member, gateways first.
func (f *Fleet) Start(ctx context.Context) error {
	for _, name := range f.order {
		if err := f.members[name].Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop stops every member that runs, robots first.
func (f *Fleet) Stop() error {
	var errs []error
	for i := len(f.order) - 1; i >= 0; i-- {
		errs = append(errs, f.members[f.order[i]].Stop())
	}
	return errors.Join(errs...)
}

// Start starts the member's daemon and waits until it answers.
func (m *Member) Start(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(m.Socket()), 0o755); err != nil {
		return err
	}
	m.daemon = m.node.Command(ctx, m.fleet.bin, m.Role, "--config", m.Config())
	if err := m.daemon.Start(); err != nil {
		return err
	}
	limit := time.After(10 * time.Second)
	for {
		if _, err := m.Status(ctx); err == nil {
			return nil
		}
		select {
		case <-m.daemon.Done():
			return fmt.Errorf("fogplr on %s ended at once; its log is %s", m.Name, m.daemon.Log())
		case <-limit:
			return fmt.Errorf("fogplr on %s does not answer; its log is %s", m.Name, m.daemon.Log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop ends the daemon as systemd would.
func (m *Member) Stop() error {
	if m.daemon == nil {
		return nil
	}
	d := m.daemon
	m.daemon = nil
	if err := d.Stop(10 * time.Second); err != nil {
		return fmt.Errorf("stop fogplr on %s (log %s): %w", m.Name, d.Log(), err)
	}
	return nil
}

// Kill ends the daemon with SIGKILL.
func (m *Member) Kill() error {
	d := m.daemon
	m.daemon = nil
	return d.Kill()
}

// Pid is the daemon's process id.
func (m *Member) Pid() int { return m.daemon.Pid() }

// Log is the daemon's log file.
func (m *Member) Log() string { return m.daemon.Log() }

// Status asks the daemon how it is.
func (m *Member) Status(ctx context.Context) (*tunnel.Status, error) {
	return control.Status(ctx, m.Socket())
}

// CLI runs fogplr with the arguments on the member's node and returns what it
// printed.
func (m *Member) CLI(ctx context.Context, args ...string) (string, error) {
	return m.node.Command(ctx, m.fleet.bin, args...).Output()
}

// Program prepares a DDS program on the member's node, by a shell that takes its
// settings from `fogplr env`, as a user's shell does.
func (m *Member) Program(ctx context.Context, path string, args ...string) (*lab.Cmd, error) {
	profiles := filepath.Join(m.Dir, "dds")
	if err := os.MkdirAll(profiles, 0o755); err != nil {
		return nil, err
	}
	const script = `vars=$("$0" env --config "$1" --dir "$2"); eval "$vars"; shift 2; exec "$@"`
	return m.node.Command(ctx, "sh", append([]string{"-euc", script, m.fleet.bin, m.Config(), profiles, path}, args...)...), nil
}

// WaitUp waits until all paths of a robot are up.
func (m *Member) WaitUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		s, err := m.Status(ctx)
		if err == nil && AllUp(s) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not all paths of %s came up: %s", m.Name, describe(s, err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// AllUp reports whether every path of every peer is up.
func AllUp(s *tunnel.Status) bool {
	for _, p := range s.Peers {
		for _, l := range p.Paths {
			if !l.Up {
				return false
			}
		}
	}
	return true
}

func describe(s *tunnel.Status, err error) string {
	if s == nil {
		return fmt.Sprint(err)
	}
	var b strings.Builder
	for _, p := range s.Peers {
		for _, l := range p.Paths {
			fmt.Fprintf(&b, "%s by %s: up=%v %s; ", p.Name, l.Carrier, l.Up, l.Stage)
		}
	}
	return b.String()
}

// list writes a TOML array of strings.
func list(items []string) string {
	quoted := make([]string, len(items))
	for i, s := range items {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// plain cuts the prefix lengths off.
func plain(prefixes []string) []string {
	out := make([]string, len(prefixes))
	for i, p := range prefixes {
		out[i], _, _ = strings.Cut(p, "/")
	}
	return out
}

func carrierKeys(node keys.Private) []string {
	out := make([]string, keys.Slots)
	for slot := range out {
		out[slot] = keys.CarrierKey(node, uint8(slot)).PublicKey().String()
	}
	return out
}
