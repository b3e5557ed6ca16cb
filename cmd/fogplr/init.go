package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/files"
	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/routing"
)

type initCmd struct {
	Robot   initRobotCmd   `cmd:"" help:"Write robot.toml and a key beside it; print the [[robot]] for every gateway.toml."`
	Gateway initGatewayCmd `cmd:"" help:"Write gateway.toml and a key beside it; print the [[gateway]] for every robot.toml."`
}

// initFlags are those that robots and gateways share.
type initFlags struct {
	Name  string `placeholder:"NAME" help:"Name of this node (the host's name)."`
	Force bool   `help:"Replace an existing configuration. An existing node.key is always kept."`

	assumed string // the overlay address that nobody gave
}

type initRobotCmd struct {
	Config fileName `default:"/etc/fogplr/robot.toml" placeholder:"FILE" help:"The file to write (${default}); node.key goes beside it."`
	initFlags
	Address []string `placeholder:"ADDRESS/BITS" help:"Overlay address, different on every node; several times for several (10.77.0.2/16)."`
	Carrier []string `placeholder:"INTERFACE" help:"An uplink, by its interface's name or a pattern; several times for several (all that lead to the internet, as they come and go)."`
	Gateway []string `sep:"none" placeholder:"NAME,ADDRESS,PUBLICKEY,HOST:PORT" help:"A gateway; several times for several (none: to be pasted later)."`
}

type initGatewayCmd struct {
	Config fileName `default:"/etc/fogplr/gateway.toml" placeholder:"FILE" help:"The file to write (${default}); node.key goes beside it."`
	initFlags
	Address    []string `placeholder:"ADDRESS/BITS" help:"Overlay address, different on every node; several times for several (10.77.0.11/16)."`
	ListenPort port     `default:"51820" placeholder:"PORT" help:"UDP port for all robots (${default})."`
	Endpoint   string   `placeholder:"HOST:PORT" help:"Where robots reach this gateway, an IP address or a DNS name (the address of its default route)."`
}

// written is what init prints with --json.
type written struct {
	Config string `json:"config"`
	Key    string `json:"key"`
	NewKey bool   `json:"new_key"`
	// Block is for the other side's configuration.
	Block string `json:"block"`
	// Blanks are what is still to be filled in.
	Blanks []config.Problem `json:"blanks"`
}

// The overlay addresses of a node whose own is not given: right for the first robot
// and the first gateway alone.
const (
	firstRobot   = "10.77.0.2/16"
	firstGateway = "10.77.0.11/16"
)

func (c initRobotCmd) Run(a *app) error {
	if len(c.Address) == 0 {
		c.Address, c.assumed = []string{firstRobot}, firstRobot
	}
	f := config.RobotFile{Name: c.name(), Addresses: c.Address, PrivateKeyFile: keyFile, Carriers: c.Carrier}
	for _, g := range c.Gateway {
		block, err := parseGateway(g)
		if err != nil {
			return err
		}
		f.Gateways = append(f.Gateways, block)
	}
	file := string(c.Config)
	_, err := config.ParseRobot(file, f.Render())
	return c.write(a, file, f.Render(), err, "every gateway.toml", func(k keys.Private) string {
		all := keys.CarrierPublicKeys(k)
		return config.RobotBlock{Name: f.Name, Addresses: plain(c.Address), CarrierKeys: all[:]}.Render()
	})
}

func (c initGatewayCmd) Run(a *app) error {
	if len(c.Address) == 0 {
		c.Address, c.assumed = []string{firstGateway}, firstGateway
	}
	f := config.GatewayFile{Name: c.name(), Addresses: c.Address, PrivateKeyFile: keyFile, ListenPort: uint16(c.ListenPort)}
	file := string(c.Config)
	endpoint, note, err := c.endpoint(a)
	if err != nil {
		return err
	}
	_, err = config.ParseGateway(file, f.Render())
	return c.write(a, file, f.Render(), err, "every robot.toml", func(k keys.Private) string {
		return config.GatewayBlock{
			Name: f.Name, Addresses: plain(c.Address), PublicKey: k.PublicKey().String(), Endpoint: endpoint, EndpointNote: note,
		}.Render()
	})
}

const keyFile = "node.key"

// endpoint returns where robots reach the gateway, and a comment on it.
func (c initGatewayCmd) endpoint(a *app) (endpoint, note string, err error) {
	if c.Endpoint != "" {
		if _, err := config.ParseEndpoint(c.Endpoint); err != nil {
			return "", "", usageError{fmt.Errorf("--endpoint is %q, expected %w", c.Endpoint, err)}
		}
		return c.Endpoint, "", nil
	}
	for _, u := range a.uplinks() {
		if !u.Source.IsValid() {
			continue
		}
		note = "this machine's address on " + u.Interface + "; robots elsewhere need the public one"
		return netip.AddrPortFrom(u.Source, uint16(c.ListenPort)).String(), note, nil
	}
	return "", "FILL IN: the gateway's public address or name, and port", nil
}

