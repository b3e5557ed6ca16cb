package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/internal/config"
)

func TestReload(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	const text = "name = 'west'\naddress = '10.77.0.11/16'\nprivate_key_file = 'node.key'\n"
	for name, c := range map[string]struct {
		text    string
		level   slog.Level
		restart bool
		wrong   bool
	}{
		"nothing":       {text, slog.LevelInfo, false, false},
		"a comment":     {"# about\n\n" + text, slog.LevelInfo, false, false},
		"the level":     {"log_level = 'debug'\n" + text, slog.LevelDebug, false, false},
		"the port":      {text + "listen_port = 4500\n", slog.LevelInfo, true, false},
		"level and MTU": {"log_level = 'warn'\n" + text + "mtu = 1400\n", slog.LevelWarn, true, false},
		"a mistake":     {text + "log_level = 'debug'\nmtu = 1\n", slog.LevelInfo, false, true},
	} {
		file := filepath.Join(t.TempDir(), "gateway.toml")
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(text)
		old, err := config.LoadGateway(file)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{ConfigFile: file, Level: new(slog.LevelVar)}
		write(c.text)
		err = reloader(o, old, config.LoadGateway, func(g *config.Gateway) *config.Node { return &g.Node })()
		if errors.Is(err, errRestart) != c.restart || (err != nil) != (c.restart || c.wrong) || o.Level.Level() != c.level {
			t.Errorf("%s: error %v, level %v", name, err, o.Level.Level())
		}
		if c.restart && !strings.Contains(err.Error(), "systemctl restart fogplr-gateway") || c.wrong && !strings.Contains(err.Error(), file+":") {
			t.Errorf("%s: %v", name, err)
		}
		if old.LogLevel != slog.LevelInfo {
			t.Errorf("%s: the configuration at start was changed", name)
		}
	}
}
