package e2e

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
)

// wg(8) sees the devices with the right keys. Two gateways on one file system
// want one name for their socket: the second goes without and says so.
func TestNodeWireGuardTool(t *testing.T) {
	l := lab.Test(t, "e2e")
	lw, err := l.Standard(lab.Options{})
	must(t, err)
	r := lw.Robots[0]
	// A /run/wireguard of its own, since every fogplr of this machine has one.
	m := newMounts(t, r.Node, "mkdir -p /run/wireguard && mount -t tmpfs none /run/wireguard")
	var gateways []deploy.Gateway
	for i, g := range lw.Gateways {
		gateways = append(gateways, deploy.Gateway{
			Node: g.Node, Name: g.Name(), Addresses: overlay(gatewayHost(i)),
			Endpoint: netip.AddrPortFrom(g.Address, wgPort).String(),
		})
	}
	robots := []deploy.Robot{{Node: r.Node, Name: "robot", Addresses: overlay(robotHost(0)), Carriers: []string{"cell-a", "cell-b"}}}
	fleet, err := deploy.New(m.wrap(t, l.Dir(), program(t)), l.Dir(), robots, gateways)
	must(t, err)
	t.Cleanup(func() { _ = fleet.Stop() })
	must(t, fleet.Start(lasting(t)))
	robot, west, east := fleet.Member("robot"), fleet.Member("west"), fleet.Member("east")
	must(t, robot.WaitUp(t.Context()))

	wg := func(device, what string) []string {
		t.Helper()
		return strings.Fields(m.output(t, r.Node, "wg", "show", device, what))
	}
	equal := func(what string, got []string, want ...string) {
		t.Helper()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("wg says of %s %v, want %v", what, got, want)
		}
	}
	robotKey, westKey, eastKey := privateKey(t, robot), privateKey(t, west), privateKey(t, east)
	for slot, device := range []string{"fogplr-cell-a", "fogplr-cell-b"} {
		equal(device, wg(device, "public-key"), keys.CarrierKey(robotKey, uint8(slot)).PublicKey().String())
		equal(device+"'s peers", wg(device, "peers"), westKey.PublicKey().String(), eastKey.PublicKey().String())
		for _, field := range wg(device, "latest-handshakes") {
			if field == "0" {
				t.Errorf("%s has a peer without handshake", device)
			}
		}
	}
	equal("fogplr-gw", wg("fogplr-gw", "public-key"), westKey.PublicKey().String())
	var carrierKeys []string
	for _, k := range keys.CarrierPublicKeys(robotKey) {
		carrierKeys = append(carrierKeys, k.String())
	}
	equal("fogplr-gw's peers", wg("fogplr-gw", "peers"), carrierKeys...)

	const without = "wg show will not list this device"
	if n := strings.Count(read(t, west.Log()), without); n != 0 {
		t.Error("the first gateway has no socket")
	}
	log := read(t, east.Log())
	if n := strings.Count(log, without); n != 1 {
		t.Errorf("the second gateway says %d times that it has no socket:\n%s", n, log)
	}
	for line := range strings.Lines(log) {
		if strings.Contains(line, without) && !strings.Contains(line, "INFO") {
			t.Errorf("too loud: %s", line)
		}
	}
	if s := status(t, east); len(s.Warnings) > 0 || !s.Ready {
		t.Errorf("the second gateway is not well: %q", s.Warnings)
	}

	must(t, fleet.Stop()) // the sockets go with their daemons
	if left := m.output(t, r.Node, "ls", "/run/wireguard"); strings.TrimSpace(left) != "" {
		t.Errorf("left behind: %s", left)
	}
}

// mounts is a mount namespace.
type mounts struct{ pid string }

