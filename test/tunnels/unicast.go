package tunnels

import (
	"embed"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed *.tmpl
var templates embed.FS

const (
	// udpHeaders are the bytes of IPv4 and UDP around a DDS message.
	udpHeaders = 20 + 8
	// fragmentHeaders is the room, in bytes, that Cyclone DDS gets for what stands
	// around the data of a fragment, as in fogplr's own profiles.
	fragmentHeaders = 120
	// programs is how many DDS programs of one node the others can find: without
	// multicast, discovery tries so many ports of each peer.
	programs = 10
)

// unicast is what DDS must know where it has no multicast. As over fogplr, no
// message is larger than a packet can carry.
type unicast struct {
	Interface string
	Address   netip.Addr // this node's own
	Peers     []netip.Addr
	MTU       int // of the interface, in bytes
}

// Message is the largest DDS message, Fragment the most data in one, in bytes.
func (u unicast) Message() int  { return u.MTU - udpHeaders }
func (u unicast) Fragment() int { return (u.Message() - fragmentHeaders) &^ 7 }

// Programs is how many a node may have; they are numbered from 0 to LastProgram.
func (u unicast) Programs() int    { return programs }
func (u unicast) LastProgram() int { return programs - 1 }

// write puts a profile for each vendor into dir, which it makes if need be, and
// returns the environment that makes DDS programs read them.
func (u unicast) write(dir string) (env []string, err error) {
	cyclone, fast := filepath.Join(dir, "cyclonedds.xml"), filepath.Join(dir, "fastdds.xml")
	if err = os.MkdirAll(dir, 0o755); err == nil {
		err = os.WriteFile(cyclone, []byte(render("cyclone.xml.tmpl", u)), 0o644)
	}
	if err == nil {
		err = os.WriteFile(fast, []byte(render("fast.xml.tmpl", u)), 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("write the DDS profiles: %w", err)
	}
	return []string{
		"CYCLONEDDS_URI=file://" + cyclone,
		"FASTRTPS_DEFAULT_PROFILES_FILE=" + fast,
		"FASTDDS_DEFAULT_PROFILES_FILE=" + fast,
	}, nil
}

func render(name string, data any) string {
	var b strings.Builder
	if err := template.Must(template.ParseFS(templates, "*.tmpl")).ExecuteTemplate(&b, name, data); err != nil {
		panic("tunnels: " + err.Error()) // the templates are part of the program
	}
	return b.String()
}
