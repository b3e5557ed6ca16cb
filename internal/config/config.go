package config

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/internal/tables"
	"github.com/fogplr/fogplr/replicate"
)

// Node is what robot.toml and gateway.toml have in common. Paths are absolute
// or relative to the working directory, no longer to the file.
type Node struct {
	File string
	Role string // "robot" or "gateway"
	Name string
	// Addresses are the node's overlay addresses with their prefixes, at least
	// one. The first one names the node.
	Addresses []netip.Prefix
	Number    uint32 // replicate.NodeOf(Addresses[0])
	// PrivateKeyFile is $CREDENTIALS_DIRECTORY/node.key when systemd has put a
	// file there, else the one that the configuration names.
	PrivateKeyFile string
	Interface      string
	MTU            int // bytes
	ControlSocket  string
	StateDir       string
	LogLevel       slog.Level

	keyLine    int
	peerKeys   map[keys.Public]peerKey
	credential bool
	flag       string // see Command
}

// Robot is a robot.toml.
type Robot struct {
	Node
	Deadline time.Duration
	// Carriers are up to 8, of which the first one that matches an interface has
	// it. None means discovery.
	Carriers  []Carrier
	Discovery Discovery
	Gateways  []GatewayPeer
}

// GatewayPeer is a [[gateway]] of a robot.toml.
type GatewayPeer struct {
	Name      string
	Addresses []netip.Addr // inside the robot's prefixes, at least one
	PublicKey keys.Public
	Endpoints []Endpoint // one to 8 different ones
}

// Gateway is a gateway.toml.
type Gateway struct {
	Node
	ListenPorts []uint16 // UDP, one to 8; the first is the one to give to robots
	Robots      []RobotPeer
}

// RobotPeer is a [[robot]] of a gateway.toml.
type RobotPeer struct {
	Name        string
	Addresses   []netip.Addr // inside the gateway's prefixes, at least one
	CarrierKeys []keys.Public
}

// Problem is one thing that is wrong in a configuration file, and Error all of
// them.
type (
	Problem = tables.Problem
	Error   = tables.Error
)

const fileExpected = "a configuration file (`fogplr init` writes one)"

// LoadRobot reads a robot.toml. Its error is an *Error with every problem of
// the file. It does not read the private key.
func LoadRobot(file string) (*Robot, error) {
	return robot(tables.Read(file, maxFile, fileExpected))
}

// ParseRobot is LoadRobot for a text that is not in file yet.
func ParseRobot(file, text string) (*Robot, error) {
	return robot(tables.Parse(file, text, maxFile))
}

func robot(t *tables.Table, err error) (*Robot, error) {
	if err != nil {
		return nil, err
	}
	var r Robot
	r.Node = node(t, "robot")
	privateKeyFile(t, &r.Node)
	r.Deadline = t.Duration("deadline", minDeadline, maxDeadline, DefaultDeadline)
	r.Carriers = carriers(t, r.Interface)
	r.Discovery = discovery(t, r.Carriers)
	r.Gateways = gateways(t, &r.Node)
	for _, key := range []string{"robot", "listen_port"} {
		t.Reject(key, "a key that belongs in gateway.toml", t.Known())
	}
	t.Finish()
	if err := t.Err(); err != nil {
		return nil, err
	}
	return &r, nil
}

// LoadGateway reads a gateway.toml. Its error is an *Error with every problem
// of the file. It does not read the private key.
func LoadGateway(file string) (*Gateway, error) {
	return gateway(tables.Read(file, maxFile, fileExpected))
}

// ParseGateway is LoadGateway for a text that is not in file yet.
func ParseGateway(file, text string) (*Gateway, error) {
	return gateway(tables.Parse(file, text, maxFile))
}

func gateway(t *tables.Table, err error) (*Gateway, error) {
	if err != nil {
		return nil, err
	}
	var g Gateway
	g.Node = node(t, "gateway")
	privateKeyFile(t, &g.Node)
	for _, p := range t.Integers("listen_port", 1, 65535, maxPorts, DefaultListenPort) {
		g.ListenPorts = append(g.ListenPorts, uint16(p))
	}
	g.Robots = robots(t, &g.Node)
	for _, key := range robotKeys {
		t.Reject(key, "a key that belongs in robot.toml", t.Known())
	}
	t.Finish()
	if err := t.Err(); err != nil {
		return nil, err
	}
	return &g, nil
}

// robotKeys are the keys that only a robot.toml has.
var robotKeys = []string{"carrier", "discovery", "gateway", "deadline"}

