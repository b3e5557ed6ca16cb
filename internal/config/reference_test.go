package config

import (
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fogplr/fogplr/internal/keys"
)

// The keys that are known, by table, told by what unknown ones are refused with.
func knownKeys(t *testing.T, parse func(string) error, text string) map[string][]string {
	t.Helper()
	var problems *Error
	if err := parse(text); !errors.As(err, &problems) {
		t.Fatalf("error %v", err)
	}
	known := map[string][]string{}
	for _, p := range problems.Problems {
		if _, list, found := strings.Cut(p.Expected, "one of "); found && strings.Contains(p.Key, "unknown") {
			table, _, _ := strings.Cut(strings.TrimPrefix(p.Key, "unknown of "), " ")
			table = strings.TrimSuffix(strings.TrimSuffix(table, "unknown"), ".")
			known[table] = strings.Split(list, ", ")
		}
	}
	return known
}

var (
	header  = regexp.MustCompile(`^\[+([a-z]+)\]+`)
	setting = regexp.MustCompile(`^#?([a-z_]+) = `)
)

// writtenKeys returns the keys of a text, by table, with those in comments, and the
// tables as keys of the top level.
func writtenKeys(text string) map[string][]string {
	written, table := map[string][]string{}, ""
	add := func(table, key string) {
		if !slices.Contains(written[table], key) {
			written[table] = append(written[table], key)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if m := header.FindStringSubmatch(strings.TrimPrefix(line, "#")); m != nil {
			table = m[1]
			add("", table)
		} else if m := setting.FindStringSubmatch(line); m != nil {
			add(table, m[1])
		}
	}
	return written
}

// readme returns an example of the README, from the comment with its file's name
// on.
func readme(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(text), "\n    # "+file+"\n")
	if !found {
		t.Fatalf("the README has no %s", file)
	}
	var out []string
	for _, line := range strings.Split(example, "\n") {
		if line != "" && !strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "    # ") {
			break
		}
		out = append(out, strings.TrimPrefix(line, "    "))
	}
	return strings.Join(out, "\n")
}

// uncomment makes settings of those that stand in comments, but not of skip.
func uncomment(text string, skip ...string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		bare := strings.TrimPrefix(line, "#")
		key, _, _ := strings.Cut(bare, " ")
		if !slices.Contains(skip, key) && (header.MatchString(bare) || setting.MatchString(bare)) {
			lines[i] = bare
		}
	}
	return strings.Join(lines, "\n")
}

// Every key is in the README and in what init writes, and every key there is one:
// all of them load, with the values that are given.
func TestReference(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	parseRobot := func(s string) error { _, err := ParseRobot("robot.toml", s); return err }
	parseGateway := func(s string) error { _, err := ParseGateway("gateway.toml", s); return err }
	key := keys.Generate().PublicKey().String()
	fill := strings.NewReplacer(`["...", "..."]`, `["`+key+`"]`, `"..."`, `"`+key+`"`)
	robot := RobotFile{Name: "stretch", Addresses: []string{"10.77.0.2/16"}, PrivateKeyFile: "node.key"}
	named := robot
	named.Carriers = []string{"wlan0"}
	gateway := GatewayFile{Name: "west", Addresses: []string{"10.77.0.11/16"}, PrivateKeyFile: "node.key", ListenPort: 51820}.Render()
	robotKeys := knownKeys(t, parseRobot, "unknown = 1\ndiscovery = {unknown = 1}\ncarrier = [{unknown = 1}]\ngateway = [{unknown = 1}]\n")
	gatewayKeys := knownKeys(t, parseGateway, "unknown = 1\nrobot = [{unknown = 1}]\n")
	tables := slices.Sorted(maps.Keys(robotKeys))
	if !slices.Equal(tables, []string{"", "carrier", "discovery", "gateway"}) || len(robotKeys[""]) < 10 || len(gatewayKeys["robot"]) < 3 {
		t.Fatalf("known keys %v and %v", robotKeys, gatewayKeys)
	}
	for name, c := range map[string]struct {
		text  string
		known map[string][]string
		parse func(string) error
	}{
		"README's robot.toml":   {readme(t, "robot.toml"), robotKeys, parseRobot},
		"README's gateway.toml": {readme(t, "gateway.toml"), gatewayKeys, parseGateway},
		"init's robot.toml":     {fill.Replace(robot.Render()), robotKeys, parseRobot},
		"init's gateway.toml":   {fill.Replace(gateway), gatewayKeys, parseGateway},
	} {
		written := writtenKeys(c.text)
		for table, list := range c.known {
			for _, key := range list {
				if !slices.Contains(written[table], key) {
					t.Errorf("%s does not have %s of [%s]", name, key, table)
				}
			}
		}
		for table, list := range written {
			for _, key := range list {
				if !slices.Contains(c.known[table], key) {
					t.Errorf("%s has %s of [%s], which is no key", name, key, table)
				}
			}
		}
		if err := c.parse(uncomment(c.text, "allow")); err != nil {
			t.Errorf("%s does not load:\n%v", name, err)
		}
	}
	for _, text := range []string{
		uncomment(fill.Replace(robot.Render()), "[[carrier]]", "interface", "mac", "driver", "bus", "kind", "label", "cost", "monthly_cap", "dns"),
		uncomment(fill.Replace(named.Render()), "allow"),
	} {
		if err := parseRobot(text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}
