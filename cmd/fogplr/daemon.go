package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/daemon"
)

type robotCmd struct {
	Config fileName `default:"/etc/fogplr/robot.toml" placeholder:"FILE" help:"Configuration file (${default})."`
}

func (c robotCmd) Run(a *app) error { return a.daemon(string(c.Config), daemon.Robot) }

type gatewayCmd struct {
	Config fileName `default:"/etc/fogplr/gateway.toml" placeholder:"FILE" help:"Configuration file (${default})."`
}

func (c gatewayCmd) Run(a *app) error { return a.daemon(string(c.Config), daemon.Gateway) }

// daemon runs one until SIGINT or SIGTERM; a second signal ends the program at
// once. A log whose reader is gone, as behind `| head`, does not end it.
func (a *app) daemon(file string, run func(context.Context, daemon.Options) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	signal.Ignore(unix.SIGPIPE)
	context.AfterFunc(ctx, stop)
	level := new(slog.LevelVar)
	return run(ctx, daemon.Options{ConfigFile: file, Version: version, Log: a.logger(level), Level: level})
}

// logger writes to standard error; under systemd without the time, which the
// journal has.
func (a *app) logger(level slog.Leveler) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if os.Getenv("JOURNAL_STREAM") != "" {
		o.ReplaceAttr = func(groups []string, attr slog.Attr) slog.Attr {
			if len(groups) == 0 && attr.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return attr
		}
	}
	if a.json {
		return slog.New(slog.NewJSONHandler(a.stderr, o))
	}
	return slog.New(slog.NewTextHandler(a.stderr, o))
}