// Warning returns a plain sentence about what is allowed and yet hardly meant,
// or nothing.
func (g *Gateway) Warning() string {
	if len(g.Robots) > 0 {
		return ""
	}
	return fmt.Sprintf("No robot can connect, since %s has no [[robot]]: paste at its end the block that `fogplr init robot` prints on each robot, and run `%s`.", g.File, g.Command("reload"))
}

// LoadNode reads the part that robot.toml and gateway.toml have in common, from
// either. It looks at nothing else, so it needs no key, and a mistake in a peer
// does not matter. Its error is an *Error.
func LoadNode(file string) (*Node, error) {
	t, err := tables.Read(file, maxFile, fileExpected)
	if err != nil {
		return nil, err
	}
	n := node(t, roleOf(t))
	if err := t.Err(); err != nil {
		return nil, err
	}
	return &n, nil
}

// peerKey is where a peer's public key stands.
type peerKey struct {
	title string // `public_key of gateway "west"`
	line  int
}

// ReadKey reads the node's private key and refuses one that belongs to a peer,
// since the two could not be told apart. The warning is a plain sentence when
// others may read the file, else empty. The error is an *Error.
func (n *Node) ReadKey() (key keys.Private, warning string, err error) {
	key, warning, err = keys.ReadPrivate(n.PrivateKeyFile)
	if err != nil {
		return key, "", tables.Join(Problem{
			File: n.File, Line: n.keyLine, Key: "private_key_file",
			Found: fmt.Sprintf("no usable key (%v)", err), Expected: "the file of this node's private key",
		})
	}
	if err := n.checkPeers(key); err != nil {
		return key, "", err
	}
	if n.credential {
		warning = "" // systemd guards that directory, whatever the mode shows
	}
	return key, warning, nil
}

// checkPeers refuses a peer with a public key of the node whose private key is
// key.
func (n *Node) checkPeers(key keys.Private) error {
	own := map[keys.Public]string{key.PublicKey(): "this node's own public key"}
	for slot, k := range keys.CarrierPublicKeys(key) {
		own[k] = fmt.Sprintf("this node's own carrier key of slot %d", slot)
	}
	var wrong []Problem
	for k, what := range own {
		if p, taken := n.peerKeys[k]; taken {
			wrong = append(wrong, Problem{File: n.File, Line: p.line, Key: p.title, Found: what, Expected: "a key of the other machine"})
		}
	}
	return tables.Join(wrong...)
}

func node(t *tables.Table, role string) Node {
	socket := GatewaySocket
	if role == "robot" {
		socket = RobotSocket
	}
	n := Node{File: t.File(), Role: role, Interface: DefaultInterface, flag: Flag(t.File(), Both())}
	t.Need("name", tables.NameExpected)
	n.Name, _ = t.Name("name")
	n.Addresses = prefixes(t)
	if len(n.Addresses) > 0 {
		n.Number, _ = replicate.NodeOf(n.Addresses[0]) // checked by prefixes
	}
	if s, ok := t.Interface("interface"); ok {
		n.Interface = s
	}
	n.MTU = int(t.Integer("mtu", minMTU, maxMTU, DefaultMTU))
	for _, p := range n.Addresses {
		if p.Addr().Is6() && n.MTU < minMTU6 {
			t.Wrong("mtu", fmt.Sprintf("at least %d, since this node has the IPv6 address %v", minMTU6, p.Addr()))
			break
		}
	}
	n.ControlSocket = filePath(t, "control_socket", socket)
	if len(n.ControlSocket) > maxSocket {
		t.Fail("control_socket", fmt.Sprintf("a path of %d characters", len(n.ControlSocket)), fmt.Sprintf("at most %d, the limit of the kernel", maxSocket))
	}
	n.StateDir = filePath(t, "state_dir", DefaultStateDir)
	n.LogLevel = logLevel(t)
	return n
}

// filePath returns the path of key, which is relative to the file's directory, or
// otherwise when it is absent.
func filePath(t *tables.Table, key, otherwise string) string {
	const expected = "a path in quotes"
	s, ok := t.Text(key, expected)
	if !ok {
		return otherwise
	}
	if s == "" {
		t.Wrong(key, expected)
		return otherwise
	}
	return t.Locate(s)
}

func privateKeyFile(t *tables.Table, n *Node) {
	n.PrivateKeyFile = filePath(t, "private_key_file", "")
	n.keyLine = t.LineOf("private_key_file")
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" {
		c := filepath.Join(dir, "node.key")
		if _, err := os.Stat(c); err == nil {
			n.PrivateKeyFile, n.credential = c, true
			return
		}
	}
	t.Need("private_key_file", `the file of this node's private key, such as "node.key"`)
}
