package hello

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestNoWallClock holds that the package asks for no time itself and reads from
// the times that it is given nothing but their distances.
func TestNoWallClock(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	may := map[string]bool{"Time": true, "Duration": true, "Millisecond": true, "Second": true}
	seen := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := s.X.(*ast.Ident)
			if x != nil && x.Name == "time" {
				seen++
			}
			if x != nil && x.Name == "time" && !may[s.Sel.Name] || strings.HasPrefix(s.Sel.Name, "Unix") {
				t.Errorf("%s uses %s", f.Name(), s.Sel.Name)
			}
			return true
		})
	}
	if seen < 20 {
		t.Errorf("only %d uses of package time were looked at", seen)
	}
}
