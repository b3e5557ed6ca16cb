package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"

	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// edit replaces text, which must be there, in a member's configuration.
func edit(t testing.TB, m *deploy.Member, old, fresh string) {
	t.Helper()
	text := read(t, m.Config())
	if !strings.Contains(text, old) {
		t.Fatalf("%s has no %q", m.Config(), old)
	}
	must(t, os.WriteFile(m.Config(), []byte(strings.ReplaceAll(text, old, fresh)), 0o644))
}

// configured returns what pattern's group finds in a member's configuration.
func configured(t testing.TB, m *deploy.Member, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, m.Config()))
	if found == nil {
		t.Fatalf("%s has nothing like %q", m.Config(), pattern)
	}
	return found[1]
}

func read(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	must(t, err)
	return string(b)
}

// tried is how a program ended.
type tried struct {
	code int
	out  string // standard output
	all  string // with the errors
}

// try runs a program that should end by itself, and soon.
func try(t testing.TB, n *lab.Node, name string, args ...string) tried {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := n.Command(ctx, name, args...)
	out, err := c.Output()
	if ctx.Err() != nil {
		t.Fatalf("%s %s did not end; its log is %s", name, strings.Join(args, " "), c.Log())
	}
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	_, all, _ := strings.Cut(read(t, c.Log()), "\n") // the command line comes first
	r := tried{out: out, all: all}
	if status != nil {
		r.code = status.ExitCode()
	}
	return r
}

// program is bin/fogplr, absolute.
func program(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs(fogplr)
	must(t, err)
	return path
}

// wants fails the test unless r ended with code and said all of the words.
func (r tried) wants(t testing.TB, what string, code int, words ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("%s: exit status %d, want %d; it said:\n%s", what, r.code, code, r.all)
	}
	if err := mentions(r.all, words...); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if strings.Contains(r.all, "panic:") || strings.Contains(r.all, "goroutine ") {
		t.Errorf("%s: a crash is no sentence:\n%s", what, r.all)
	}
}

// kernelNet is the network configuration of a node as ip(8) tells it, in lines:
// links, rules and the routes of all tables, which include every address. What
// the kernel itself does about IPv6's link-local addresses is left out: it comes
// a moment after a link.
func kernelNet(t testing.TB, n *lab.Node) []string {
	t.Helper()
	var lines []string
	for _, args := range [][]string{
		{"-o", "link", "show"},
		{"-4", "rule", "show"}, {"-6", "rule", "show"},
		{"-4", "route", "show", "table", "all"}, {"-6", "route", "show", "table", "all"},
	} {
		for line := range strings.Lines(output(t, n, "ip", args...)) {
			if !strings.Contains(line, "fe80:") && !strings.Contains(line, "multicast ff00::/8") {
				lines = append(lines, strings.Join(args, " ")+": "+strings.TrimSpace(line))
			}
		}
	}
	return lines
}

// unchanged fails the test for every line that is in only one of two lists.
func unchanged(t testing.TB, what string, before, after []string) {
	t.Helper()
	for _, l := range before {
		if !slices.Contains(after, l) {
			t.Errorf("%s: gone: %s", what, l)
		}
	}
	for _, l := range after {
		if !slices.Contains(before, l) {
			t.Errorf("%s: new: %s", what, l)
		}
	}
}

// waitStatus waits until check is content with a member's status, for at most
// limit.
func waitStatus(t testing.TB, m *deploy.Member, what string, limit time.Duration, check func(*tunnel.Status) error) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		s, err := m.Status(context.WithoutCancel(t.Context()))
		if err == nil {
			err = check(s)
		}
		took := time.Since(began)
		switch {
		case err == nil:
			return took
		case took > limit:
			t.Fatalf("%s: not within %v: %v", what, limit, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// lasting is a context for daemons that the test's end has to stop in order; the
// test's own ends before that.
func lasting(t testing.TB) context.Context { return context.WithoutCancel(t.Context()) }

// mentions returns an error unless text has all of the words.
func mentions(text string, words ...string) error {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return fmt.Errorf("nothing about %q in:\n%s", w, text)
		}
	}
	return nil
}

// countFrom counts the packets of a pcap file that come from one of the
// addresses.
func countFrom(t testing.TB, file string, from ...netip.Addr) int {
	t.Helper()
	n := 0
	must(t, lab.ReadPcap(file, func(p gopacket.Packet) error {
		if layer := p.NetworkLayer(); layer != nil {
			src, _ := netip.AddrFromSlice(layer.NetworkFlow().Src().Raw())
			if slices.Contains(from, src) {
				n++
			}
		}
		return nil
	}))
	return n
}