func (c initFlags) name() string {
	if c.Name != "" {
		return c.Name
	}
	host, err := os.Hostname()
	if err != nil {
		return "" // a blank to fill in
	}
	host, _, _ = strings.Cut(host, ".")
	return host
}

// uplinks returns none when the kernel does not tell: init leaves blanks then.
func (a *app) uplinks() []routing.Uplink {
	found, err := routing.Uplinks()
	if err != nil {
		fmt.Fprintf(a.stderr, "fogplr: this machine's uplinks are not known: %v\n", err)
	}
	return found
}

// parseGateway reads NAME,ADDRESS,PUBLICKEY,HOST:PORT. What each is worth is
// judged with the whole file.
func parseGateway(s string) (config.GatewayBlock, error) {
	parts := strings.Split(s, ",")
	if len(parts) != 4 {
		return config.GatewayBlock{}, usageError{fmt.Errorf("--gateway %q has %d parts, not the 4 of NAME,ADDRESS,PUBLICKEY,HOST:PORT", s, len(parts))}
	}
	return config.GatewayBlock{Name: parts[0], Addresses: parts[1:2], PublicKey: parts[2], Endpoint: parts[3]}, nil
}

// plain returns addresses without their prefix lengths.
func plain(prefixes []string) []string {
	var out []string
	for _, p := range prefixes {
		address, _, _ := strings.Cut(p, "/")
		out = append(out, address)
	}
	return out
}

// write puts text into file and a key beside it, and prints the block for the
// other side. The problem is what reading text gave: blanks may stay, anything
// else is the caller's mistake and nothing is written.
func (c initFlags) write(a *app, file, text string, problem error, whither string, block func(keys.Private) string) error {
	folder := filepath.Dir(file)
	out := written{Config: file, Key: filepath.Join(folder, keyFile), Blanks: []config.Problem{}}
	if filepath.Clean(file) == out.Key {
		return usageError{fmt.Errorf("--config is %s, which is where the key goes: give the configuration another name", file)}
	}
	blanks, err := sift(problem)
	if err != nil {
		return err
	}
	out.Blanks = append(out.Blanks, blanks...)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder for the configuration: %w", err)
	}
	if _, err := os.Lstat(file); err == nil && !c.Force {
		return fmt.Errorf("%s exists already and is not replaced; --force does that", file)
	}
	k, fresh, err := nodeKey(a.stderr, out.Key)
	if err != nil {
		return err
	}
	put := files.Create
	if c.Force {
		put = files.Replace
	}
	if err := put(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("cannot write the configuration: %w", err)
	}
	out.NewKey, out.Block = fresh, block(k)
	c.tell(a.stderr, out, whither)
	return a.print(out, func(w io.Writer) { fmt.Fprint(w, out.Block) })
}

// sift parts the problems of a file that is not written yet: what is still to be
// filled in, and, as an error, what the flags said wrong.
func sift(problem error) (blanks []config.Problem, err error) {
	var problems *config.Error
	if !errors.As(problem, &problems) {
		return nil, problem
	}
	wrong := &config.Error{}
	for _, p := range problems.Problems {
		if p.Blank {
			blanks = append(blanks, p)
			continue
		}
		p.File, p.Line = "fogplr init", 0
		wrong.Problems = append(wrong.Problems, p)
	}
	if len(wrong.Problems) > 0 {
		return nil, wrong
	}
	return blanks, nil
}

// tell says what has been done and what is still to do.
func (c initFlags) tell(w io.Writer, out written, whither string) {
	fmt.Fprintf(w, "Wrote %s.\n", out.Config)
	if out.NewKey {
		fmt.Fprintf(w, "Wrote %s, which nobody else may see.\n", out.Key)
	} else {
		fmt.Fprintf(w, "Kept %s, which was there.\n", out.Key)
	}
	if c.assumed != "" {
		fmt.Fprintf(w, "Its overlay address is %s, since none was given. Every node needs another one: --address ADDRESS/BITS.\n", c.assumed)
	}
	if len(out.Blanks) > 0 {
		fmt.Fprintln(w, "Still to be filled in:")
		for _, p := range out.Blanks {
			fmt.Fprintf(w, "  %s:%d: %s: %s\n", p.File, p.Line, p.Key, p.Expected)
		}
	}
	fmt.Fprintf(w, "This is for %s:\n", whither)
}

// nodeKey returns the key in file, which it makes if there is none.
func nodeKey(stderr io.Writer, file string) (k keys.Private, fresh bool, err error) {
	k, warning, err := keys.ReadPrivate(file)
	if errors.Is(err, fs.ErrNotExist) {
		k = keys.Generate()
		return k, true, keys.WritePrivate(file, k, false)
	}
	if warning != "" {
		fmt.Fprintln(stderr, "fogplr:", warning)
	}
	return k, false, err
}
