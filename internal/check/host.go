package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/check/firewall"
	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/control"
	"github.com/fogplr/fogplr/internal/dds"
	"github.com/fogplr/fogplr/routing"
	"github.com/fogplr/fogplr/tunnel"
)

// Host is how facts are gathered. Local returns the real one; a test replaces
// what it likes. No function changes anything.
type Host struct {
	// Root is where /proc and /run are looked for.
	Root    string
	User    int // effective user id
	Version string
	Built   time.Time // see Clock
	Getenv  func(name string) string
	// Probe tries what the kernel offers to this process.
	Probe func() Kernel
	// Command runs a program and returns its standard output; the error wraps
	// exec.ErrNotFound when there is none of that name.
	Command func(ctx context.Context, name string, args ...string) ([]byte, error)
	Look    func(tun string, overlay []netip.Prefix, want []routing.Want) (*routing.Facts, error)
	// Interfaces lists the interfaces that may be carriers.
	Interfaces func() ([]routing.Interface, error)
	Lookup     func(ctx context.Context, host string) ([]netip.Addr, error)
	// Ask asks a gateway through an interface and returns how long the answer
	// took; the error says why there is none.
	Ask    func(ctx context.Context, iface string, to netip.AddrPort) (time.Duration, error)
	Status func(ctx context.Context, socket string) (*tunnel.Status, error)
	// Clock returns the time of day, and whether nothing keeps it right.
	Clock func() (now time.Time, free bool, err error)
}

// Local is this machine, for a program of that version made at that time (zero:
// not known).
func Local(version string, built time.Time) Host {
	return Host{
		Root: "/", User: os.Geteuid(), Version: version, Built: built, Getenv: os.Getenv, Probe: probe, Command: command,
		Look: routing.Look, Interfaces: routing.Interfaces, Ask: ask, Status: control.Status, Clock: clock,
		Lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
	}
}

// Gather looks at everything that the node of the configuration file needs; with
// no file, at the machine alone. It sends nothing but look-ups of host names,
// unless ask is set: then gateways are asked, too. It takes some seconds when
// somebody does not answer.
func (h Host) Gather(ctx context.Context, file string, ask bool) *Facts {
	f := &Facts{User: h.User, Kernel: h.Probe()}
	var robot *config.Robot
	f.Config, robot = readConfig(file)
	f.Capable = h.capabilities()
	h.askDaemon(ctx, f)
	h.places(f)
	h.choose(f, robot)
	f.Names = h.lookUp(ctx, f.Config.Gateways)
	h.look(f)
	h.sysctls(f)
	f.Firewall = h.firewall(ctx)
	h.programs(f)
	f.Shell = h.profile(h.Getenv, func(file string) string { return file })
	if now, free, err := h.Clock(); err == nil {
		f.Clock = Clock{Now: now, Built: h.Built, Free: &free}
	}
	if ask {
		h.askAll(ctx, f)
	}
	return f
}

func (h Host) path(parts ...string) string {
	return filepath.Join(append([]string{h.Root}, parts...)...)
}

// read returns a file below Root, at most limit bytes of it.
func (h Host) read(limit int64, parts ...string) ([]byte, error) {
	return readFile(h.path(parts...), limit)
}

func readFile(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, limit))
}

// readProfile reads a file that anybody may have named, so that it may be a pipe
// or a device, which must not even be opened: it is looked at first.
func readProfile(path string) ([]byte, error) {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	return readFile(fmt.Sprintf("/proc/self/fd/%d", at), maxSmallFile)
}

func (h Host) askDaemon(ctx context.Context, f *Facts) {
	f.Daemon.Version = h.Version
	if f.Config.Node == nil {
		return
	}
	status, err := h.Status(ctx, f.Config.Node.ControlSocket)
	switch {
	case err == nil:
		f.Daemon.Status = status
		f.Config.asRunning(status)
	case errors.Is(err, control.ErrForbidden):
		f.Daemon.Forbidden = true
	case errors.Is(err, control.ErrNotRunning):
		_, err := os.Lstat(f.Config.Node.ControlSocket)
		f.Daemon.Stopped, f.Daemon.Killed = true, err == nil
	default:
		f.Daemon.Silent = err.Error()
	}
}

// look has routing say what it would find for the carriers.
func (h Host) look(f *Facts) {
	name, overlay := "", []netip.Prefix(nil)
	if n := f.Config.Node; n != nil {
		name, overlay = n.Interface, n.Addresses
	}
	var endpoints []netip.Addr
	for _, g := range f.Config.Gateways {
		for _, e := range f.endpoints(g) {
			endpoints = append(endpoints, e.Addr())
		}
	}
	var want []routing.Want
	for slot, c := range f.Config.Carriers {
		want = append(want, routing.Want{Interface: c, Slot: slot, Endpoints: endpoints})
	}
	f.Network, f.NetworkError = h.Look(name, overlay, want)
}

