package tables

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// parse returns the top level of text.
func parse(t *testing.T, text string) *Table {
	t.Helper()
	top, err := Parse("x.toml", text, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// Every way to ask, and what it tells of a value that is wrong.
func TestReaders(t *testing.T) {
	text := func(t *Table) any { s, _ := t.Text("k", "a text"); return s }
	require := func(t *Table) any { s, _ := t.Require("k", "a text"); return s }
	list := func(t *Table) any { return t.List("k", "up to 2 texts", 2) }
	integer := func(t *Table) any { return t.Integer("k", 1, 9, 5) }
	integers := func(t *Table) any { return t.Integers("k", 1, 9, 2, 5) }
	number := func(t *Table) any { return t.Real("k", 0.5, 1e6, 7, " a second") }
	share := func(t *Table) any { return t.Share("k", 1) }
	truth := func(t *Table) any { return t.Bool("k") }
	span := func(t *Table) any { return t.Duration("k", 0, time.Hour, time.Second) }
	name := func(t *Table) any { s, ok := t.Name("k"); return fmt.Sprint(s, ok) }
	device := func(t *Table) any { s, ok := t.Interface("k"); return fmt.Sprint(s, ok) }
	oneOf := func(t *Table) any { s, ok := OneOf(t, "k", "a", "b"); return fmt.Sprint(s, ok) }
	choice := func(t *Table) any { return Choice(t, "k", "z", "a", "b") }
	all := func(t *Table) any { return len(t.Tables("k", 1, 2)) }
	sub := func(t *Table) any { return t.Sub("k", "a table") != nil }
	for _, c := range []struct {
		read    func(*Table) any
		text    string
		value   any    // nil when it does not matter
		problem string // of k in line 1, empty for none
	}{
		{text, `k = "s"`, "s", ``},
		{text, ``, "", ``},
		{text, `k = 5`, "", `found 5 (without quotes), expected a text`},
		{text, `k = 1979-05-27`, "", `found 1979-05-27, expected a text`},
		{require, ``, "", `found nothing, expected a text`},
		{require, `k = {}`, "", `found a table, expected a text`},
		{list, `k = ["a", "b"]`, []Item{{"a", 1}, {"b", 1}}, ``},
		{list, ``, []Item(nil), ``},
		{list, `k = "a"`, nil, `found "a", expected up to 2 texts`},
		{list, `k = ["a", "b", "c"]`, nil, `found a list of 3, expected up to 2 texts`},
		{list, `k = ["a", true]`, []Item{{"a", 1}}, `found true (without quotes), expected up to 2 texts`},
		{integer, `k = 9`, int64(9), ``},
		{integer, ``, int64(5), ``},
		{integer, `k = 10`, int64(5), `found 10, expected a whole number from 1 to 9`},
		{integer, `k = 1.0`, int64(5), `found 1.0, expected a whole number from 1 to 9`},
		{integer, `k = "1"`, int64(5), `found "1", expected a whole number from 1 to 9 (without quotes)`},
		{integers, `k = 9`, []int64{9}, ``},
		{integers, `k = [9, 1]`, []int64{9, 1}, ``},
		{integers, ``, []int64{5}, ``},
		{integers, `k = 0`, []int64{5}, `found 0, expected a whole number from 1 to 9`},
		{integers, `k = "1"`, []int64{5}, `found "1", expected a whole number from 1 to 9 (without quotes)`},
		{integers, `k = []`, []int64{5}, `found an empty list, expected a whole number from 1 to 9, or a list of 1 to 2 of them`},
		{integers, `k = [1, 2, 3]`, []int64{5}, `found a list of 3, expected a whole number from 1 to 9, or a list of 1 to 2 of them`},
		{integers, `k = [1, 10]`, []int64{5}, `found 10, expected a whole number from 1 to 9`},
		{integers, `k = [1, "2"]`, []int64{5}, `found "2", expected a whole number from 1 to 9`},
		{integers, `k = [3, 3]`, []int64{5}, `found 3 again, expected every number once`},
		{number, `k = 2`, 2.0, ``},
		{number, `k = 0.25`, 7.0, `found 0.25, expected a number from 0.5 to 1000000 a second`},
		{number, `k = nan`, 7.0, `found NaN, expected a number from 0.5 to 1000000 a second`},
		{number, `k = ""`, 7.0, `found an empty text, expected a number from 0.5 to 1000000 a second (without quotes)`},
		{share, ``, 1.0, ``},
		{share, `k = 2`, 1.0, `found 2, expected a number from 0 to 1, where 0.02 is 2 %`},
		{truth, `k = true`, true, ``},
		{truth, `k = "true"`, false, `found "true", expected true or false (without quotes)`},
		{span, `k = "1m30s"`, 90 * time.Second, ``},
		{span, `k = "61m"`, time.Second, `found "61m", expected a time from "0s" to "1h", such as "1.5s" or "40ms"`},
		{span, `k = "soon"`, time.Second, `found "soon", expected a time from "0s" to "1h", such as "1.5s" or "40ms"`},
		{name, `k = "a-b_c.9"`, "a-b_c.9true", ``},
		{name, `k = "a b"`, nil, `found "a b", expected ` + NameExpected},
		{name, `k = "` + strings.Repeat("a", MaxName+1) + `"`, nil, `found "` + strings.Repeat("a", MaxName+1) + `", expected ` + NameExpected},
		{device, `k = "wlan0"`, "wlan0true", ``},
		{device, `k = ".."`, "..false", `found "..", expected ` + InterfaceExpected},
		{device, `k = "a:b"`, nil, `found "a:b", expected ` + InterfaceExpected},
		{oneOf, `k = "b"`, "btrue", ``},
		{oneOf, ``, nil, `found nothing, expected one of "a", "b"`},
		{oneOf, `k = "c"`, "cfalse", `found "c", expected one of "a", "b"`},
		{choice, ``, "z", ``},
		{choice, `k = "c"`, "z", `found "c", expected one of "a", "b"`},
		{all, ``, 0, ``},
		{all, `k = [{}, {}]`, 2, ``},
		{all, `k = []`, 0, `found an empty list, expected tables [[k]], 1 to 2`},
		{all, `k = [{}, 5]`, 1, `found 5, expected a table [[k]]`},
		{sub, ``, false, ``},
		{sub, `k.x = 1`, true, ``},
		{sub, `k = 5`, false, `found 5, expected a table`},
	} {
		top := parse(t, c.text)
		value := c.read(top)
		top.Finish()
		want := ""
		if c.problem != "" {
			want = "x.toml:1: k: " + c.problem
		}
		got := ""
		if err := top.Err(); err != nil {
			got = err.Error()
		}
		if got != want || c.value != nil && fmt.Sprint(value) != fmt.Sprint(c.value) {
			t.Errorf("%s\n got %v, %s\nwant %v, %s", c.text, value, got, c.value, want)
		}
	}
}

// A problem names the line of the key, or of the table that lacks it, and whose
// table that is.
func TestPlaces(t *testing.T) {
	top := parse(t, `nam = "x"
"a.b" = 1
[[gate]]
size = 1
[[gate]]
[gate.up]
los = 1
[[gate]]
size = 3
sizes = 1
list = [
  "a",
  5,
]
`)
	top.Text("name", "a text")
	for i, g := range top.Tables("gate", 1, 3) {
		if i == 2 {
			g.Owner = `gate "third"`
		}
		g.Need("size", "a size")
		g.Integer("size", 1, 2, 0)
		g.List("list", "texts", 9)
		if up := g.Sub("up", "a table"); up != nil {
			up.Share("loss", 0)
			up.Need("delay", "a time")
			up.Finish()
		}
		g.Reject("sizes", "many", "one")
		g.Reject("size", "known", "nothing of it")
		g.Finish()
	}
	top.NeedTables("gate", "nothing of it")
	top.NeedTables("robot", "here the block")
	top.Finish()
	const want = `x.toml:1: nam: found an unknown key, expected name, perhaps; here one of name, gate
x.toml:2: a.b: found an unknown key, expected one of name, gate
x.toml:5: size of gate number 2: found nothing, expected a size
x.toml:6: up.delay of gate number 2: found nothing, expected a time
x.toml:7: up.los of gate number 2: found an unknown key, expected loss, perhaps; here one of loss
x.toml:9: size of gate "third": found 3, expected a whole number from 1 to 2
x.toml:10: sizes of gate "third": found many, expected one
x.toml:13: list of gate "third": found 5 (without quotes), expected texts
x.toml:15: robot: found no [[robot]], expected here the block`
	if err := top.Err(); err == nil || err.Error() != want || top.Problems() != 9 {
		t.Errorf("%d problems\n got %v\nwant %s", top.Problems(), err, want)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.toml")
	for text, want := range map[string]string{
		"k = 1":              "",
		"\xef\xbb\xbfk = 1":  "",
		"\xff\xfek\x00":      "x.toml: found a text in UTF-16, expected a text in UTF-8",
		"#2345678901":        "x.toml: found a larger file, expected at most 10 bytes",
		"\n\nk = ":           "x.toml:3: found a mistake in the TOML syntax (",
		"k = \xff":           "x.toml:1: found a mistake in the TOML syntax (",
		"k = 1\nk=2":         "x.toml:2: found a mistake in the TOML syntax (",
		"k = 1 # \xe9\xe9\n": "x.toml: found a larger file",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		top, err := Read(file, 10, "a file")
		switch {
		case want == "" && (err != nil || top.Integer("k", 0, 9, 0) != 1 || top.LineOf("k") != 1 || top.File() != file):
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, want))):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "none"): "/none: found no such file, expected a file",
		dir:                        ": found a file that cannot be read (",
	} {
		var problems *Error
		if _, err := Read(file, 10, "a file"); !errors.As(err, &problems) || !strings.HasPrefix(err.Error(), dir+want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}

func TestLocate(t *testing.T) {
	top, err := Parse("etc/x.toml", "", 1)
	if err != nil || top.Locate("key") != "etc/key" || top.Locate("/key") != "/key" {
		t.Errorf("%s, %v", top.Locate("key"), err)
	}
}

func TestJoin(t *testing.T) {
	if err := Join(); err != nil {
		t.Errorf("nothing is %v", err)
	}
	var many []Problem
	for i := range 3 * MaxProblems {
		many = append(many, Problem{File: "f", Line: 3*MaxProblems - i/2, Key: "k", Found: "a", Expected: "b"})
	}
	var got *Error
	if !errors.As(Join(many...), &got) || len(got.Problems) != MaxProblems {
		t.Fatalf("got %+v", got)
	}
	for i := 1; i < MaxProblems; i++ {
		if got.Problems[i].Line != got.Problems[i-1].Line+1 {
			t.Errorf("line %d comes after %d", got.Problems[i].Line, got.Problems[i-1].Line)
		}
	}
	if err := Join(Problem{File: "f", Found: "a", Expected: "b"}, Problem{File: "f", Line: 7, Key: "k", Found: "c", Expected: "d"}); err.Error() != "f: found a, expected b\nf:7: k: found c, expected d" {
		t.Errorf("got %v", err)
	}
}

func TestShowTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 40 * time.Millisecond: "40ms", 30 * time.Second: "30s", time.Minute: "1m",
		24 * time.Hour: "24h", 90 * time.Minute: "1h30m", time.Hour + 10*time.Second: "1h0m10s",
	} {
		if got := ShowTime(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

// ask asks t for keys of every kind, and so does it with the tables inside.
func ask(t *Table, depth int) {
	t.Name("name")
	t.Integer("mtu", 1, 9, 1)
	t.Integers("list", 1, 9, 3)
	t.Real("rate", 0, 1, 0, "")
	t.Duration("delay", 0, time.Hour, 0)
	t.List("list", "texts", 3)
	t.Reject("robot", "a stranger", t.Known())
	t.Finish()
	if depth == 0 {
		return
	}
	for _, key := range []string{"a", "b", "gateway"} {
		for _, g := range t.Tables(key, 0, 3) {
			ask(g, depth-1)
		}
		if s := t.Sub(key, "a table"); s != nil {
			ask(s, depth-1)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"name = \"x\"\nmtu = 5\n[[gateway]]\nname = 1\n[gateway.a]\nrate = 2\n[[gateway]]\ndelay = \"1s\"\n",
		"a.b.c = [{x = 1, y = [[]]}]\n[[gateway.x]]\n[gateway.x.y]\nz = 1979-05-27\n",
		"a = [\n1,\n{name = {}}]\nlist = [1.5, true,\n\"x\"]\n\"\" = 1\n'a.\"b\"[0]' = 2",
		"[[a]]\n[[a.b]]\n[[a.b]]\n[a.b.gateway]\nrobot = inf\n[[a]]\nb = [{}]\n",
		strings.Repeat("a.", 600) + "a = 1",
		"a = " + strings.Repeat("[", 900) + strings.Repeat("]", 900),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last := strings.Count(text, "\n") + 1
		top, err := Parse("x.toml", text, 1<<16)
		if err == nil {
			for path, line := range top.doc.lines {
				if line < 1 || line > last || path == "" {
					t.Fatalf("%q is at line %d of %d", path, line, last)
				}
			}
			for key := range top.values {
				if key != "" && len(key) < maxPath && top.doc.lines[childPath("", key)] == 0 {
					t.Fatalf("the line of %q is not known", key)
				}
			}
			ask(top, 3)
			err = top.Err()
		}
		if err == nil {
			return
		}
		var problems *Error
		if !errors.As(err, &problems) || len(problems.Problems) == 0 {
			t.Fatalf("error %v is no *Error", err)
		}
		for _, p := range problems.Problems {
			if p.Found == "" || p.Expected == "" || p.Line < 0 || p.Line > last {
				t.Fatalf("problem %+v of a file of %d lines", p, last)
			}
		}
	})
}
