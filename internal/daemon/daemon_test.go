package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/routing"
)

// What the unit's own clean-up puts back next is no warning.
func TestLeftUndone(t *testing.T) {
	strict := fmt.Errorf("%w: read-only", routing.ErrRPFilter)
	for _, c := range []struct {
		err    error
		socket string
		want   string
	}{
		{strict, "/run/systemd/notify", "level=INFO"},
		{strict, "", "level=WARN"},
		{errors.New("a rule stays"), "/run/systemd/notify", "level=WARN"},
	} {
		t.Setenv("NOTIFY_SOCKET", c.socket)
		var log strings.Builder
		b := &base{opts: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
		b.left(nil)
		if log.Len() > 0 {
			t.Errorf("nothing is left, and yet %s", &log)
		}
		b.left(c.err)
		if !strings.Contains(log.String(), c.want) || !strings.Contains(log.String(), "fogplr cleanup") {
			t.Errorf("%v under %q: %s", c.err, c.socket, &log)
		}
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