// newMounts makes one and prepares it with a shell command.
func newMounts(t testing.TB, n *lab.Node, prepare string) mounts {
	t.Helper()
	c := n.Command(lasting(t), "unshare", "--mount", "sh", "-c", prepare+" && echo prepared && exec sleep infinity")
	must(t, c.Start())
	eventually(t, "a mount namespace", func() error { return mentions(read(t, c.Log()), "prepared\n") })
	return mounts{strconv.Itoa(c.Pid())}
}

// wrap writes a program that runs another one inside.
func (m mounts) wrap(t testing.TB, dir, program string) string {
	t.Helper()
	file := filepath.Join(dir, "inside")
	text := fmt.Sprintf("#!/bin/sh\nexec nsenter --mount --target %s %s \"$@\"\n", m.pid, program)
	must(t, os.WriteFile(file, []byte(text), 0o755))
	return file
}

// output runs a program inside, on a node.
func (m mounts) output(t testing.TB, n *lab.Node, args ...string) string {
	t.Helper()
	return output(t, n, "nsenter", append([]string{"--mount", "--target", m.pid}, args...)...)
}

func privateKey(t testing.TB, m *deploy.Member) keys.Private {
	t.Helper()
	k, _, err := keys.ReadPrivate(filepath.Join(m.Dir, "node.key"))
	must(t, err)
	return k
}

// Whatever happens, no private key stands in what the daemons log or answer,
// nor in a file beside the key's own.
func TestNodeKeepsSecrets(t *testing.T) {
	w := start(t, options{Options: lab.Options{Gateways: []string{"west"}}})
	r, g := w.robots[0], w.gateways[0]
	secrets := map[string]string{}
	for _, m := range []*deploy.Member{r.Member, g.Member} {
		node := privateKey(t, m)
		named := map[string]keys.Private{m.Name: node}
		for slot := range uint8(keys.Slots) {
			named[m.Name+" carrier"+string('0'+rune(slot))] = keys.CarrierKey(node, slot)
		}
		for name, k := range named {
			secrets[name+" in base64"] = strings.TrimRight(base64.StdEncoding.EncodeToString(k[:]), "=")
			secrets[name+" in hex"] = hex.EncodeToString(k[:])
			secrets[name+" in bytes"] = string(k[:])
		}
	}
	// Some trouble, so that there is something to log.
	must(t, r.lab.Down("cell-b"))
	waitPath(t, r, "west", "cell-b", false)
	for _, m := range []*deploy.Member{r.Member, g.Member} {
		before := read(t, m.Config())
		edit(t, m, "log_level", "nonsense = 5\nlog_level")
		must(t, unix.Kill(m.Pid(), unix.SIGHUP))
		eventually(t, "the reload is refused", func() error { return mentions(read(t, m.Log()), "nonsense") })
		must(t, os.WriteFile(m.Config(), []byte(before), 0o644))
		try(t, r.lab.Node, program(t), "status", "--json", "--socket", m.Socket())
		try(t, r.lab.Node, program(t), "status", "--socket", m.Socket())
	}
	// A key file with something wrong in it is not quoted.
	good := read(t, filepath.Join(r.Dir, "node.key"))
	must(t, r.Stop())
	must(t, os.WriteFile(filepath.Join(r.Dir, "node.key"), []byte(strings.TrimSpace(good)+strings.TrimSpace(good)), 0o600))
	try(t, r.lab.Node, program(t), "robot", "--config", r.Config()).wants(t, "a broken key file", 2, "node.key")
	must(t, os.WriteFile(filepath.Join(r.Dir, "node.key"), []byte(good), 0o600))
	must(t, r.Start(lasting(t)))
	must(t, w.fleet.Stop())

	files := 0
	must(t, filepath.WalkDir(w.Dir(), func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "node.key" {
			return err
		}
		files++
		text := read(t, file)
		for name, s := range secrets {
			if strings.Contains(text, s) {
				t.Errorf("%s has the key of %s", file, name)
			}
		}
		return nil
	}))
	if files < 10 {
		t.Errorf("only %d files were looked at", files)
	}
}
