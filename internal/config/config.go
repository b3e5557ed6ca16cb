package config

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/replicate"
)

// Node is what robot.toml and gateway.toml have in common. Paths are absolute
// or relative to the working directory, no longer to the file.
type Node struct {
	File string
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
}

// Robot is a robot.toml.
type Robot struct {
	Node
	Deadline time.Duration
	Carriers []string // interface names, 1 to 8
	Gateways []GatewayPeer
}

// GatewayPeer is a [[gateway]] of a robot.toml.
type GatewayPeer struct {
	Name      string
	Addresses []netip.Addr // inside the robot's prefixes, at least one
	PublicKey keys.Public
	Endpoint  netip.AddrPort
}

// Gateway is a gateway.toml.
type Gateway struct {
	Node
	ListenPort uint16 // UDP
	Robots     []RobotPeer
}

// RobotPeer is a [[robot]] of a gateway.toml.
type RobotPeer struct {
	Name        string
	Addresses   []netip.Addr // inside the gateway's prefixes, at least one
	CarrierKeys []keys.Public
}

// LoadRobot reads a robot.toml. Its error is an *Error with every problem of
// the file. It does not read the private key.
func LoadRobot(file string) (*Robot, error) {
	return readDocument(file).robot()
}

// ParseRobot is LoadRobot for a text that is not in file yet.
func ParseRobot(file, text string) (*Robot, error) {
	d := &document{file: file}
	d.parse([]byte(text))
	return d.robot()
}

func (d *document) robot() (*Robot, error) {
	d.foreign = map[string]string{"robot": "gateway.toml", "listen_port": "gateway.toml"}
	if err := d.err(); err != nil {
		return nil, err
	}
	t := d.top()
	var r Robot
	r.Node = t.node(RobotSocket)
	t.privateKeyFile(&r.Node)
	r.Deadline = t.deadline()
	r.Carriers = t.carriers(r.Interface)
	r.Gateways = t.gateways(&r.Node)
	t.finish()
	if err := d.err(); err != nil {
		return nil, err
	}
	return &r, nil
}

// LoadGateway reads a gateway.toml. Its error is an *Error with every problem
// of the file. It does not read the private key.
func LoadGateway(file string) (*Gateway, error) {
	return readDocument(file).gateway()
}

// ParseGateway is LoadGateway for a text that is not in file yet.
func ParseGateway(file, text string) (*Gateway, error) {
	d := &document{file: file}
	d.parse([]byte(text))
	return d.gateway()
}

func (d *document) gateway() (*Gateway, error) {
	d.foreign = map[string]string{"gateway": "robot.toml", "carrier": "robot.toml", "deadline": "robot.toml"}
	if err := d.err(); err != nil {
		return nil, err
	}
	t := d.top()
	var g Gateway
	g.Node = t.node(GatewaySocket)
	t.privateKeyFile(&g.Node)
	g.ListenPort = uint16(t.number("listen_port", 1, 65535, DefaultListenPort))
	g.Robots = t.robots(&g.Node)
	t.finish()
	if err := d.err(); err != nil {
		return nil, err
	}
	return &g, nil
}

// Warning returns a plain sentence about what is allowed and yet hardly meant,
// or nothing.
func (g *Gateway) Warning() string {
	if len(g.Robots) > 0 {
		return ""
	}
	return fmt.Sprintf("No robot can connect, since %s has no [[robot]]: paste at its end the block that `fogplr init robot` prints on each robot, and restart fogplr.", g.File)
}

// LoadNode reads the part that robot.toml and gateway.toml have in common, from
// either. It looks at nothing else, so it needs no key, and a mistake in a peer
// does not matter. Its error is an *Error.
func LoadNode(file string) (*Node, error) {
	d := readDocument(file)
	if err := d.err(); err != nil {
		return nil, err
	}
	socket := GatewaySocket
	for _, key := range []string{"carrier", "gateway", "deadline"} {
		if _, ok := d.root[key]; ok {
			socket = RobotSocket
		}
	}
	node := d.top().node(socket)
	if err := d.err(); err != nil {
		return nil, err
	}
	return &node, nil
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
		return key, "", &Error{Problems: []Problem{{
			File: n.File, Line: n.keyLine, Key: "private_key_file",
			Found: fmt.Sprintf("no usable key (%v)", err), Expected: "the file of this node's private key",
		}}}
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
	d := document{file: n.File}
	for k, what := range own {
		if p, taken := n.peerKeys[k]; taken {
			d.report(p.line, p.title, what, "a key of the other machine")
		}
	}
	return d.err()
}

// TakeOver copies from fresh what a running daemon takes over of a changed
// configuration: the log level, and where things stand in the file.
func (n *Node) TakeOver(fresh *Node) {
	n.LogLevel, n.keyLine, n.peerKeys = fresh.LogLevel, fresh.keyLine, fresh.peerKeys
}

func (t *table) node(socket string) Node {
	n := Node{File: t.doc.file}
	n.Name = t.name()
	n.Addresses = t.prefixes()
	if len(n.Addresses) > 0 {
		n.Number, _ = replicate.NodeOf(n.Addresses[0]) // checked by prefixes
	}
	n.Interface = DefaultInterface
	if s, ok := t.text("interface", interfaceExpected); ok {
		t.checkInterface("interface", s)
		n.Interface = s
	}
	n.MTU = int(t.number("mtu", minMTU, maxMTU, DefaultMTU))
	for _, p := range n.Addresses {
		if p.Addr().Is6() && n.MTU < minMTU6 {
			t.fail("mtu", show(int64(n.MTU)), fmt.Sprintf("at least %d, since this node has the IPv6 address %v", minMTU6, p.Addr()))
			break
		}
	}
	n.ControlSocket = t.filePath("control_socket", socket)
	if len(n.ControlSocket) > maxSocket {
		t.fail("control_socket", fmt.Sprintf("a path of %d characters", len(n.ControlSocket)), fmt.Sprintf("at most %d, the limit of the kernel", maxSocket))
	}
	n.StateDir = t.filePath("state_dir", DefaultStateDir)
	n.LogLevel = t.logLevel()
	return n
}

// filePath returns the path of key, which is relative to the file's directory, or
// otherwise when it is absent.
func (t *table) filePath(key, otherwise string) string {
	const expected = "a path in quotes"
	s, ok := t.text(key, expected)
	if !ok {
		return otherwise
	}
	if s == "" {
		t.fail(key, show(s), expected)
		return otherwise
	}
	if !filepath.IsAbs(s) {
		s = filepath.Join(filepath.Dir(t.doc.file), s)
	}
	return s
}

func (t *table) privateKeyFile(n *Node) {
	n.PrivateKeyFile = t.filePath("private_key_file", "")
	n.keyLine = t.line("private_key_file")
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" {
		c := filepath.Join(dir, "node.key")
		if _, err := os.Stat(c); err == nil {
			n.PrivateKeyFile, n.credential = c, true
			return
		}
	}
	if _, set := t.m["private_key_file"]; !set {
		t.missing("private_key_file", `the file of this node's private key, such as "node.key"`)
	}
}
