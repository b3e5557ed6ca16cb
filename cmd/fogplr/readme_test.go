package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/path"
	"github.com/fogplr/fogplr/tunnel"
)

// The README lists every flag of init, and none that there is not.
func TestReadmeHasInitFlags(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`(?m)^(?:\| ` + "`| +)" + `(--[a-z-]+)[ =` + "`" + `]`)
	told := map[string]bool{}
	for _, m := range flag.FindAllStringSubmatch(string(text), -1) {
		told[m[1]] = true
	}
	there := map[string]bool{}
	for _, role := range []string{"robot", "gateway"} {
		_, help, _ := command("init", role, "--help")
		for _, m := range flag.FindAllStringSubmatch(help, -1) {
			if name := m[1]; name != "--json" {
				there[name] = true
			}
		}
	}
	if len(there) < 8 {
		t.Fatalf("the help has only %v", there)
	}
	for name := range there {
		if !told[name] {
			t.Errorf("the README says nothing of %s", name)
		}
	}
	for name := range told {
		if !there[name] {
			t.Errorf("the README has %s, which init has not", name)
		}
	}
}

// The README explains every stage of a path that is down.
func TestReadmeHasStages(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	stages := []string{tunnel.StageNoAddress}
	for s := path.StageUp; s.String() != path.Stage(255).String(); s++ {
		if !s.Up() {
			stages = append(stages, s.String())
		}
	}
	if len(stages) < 8 {
		t.Fatalf("there are only %q", stages)
	}
	for _, s := range stages {
		if !strings.Contains(string(text), "\n| "+s+" | ") {
			t.Errorf("the README does not explain %q", s)
		}
	}
}
