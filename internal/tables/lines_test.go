package tables

import (
	"maps"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	got := indexLines([]byte(`name = "x"
list = [
  "a", # one
  "b"]
"a.b" = 1
up.loss = 1
up.delay = 2
[[gate]]
size = 1
burst = { bad = 1, good = [2] }
[[gate]]
[gate.up]
loss = 1
[[gate.key]]
[gate.key.x.y]
[[gate.key]]
k = [{a = 1},
  {a = 2}]
`))
	want := lineIndex{
		"name": 1, "list": 2, "list[0]": 3, "list[1]": 4, `"a.b"`: 5, "up": 6, "up.loss": 6, "up.delay": 7,
		"gate": 8, "gate[0]": 8, "gate[0].size": 9,
		"gate[0].burst": 10, "gate[0].burst.bad": 10, "gate[0].burst.good": 10, "gate[0].burst.good[0]": 10,
		"gate[1]": 11, "gate[1].up": 12, "gate[1].up.loss": 13, "gate[1].key": 14, "gate[1].key[0]": 14,
		"gate[1].key[0].x": 15, "gate[1].key[0].x.y": 15, "gate[1].key[1]": 16,
		"gate[1].key[1].k": 17, "gate[1].key[1].k[0]": 17, "gate[1].key[1].k[0].a": 17,
		"gate[1].key[1].k[1]": 18, "gate[1].key[1].k[1].a": 18,
	}
	if !maps.Equal(got, want) {
		for path, line := range want {
			if got[path] != line {
				t.Errorf("%s is at line %d, not at %d", path, line, got[path])
			}
			delete(got, path)
		}
		t.Errorf("too many: %v", got)
	}
}

// A deep path takes no memory for every part of it.
func TestDeepLines(t *testing.T) {
	for what, text := range map[string]string{
		"key":    strings.Repeat("a.", 1<<16) + "a = 1",
		"header": "[" + strings.Repeat("a.", 1<<16) + "a]\nb = 1",
		"lists":  "a = " + strings.Repeat("[", 9000) + "1" + strings.Repeat("]", 9000),
		"tables": "a = " + strings.Repeat("{a = ", 9000) + "1" + strings.Repeat("}", 9000),
	} {
		size := 0
		for path := range indexLines([]byte(text)) {
			size += len(path)
		}
		if size > maxPath*maxPath {
			t.Errorf("%s: the paths take %d bytes", what, size)
		}
	}
}
