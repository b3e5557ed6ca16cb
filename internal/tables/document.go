package tables

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// document is what the tables of a file have in common.
type document struct {
	file     string
	lines    lineIndex
	end      int // the line behind the last one
	problems []Problem
}

// Read parses a file of at most limit bytes and returns its top level. expected
// says what should be there when there is no file. The error is an *Error.
func Read(file string, limit int, expected string) (*Table, error) {
	text, err := readLimited(file, limit+1)
	p := Problem{File: file, Expected: "a readable file"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Found, p.Expected = "no such file", expected
	case errors.Is(err, fs.ErrPermission):
		p.Found = "a file that this user may not read"
	case err != nil:
		p.Found = fmt.Sprintf("a file that cannot be read (%v)", err)
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		p.Found, p.Expected = "a text in UTF-16", "a text in UTF-8: save it so in your editor"
	default:
		return Parse(file, text, limit)
	}
	return nil, Join(p)
}

func readLimited(file string, limit int) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)))
	return string(b), err
}

// Parse is Read for a text, which need not be in file yet.
func Parse(file, text string, limit int) (*Table, error) {
	p := Problem{File: file}
	if len(text) > limit {
		p.Found, p.Expected = "a larger file", fmt.Sprintf("at most %d bytes, since nothing larger than that is read", limit)
		return nil, Join(p)
	}
	b := []byte(strings.TrimPrefix(text, "\xef\xbb\xbf")) // the mark that some editors put at the start of UTF-8
	var root map[string]any
	if err := toml.Unmarshal(b, &root); err != nil {
		if decode := (*toml.DecodeError)(nil); errors.As(err, &decode) {
			p.Line, _ = decode.Position()
		}
		p.Found = "a mistake in the TOML syntax (" + strings.TrimPrefix(err.Error(), "toml: ") + ")"
		p.Expected = "key = value, [[table]] or # comment"
		return nil, Join(p)
	}
	d := &document{file: file, lines: indexLines(b), end: strings.Count(text, "\n") + 1}
	return &Table{Line: 1, doc: d, values: root}, nil
}

func (d *document) report(line int, key, found, expected string) {
	d.problems = append(d.problems, Problem{File: d.file, Line: line, Key: key, Found: found, Expected: expected, Blank: found == empty})
}
