package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/internal/config"
)

// What a dying process has is waited for, nothing else, and not for ever.
func TestOutlive(t *testing.T) {
	busy, other := errors.New("busy"), errors.New("another")
	for name, c := range map[string]struct {
		answers []error // the last one again and again
		want    error
		tries   int // 0: any number
		limit   time.Duration
		ends    int // the try in which the context ends
	}{
		"free":    {[]error{nil}, nil, 1, time.Minute, 0},
		"dying":   {[]error{busy, fmt.Errorf("so: %w", busy), nil}, nil, 3, time.Minute, 0},
		"refused": {[]error{busy, other}, other, 2, time.Minute, 0},
		"alive":   {[]error{busy}, busy, 0, diesEvery, 0},
		"stopped": {[]error{busy}, busy, 2, time.Minute, 2},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		tries, waits := 0, 0
		got, err := outlive(ctx, c.limit, busy, func(error) { waits++ }, func() (int, error) {
			if tries++; tries == c.ends {
				cancel()
			}
			return tries, c.answers[min(tries, len(c.answers))-1]
		})
		if err != c.want || got != tries || c.tries > 0 && tries != c.tries || waits != min(tries-1, 1) {
			t.Errorf("%s: %d after %d tries, %v; said %d times that it waits", name, got, tries, err, waits)
		}
	}
}

func TestLeftUndone(t *testing.T) {
	var log strings.Builder
	b := &base{cfg: &config.Node{}, opts: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
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
