package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/tunnel"
)

// heading is a line that names columns, and counted a name and its figure.
var (
	heading = regexp.MustCompile(`^[A-Z_/]+(?:  +[A-Z_/]+)+$`)
	counted = regexp.MustCompile(`([a-z_]+) \d+(?:  |$)`)
)

// printedNames returns every name of a column, and of a counter of out and in.
func printedNames(s *tunnel.Status) map[string]bool {
	var b bytes.Buffer
	statusText(&b, s)
	names, counters := map[string]bool{}, false
	for _, line := range strings.Split(b.String(), "\n") {
		counters = strings.HasPrefix(line, "out  ") || strings.HasPrefix(line, "in  ") || counters && strings.HasPrefix(line, "  ")
		switch {
		case heading.MatchString(line):
			for _, name := range strings.Fields(line) {
				names[name] = true
			}
		case counters:
			for _, m := range counted.FindAllStringSubmatch(line, -1) {
				names[m[1]] = true
			}
		}
	}
	return names
}

// docs/STATUS.md explains every column and counter, and none that there is not.
func TestStatusIsExplained(t *testing.T) {
	text, err := os.ReadFile("../../docs/STATUS.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, name := range strings.Split(cells[1], ",") {
				if n := strings.TrimSpace(name); strings.HasPrefix(n, "`") {
					told[strings.Trim(n, "`")] = true
				}
			}
		}
	}
	printed := map[string]bool{}
	for _, s := range []tunnel.Status{robotStatus(), gatewayStatus()} {
		for name := range printedNames(&s) {
			printed[name] = true
		}
	}
	for _, name := range []string{"SLOT", "OWN/DAY", "MONTH", "LOSS_OUT", "INCOMPLETE", "packets", "stale", "tun_errors"} {
		if !printed[name] {
			t.Errorf("%s was not found in what is printed: %v", name, printed)
		}
	}
	for name := range printed {
		if !told[name] {
			t.Errorf("docs/STATUS.md does not explain %s", name)
		}
	}
	for name := range told {
		if !printed[name] {
			t.Errorf("docs/STATUS.md explains %s, which is not printed", name)
		}
	}
	for _, args := range [][]string{{"status", "--help"}, {"help", "status"}} {
		if _, help, _ := command(args...); !strings.Contains(help, "docs/STATUS.md") {
			t.Errorf("%v does not name docs/STATUS.md: %s", args, help)
		}
	}
}