// sysctls reads settings of the kernel.
func (h Host) sysctls(f *Facts) {
	const sys = "proc/sys/net"
	if text, err := h.read(maxSmallFile, sys, "ipv4/ip_forward"); err == nil {
		on := strings.TrimSpace(string(text)) == "1"
		f.Kernel.Forwards = &on
	}
	if _, err := os.Stat(h.path(sys, "ipv6")); errors.Is(err, fs.ErrNotExist) {
		f.Kernel.NoIPv6 = true
	}
	if f.Config.Node == nil {
		return
	}
	// A device that is there has its own setting, a new one gets that of default.
	for _, name := range []string{f.Config.Node.Interface, "default"} {
		text, err := h.read(maxSmallFile, sys, "ipv6/conf", name, "disable_ipv6")
		if err != nil {
			continue
		}
		if strings.TrimSpace(string(text)) == "1" {
			f.Kernel.IPv6Off = "net.ipv6.conf." + strings.ReplaceAll(name, ".", "/") + ".disable_ipv6"
		}
		return
	}
}

// lookUp asks for the addresses of all names at once.
func (h Host) lookUp(ctx context.Context, gateways []Gateway) []Name {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	var names []Name
	seen := map[string]bool{}
	for _, g := range gateways {
		for _, e := range g.Endpoints {
			if !e.Addr.IsValid() && !seen[e.Host] && len(names) < maxNames {
				seen[e.Host] = true
				names = append(names, Name{Host: e.Host})
			}
		}
	}
	done := make(chan struct{})
	for i := range names {
		go func() {
			h.resolve(ctx, &names[i])
			done <- struct{}{}
		}()
	}
	for range names {
		<-done
	}
	return names
}

func (h Host) resolve(ctx context.Context, n *Name) {
	addrs, err := h.Lookup(ctx, n.Host)
	for _, a := range addrs {
		n.Addrs = append(n.Addrs, a.Unmap())
	}
	if err == nil {
		return
	}
	var dnsError *net.DNSError
	n.Problem = err.Error()
	if errors.As(err, &dnsError) {
		n.Never = dnsError.IsNotFound
		n.Problem = dnsError.Err
	}
}

// firewall returns the packet filter, nil when this user may not see it or
// nothing can show it.
func (h Host) firewall(ctx context.Context) *firewall.Rules {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	var r firewall.Rules
	text, err := h.Command(ctx, "nft", "--json", "list", "ruleset")
	seen := err == nil
	if seen && r.ParseNFT(text) != nil {
		return nil
	}
	for _, t := range []struct {
		command, names string
		v6             bool
	}{{"iptables-save", "proc/net/ip_tables_names", false}, {"ip6tables-save", "proc/net/ip6_tables_names", true}} {
		// Not for nothing: on an old iptables the command loads a kernel module.
		if names, _ := h.read(maxSmallFile, t.names); seen && len(names) == 0 && !bytes.Contains(text, []byte(`"xt"`)) {
			continue
		}
		save, err := h.Command(ctx, t.command)
		if err != nil || r.ParseIPTables(string(save), t.v6) != nil {
			if errors.Is(err, exec.ErrNotFound) {
				continue
			}
			return nil
		}
		seen = true
	}
	if !seen {
		return nil
	}
	return &r
}

func command(ctx context.Context, name string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	c := exec.CommandContext(ctx, name, args...)
	c.Stdout = &limited{&out, maxRuleset}
	c.WaitDelay = time.Second
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out.Bytes(), nil
}

// limited fails once more than left bytes were written.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, errors.New("too much output")
	}
	return l.w.Write(b)
}

// profile reads where an environment points DDS; locate says where a file is that
// it names.
func (h Host) profile(getenv func(string) string, locate func(string) string) Profile {
	setting := func(variable string) Setting { return setting(variable, getenv(variable), locate) }
	p := Profile{RMW: getenv("RMW_IMPLEMENTATION"), Obstacles: dds.Obstacles(getenv)}
	p.Cyclone = setting("CYCLONEDDS_URI")
	p.FastDDS = setting("FASTRTPS_DEFAULT_PROFILES_FILE")
	if newer := setting("FASTDDS_DEFAULT_PROFILES_FILE"); newer.Value != "" {
		p.FastDDS = newer
	}
	return p
}

// setting reads what a variable names: files, also as URIs, separated by commas,
// or the profile itself.
func setting(variable, value string, locate func(string) string) Setting {
	s := Setting{Variable: variable, Value: value}
	if strings.HasPrefix(strings.TrimSpace(value), "<") {
		s.Text, s.Value = value, "the text in the variable itself"
		return s
	}
	var texts []string
	for part := range strings.SplitSeq(value, ",") {
		name := strings.TrimPrefix(strings.TrimSpace(part), "file://")
		if name == "" {
			continue
		}
		text, err := readProfile(locate(name))
		if err != nil {
			s.Problem = err.Error()
			return s
		}
		texts = append(texts, string(text))
	}
	s.Text = strings.Join(texts, "\n")
	return s
}
