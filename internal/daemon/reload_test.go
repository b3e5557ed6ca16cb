package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/keys"
)

func TestReload(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	const text = "name = 'west'\naddress = '10.77.0.11/16'\nprivate_key_file = 'node.key'\n"
	refuse := errors.New("the tunnel does not like it")
	for name, c := range map[string]struct {
		text    string
		key     bool // another one
		refuse  error
		level   slog.Level
		applied bool
		says    []string // in the error, none for success
		logs    string   // part of it
	}{
		"nothing":   {text: text, applied: true, logs: `level=INFO msg="The configuration was read again, and is in use." changes=none`},
		"a comment": {text: "# about\n\n" + text, applied: true, logs: "changes=none"},
		"the level": {text: "log_level = 'debug'\n" + text, level: slog.LevelDebug, applied: true, logs: "is in use.\" log_level=DEBUG"},
		"the port": {text: text + "listen_port = 4500\n", applied: true, says: []string{"in use but for the port", "end the daemon and start it again with `fogplr gateway --config /", "plr0 do not notice"},
			logs: `level=WARN msg="The configuration was read again, and is in use but for what takes a restart." restart="the port"`},
		"level and MTU":    {text: "log_level = 'warn'\n" + text + "mtu = 1400\n", level: slog.LevelWarn, applied: true, says: []string{"mtu"}, logs: "log_level=WARN restart=mtu"},
		"name and address": {text: strings.NewReplacer("west", "east", "0.11", "0.12").Replace(text), applied: true, says: []string{"name and address", "Programs that use plr0 must then be restarted, too"}},
		"the interface":    {text: text + "interface = 'plr5'\n", applied: true, says: []string{"interface", "Programs that use plr0 must then be restarted, too"}},
		"the key":          {text: text, key: true, applied: true, says: []string{"the private key"}},
		"a mistake":        {text: text + "log_level = 'debug'\nmtu = 1\n", says: []string{"goes on", "gateway.toml:5"}, logs: "gateway.toml:5"},
		"no key":           {text: strings.Replace(text, "node.key", "other.key", 1), says: []string{"goes on", "gateway.toml:3"}},
		"refused": {text: "log_level = 'debug'\n" + text, refuse: refuse, applied: true, says: []string{"goes on", "does not like it"},
			logs: `level=WARN msg="The configuration was read again, and is refused." reason="the daemon goes on with the configuration that it has, since the new one cannot be used: the tunnel does not like it"`},
	} {
		folder := t.TempDir()
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		key := keys.Generate()
		write("node.key", key.Base64())
		write("gateway.toml", text)
		file := filepath.Join(folder, "gateway.toml")
		started, err := config.LoadGateway(file)
		if err != nil {
			t.Fatal(err)
		}
		var applied *config.Gateway
		var log strings.Builder
		l := &live[config.Gateway]{
			file: file, role: "gateway", level: new(slog.LevelVar), started: started, current: started, key: key,
			changes: gatewayChanges, log: slog.New(slog.NewTextHandler(&log, nil)),
			load: config.LoadGateway, node: func(g *config.Gateway) *config.Node { return &g.Node },
			more: func(old, fresh *config.Gateway) []string {
				if !slices.Equal(old.ListenPorts, fresh.ListenPorts) {
					return []string{"the port"}
				}
				return nil
			},
			apply: func(g *config.Gateway) error { applied = g; return c.refuse },
		}
		write("gateway.toml", c.text)
		if c.key {
			write("node.key", keys.Generate().Base64())
		}
		err = l.reload()
		if (err != nil) != (len(c.says) > 0) || (applied != nil) != c.applied || l.level.Level() != c.level {
			t.Errorf("%s: error %v, applied %v, level %v", name, err, applied != nil, l.level.Level())
			continue
		}
		if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), c.logs) {
			t.Errorf("%s: logged %q, want %q", name, &log, c.logs)
		}
		if err == nil { // what has been taken over is no change any more
			log.Reset()
			if err := l.reload(); err != nil || !strings.Contains(log.String(), "changes=none") {
				t.Errorf("%s, again: %v, logged %q", name, err, &log)
			}
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not say %q", name, err, part)
			}
		}
	}
}
