package config

import (
	"embed"
	"fmt"
	"strings"
	"text/template"

	"github.com/fogplr/fogplr/internal/keys"
)

//go:embed *.tmpl
var templates embed.FS

// RobotFile is what `fogplr init robot` writes into robot.toml. Texts that are
// left empty become blanks to fill in, which LoadRobot reports with their lines.
// Without gateways there is a block in comments, so that one can be pasted at
// the end of the file.
type RobotFile struct {
	Name           string
	Addresses      []string // with prefix lengths
	PrivateKeyFile string
	Carriers       []string // interface names; none for discovery
	Gateways       []GatewayBlock
}

// GatewayFile is what `fogplr init gateway` writes into gateway.toml.
type GatewayFile struct {
	Name           string
	Addresses      []string // with prefix lengths
	PrivateKeyFile string
	ListenPort     uint16
	Robots         []RobotBlock
}

// GatewayBlock is a [[gateway]] of a robot.toml. Its texts are written as they
// are: whoever fills it need not know whether they are right.
type GatewayBlock struct {
	Name         string
	Addresses    []string // without prefix lengths
	PublicKey    string
	Endpoint     string
	EndpointNote string // a comment behind the endpoint, or empty
}

// RobotBlock is a [[robot]] of a gateway.toml.
type RobotBlock struct {
	Name        string
	Addresses   []string // without prefix lengths
	CarrierKeys []keys.Public
}

// Render returns the commented robot.toml.
func (f RobotFile) Render() string { return render("robot.toml.tmpl", f) }

// Render returns the commented gateway.toml.
func (f GatewayFile) Render() string { return render("gateway.toml.tmpl", f) }

// Render returns the block.
func (b GatewayBlock) Render() string { return render("gateway", b) }

// Render returns the block.
func (b RobotBlock) Render() string { return render("robot", b) }

// CarrierKeysLine returns the line carrier_keys of a [[robot]].
func CarrierKeysLine(k []keys.Public) string {
	quoted := make([]string, len(k))
	for i, key := range k {
		quoted[i] = quote(key.String())
	}
	return "carrier_keys = [" + strings.Join(quoted, ", ") + "]"
}

func render(name string, data any) string {
	t := template.Must(template.New("").Funcs(template.FuncMap{"quote": quote, "list": list}).ParseFS(templates, "*.tmpl"))
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		panic("config: " + err.Error()) // the templates are part of the program
	}
	return b.String()
}

// quote returns s as a TOML basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// list returns one string as itself and several as a TOML array.
func list(ss []string) string {
	quoted := make([]string, len(ss))
	for i, s := range ss {
		quoted[i] = quote(s)
	}
	switch len(ss) {
	case 0:
		return `""`
	case 1:
		return quoted[0]
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
