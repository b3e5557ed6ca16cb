package main

import (
	"os"
	"regexp"
	"testing"
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
