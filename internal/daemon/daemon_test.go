package daemon

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestLeftUndone(t *testing.T) {
	var log strings.Builder
	b := &base{opts: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	b.left(nil)
	if log.Len() > 0 {
		t.Errorf("nothing is left, and yet %s", &log)
	}
	b.left(errors.New("a rule stays"))
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "fogplr cleanup") {
		t.Error(log.String())
	}
}

// A refused network configuration is told once in the log, and in status while
// it lasts.
func TestJudge(t *testing.T) {
	var log strings.Builder
	b := &base{opts: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	for range 2 {
		if b.judge(errors.Join(errors.New("one"), errors.New("two"))) == nil {
			t.Error("not tried again")
		}
	}
	if n := strings.Count(log.String(), "one; two"); n != 1 {
		t.Errorf("said %d times: %s", n, &log)
	}
	if s := b.refused.Load(); s == nil || !strings.Contains(*s, "one; two") {
		t.Error("status does not tell")
	}
	if b.judge(nil) != nil || b.refused.Load() != nil {
		t.Error("still told")
	}
}
