// Package layers holds the test of the import rule: which package may import
// which. It contains nothing else.
package layers

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/fogplr/fogplr"

// level places a package of this module, given by its path below the module.
// Imports go strictly down; only the packages under internal/ and those under
// test/ may import their like.
func level(pkg string) (int, bool) {
	top, _, _ := strings.Cut(pkg, "/")
	switch {
	case pkg == "replicate", pkg == "path", pkg == "rtps":
		return 0, true
	case pkg == "routing", pkg == "hello", pkg == "resolve", pkg == "arbitrate":
		return 1, true
	case pkg == "tunnel":
		return 2, true
	case top == "internal":
		return 3, true
	case pkg == "cmd/fogplr":
		return 4, true
	case top == "test":
		return 5, true
	}
	return 0, false
}

// kernelLibraries talk to the kernel's network configuration.
var kernelLibraries = []string{"github.com/vishvananda/netlink", "github.com/vishvananda/netns"}

// verdict says what is wrong with pkg importing the import path imp, empty if
// nothing is.
func verdict(pkg, imp string) string {
	from, known := level(pkg)
	if !known {
		return fmt.Sprintf("package %s has no level yet; give it one here", pkg)
	}
	for _, lib := range kernelLibraries {
		if (imp == lib || strings.HasPrefix(imp, lib+"/")) && pkg != "routing" && from != 5 {
			return fmt.Sprintf("%s imports %s, which only routing may", pkg, imp)
		}
	}
	own, ours := strings.CutPrefix(imp, module+"/")
	if !ours {
		return ""
	}
	to, known := level(own)
	switch {
	case !known:
		return fmt.Sprintf("%s imports %s, which has no level", pkg, own)
	case to > from:
		return fmt.Sprintf("%s (level %d) imports %s (level %d): up", pkg, from, own, to)
	case to == from && from != 3 && from != 5:
		return fmt.Sprintf("%s imports %s, of its own level %d", pkg, own, to)
	}
	return ""
}

func TestImportsGoDown(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files, own := 0, 0
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "build"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go":
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files++
		pkg := path.Dir(filepath.ToSlash(rel))
		for _, spec := range parsed.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if imp == module+"/"+pkg { // an external test of the package itself
				continue
			}
			if strings.HasPrefix(imp, module+"/") {
				own++
			}
			if v := verdict(pkg, imp); v != "" {
				t.Errorf("%s: %s", rel, v)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 || own < 20 {
		t.Errorf("only %d files with %d imports of our own were looked at; is %s the module?", files, own, root)
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		pkg, imp string
		ok       bool
	}{
		{"replicate", "net/netip", true},
		{"replicate", module + "/path", false},
		{"path", module + "/replicate", false},
		{"path", module + "/internal/keys", false},
		{"rtps", module + "/replicate", false},
		{"routing", module + "/replicate", true},
		{"routing", module + "/tunnel", false},
		{"hello", module + "/routing", false},
		{"tunnel", module + "/hello", true},
		{"routing", "github.com/vishvananda/netlink/nl", true},
		{"resolve", module + "/routing", false},
		{"tunnel", module + "/path", true},
		{"tunnel", module + "/rtps", true},
		{"tunnel", module + "/routing", true},
		{"tunnel", module + "/internal/config", false},
		{"tunnel", "github.com/vishvananda/netlink", false},
		{"internal/daemon", module + "/internal/config", true},
		{"internal/daemon", module + "/cmd/fogplr", false},
		{"internal/daemon", "github.com/vishvananda/netns", false},
		{"internal/daemon", module + "/test/lab", false},
		{"cmd/fogplr", module + "/internal/daemon", true},
		{"cmd/fogplr", module + "/test/lab", false},
		{"cmd/fogplr", "github.com/vishvananda/netlink", false},
		{"test/e2e", module + "/test/lab", true},
		{"test/lab", "github.com/vishvananda/netlink", true},
		{"elsewhere", "fmt", false},
		{"cmd/other", "fmt", false},
		{"cmd/fogplr", module + "/elsewhere", false},
	} {
		if v := verdict(c.pkg, c.imp); (v == "") != c.ok {
			t.Errorf("%s imports %s: %q", c.pkg, c.imp, v)
		}
	}
}
