package daemon

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/internal/config"
)

func TestRobotChanges(t *testing.T) {
	parse := func(text string) *config.Robot {
		cfg, err := config.ParseRobot("robot.toml", text)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	block := func(n int) string {
		return fmt.Sprintf("[[gateway]]\nname = 'g%d'\naddress = '10.77.0.%d'\npublic_key = '%s'\nendpoint = '198.51.100.%d:51820'\n",
			n, n, []string{"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=", "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="}[n%2], n)
	}
	const head = "name = 'r'\naddress = '10.77.0.200/16'\nprivate_key_file = 'k'\n"
	old := parse(head + block(10))
	for name, c := range map[string]struct {
		text string
		want []slog.Attr
	}{
		"nothing":             {"# about\n" + head + block(10), nil},
		"keys":                {"deadline = '90ms'\nlog_level = 'debug'\n" + head + block(10), []slog.Attr{slog.Any("deadline", 90*time.Millisecond), slog.Any("log_level", slog.LevelDebug)}},
		"a gateway came":      {head + block(11) + block(10), []slog.Attr{slog.String("gateways", "2; added g11")}},
		"a gateway went":      {head + block(11), []slog.Attr{slog.String("gateways", "1; added g11; removed g10")}},
		"a gateway moved":     {head + strings.Replace(block(10), "198.51", "203.0", 1), []slog.Attr{slog.String("gateways", "1; changed g10")}},
		"carriers, discovery": {head + block(10) + "[[carrier]]\ninterface = 'wlan0'\n", []slog.Attr{slog.String("carriers", `1; added [[carrier]] with interface = "wlan0"`)}},
		"discovery":           {head + block(10) + "[discovery]\ndeny = ['kind:wifi']\n", []slog.Attr{slog.String("discovery", "changed")}},
	} {
		if got := robotChanges(old, parse(c.text)); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestGatewayChanges(t *testing.T) {
	robots := func(from, to int) *config.Gateway {
		g := &config.Gateway{}
		for i := from; i < to; i++ {
			g.Robots = append(g.Robots, config.RobotPeer{Name: fmt.Sprint("r", i)})
		}
		return g
	}
	got := fmt.Sprint(gatewayChanges(robots(0, 3), robots(2, 14)))
	if want := "[robots=12; added r3, r4, r5, r6, r7, r8, r9, r10 and 3 more; removed r0, r1]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := gatewayChanges(robots(0, 3), robots(0, 3)); len(got) > 0 {
		t.Errorf("no change, and yet %v", got)
	}
}
