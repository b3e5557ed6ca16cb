package routing

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// rpLoose is the value of rp_filter that accepts a packet when there is any
// route to its source (RFC 3704, 2.4). The kernel uses the larger of conf.all
// and the interface's own.
const rpLoose = 2

// addrGenModeNone is IN6_ADDR_GEN_MODE_NONE of linux/if_link.h.
const addrGenModeNone = 1

const ipv4Conf = "/proc/sys/net/ipv4/conf"

// rpFilterKey is the setting's name for sysctl(8), which takes a slash for a dot
// in an interface's name.
func rpFilterKey(name string) string {
	return "net.ipv4.conf." + strings.ReplaceAll(name, ".", "/") + ".rp_filter"
}

// isInterfaceName says that name is one, and safe in a path.
func isInterfaceName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") && len(name) < unix.IFNAMSIZ
}

func rpFilterPath(name string) (string, error) {
	if !isInterfaceName(name) {
		return "", fmt.Errorf("%q is not an interface name", name)
	}
	return filepath.Join(ipv4Conf, name, "rp_filter"), nil
}

func readRPFilter(name string) (int, error) {
	path, err := rpFilterPath(name)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

func readAddrGenNone(name string) bool {
	if !isInterfaceName(name) {
		return false
	}
	text, err := os.ReadFile(filepath.Join("/proc/sys/net/ipv6/conf", name, "addr_gen_mode"))
	if errors.Is(err, fs.ErrNotExist) {
		return true // no IPv6 here
	}
	return err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(addrGenModeNone)
}

// saved is one rp_filter value as it was before fogplr changed it. The index
// says whose it is: the device may get another name, and a new device this one.
type saved struct {
	Interface string `json:"interface"` // its name then, for whoever reads the file
	Index     int    `json:"index"`
	Value     int    `json:"value"`
}

// rpStore remembers on disk what rp_filter was, so that it can be put back by
// another process. One file for each network namespace.
type rpStore struct{ path string }

func newRPStore(runtimeDir string, k kernel) rpStore {
	return rpStore{filepath.Join(runtimeDir, fmt.Sprintf("rp_filter-%d.json", k.namespace()))}
}

// load returns what is remembered. Entries that cannot be ours are dropped: the
// directory may belong to an unprivileged user, the reader may be root.
func (s rpStore) load() ([]saved, error) {
	text, err := readPlain(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("remembered rp_filter values: %w", err)
	}
	var all []saved
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("remembered rp_filter values in %s: %w", s.path, err)
	}
	return slices.DeleteFunc(all, func(e saved) bool {
		return !isInterfaceName(e.Interface) || e.Value < 0 || e.Value > rpLoose
	}), nil
}

// readPlain reads a file that somebody with less privilege may have put there: it
// follows no link, waits for no pipe and takes no more than maxSaved bytes.
func readPlain(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxSaved))
}

// store replaces the file in one step; an empty list removes it.
func (s rpStore) store(all []saved) error {
	if len(all) == 0 {
		if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), ".rp_filter-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// loosen sets rp_filter of l to rpLoose and remembers the value it had, first on
// disk, then in the kernel. What is remembered of devices that are gone is
// forgotten.
func (s rpStore) loosen(k kernel, v *view, l link) error {
	all, err := s.load()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(e saved) bool { return e.Index == l.index || v.linkName(e.Index) == "" })
	all = append(all, saved{Interface: l.name, Index: l.index, Value: v.rpFilter[l.name]})
	if err := s.store(all); err != nil {
		return fmt.Errorf("remembering rp_filter of %s: %w", l.name, err)
	}
	if err := k.setRPFilter(l.index, rpLoose); err != nil {
		return fmt.Errorf("rp_filter of %s: %w", l.name, err)
	}
	return nil
}

// restore puts back what loosen changed, where nobody changed it since. It
// returns what it did as lines for sysctl(8). What is refused stays remembered, for
// a later call.
func (s rpStore) restore(k kernel) (done []string, err error) {
	all, err := s.load()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	v, err := k.view(nil)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = v.linkName(e.Index)
	}
	if v, err = k.view(names); err != nil {
		return nil, err
	}
	var left []saved
	var errs []error
	for i, e := range all {
		name := names[i]
		if name == "" || v.rpFilter[name] != rpLoose || e.Value == rpLoose {
			continue
		}
		if err := k.setRPFilter(e.Index, e.Value); err != nil && !gone(err) {
			left = append(left, e)
			errs = append(errs, fmt.Errorf("rp_filter of %s: %w", name, err))
			continue
		}
		done = append(done, fmt.Sprintf("sysctl -w %s=%d", rpFilterKey(name), e.Value))
	}
	return done, errors.Join(append(errs, s.store(left))...)
}
