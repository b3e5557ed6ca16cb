package tables

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// empty is how an empty text is described.
const empty = "an empty text"

// Show describes a TOML value to a person.
func Show(v any) string {
	switch v := v.(type) {
	case string:
		if v == "" {
			return empty
		}
		return fmt.Sprintf("%.100q", v)
	case []any:
		if len(v) == 0 {
			return "an empty list"
		}
		return fmt.Sprintf("a list of %d", len(v))
	case map[string]any:
		return "a table"
	case float64:
		if v == math.Trunc(v) {
			return fmt.Sprintf("%.1f", v)
		}
	}
	return fmt.Sprint(v)
}

// ShowTime writes a time without the units that are zero.
func ShowTime(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// unquoted is Show for a value where a text was expected, which needs quotes.
func unquoted(v any) string {
	switch v.(type) {
	case int64, float64, bool:
		return Show(v) + " (without quotes)"
	}
	return Show(v)
}

// wrongType is Wrong where no text was expected, so that one has quotes too many.
func (t *Table) wrongType(key, expected string) {
	if _, quoted := t.values[key].(string); quoted {
		expected += " (without quotes)"
	}
	t.Wrong(key, expected)
}

// plain writes a number without exponent.
func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
