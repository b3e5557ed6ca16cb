package shell

import (
	"os/exec"
	"testing"

	"pgregory.net/rapid"
)

// A shell reads back what was quoted.
func TestQuote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching("[ -~\n\tÄ€'\"$`\\\\!*]*").Draw(t, "s")
		out, err := exec.Command("sh", "-c", "printf %s "+Quote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q is quoted as %s and read as %q, %v", s, Quote(s), out, err)
		}
	})
	for in, want := range map[string]string{
		"file:///run/x.xml": "file:///run/x.xml", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "ä": "'ä'",
	} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
}
