package scenario

import (
	"path/filepath"
	"testing"
)

// examples is where the scenarios are that come with the laboratory.
const examples = "../lab/scenarios"

func TestExamplesLoad(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(examples, "*.toml"))
	if err != nil || len(files) < 8 {
		t.Fatalf("found %q, %v", files, err)
	}
	for _, file := range files {
		if _, err := Load(file); err != nil {
			t.Errorf("%v", err)
		}
	}
}
