package scenario

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/tables"
)

// A good file; each case below spoils one line of it.
var good = []string{
	`name = "good"`,
	`duration = "20s"`,
	`[[carrier]]`, // line 3
	`interface = "cell-a"`,
	`nat = "symmetric"`,
	`delay = "20ms"`,
	`[carrier.up]`, // line 7
	`loss = 0.1`,
	`[[carrier]]`, // line 9
	`interface = "cell-b"`,
	`[[gateway]]`, // line 11
	`name = "west"`,
	`[[gateway]]`, // line 13
	`name = "east"`,
	`[[fault]]`, // line 15
	`at = "5s"`,
	`do = "black-hole"`,
	`carrier = "cell-a"`,
	`[[fault]]`, // line 19
	`at = "6s"`,
	`do = "gateway-kill"`,
	`gateway = "west"`,
	`[[workload]]`, // line 23
	`type = "rpc"`,
	`[[workload]]`, // line 25
	`type = "iperf3"`,
	`gateway = "east"`,
}

type problem struct {
	line int    // which line to replace
	with string // in its place
	at   int    // where the problem is reported, when not at line
	want string // how the message goes on behind the line
}

func (p *problem) text() string {
	lines := slices.Clone(good)
	lines[p.line-1] = p.with
	return strings.Join(lines, "\n") + "\n"
}

const traceProblem = `trace of carrier "cell-a": found `

var problems = []problem{
	// The top.
	{1, `name = ""`, 0, `name: found an empty text, expected a name of letters`},
	{1, `name = "two words"`, 0, `name: found "two words"`},
	{1, `name = 5`, 0, `name: found 5 (without quotes)`},
	{1, `name = "a`, 0, `found a mistake in the TOML syntax`},
	{1, "name = \"a\"\nname = \"b\"", 2, `found a mistake in the TOML syntax`},
	{1, `seed = -1`, 0, `seed: found -1, expected a whole number from 0`},
	{1, `seed = "1"`, 0, `seed: found "1", expected a whole number from 0 to 9223372036854775807 (without quotes)`},
	{1, `nam = "x"`, 0, `nam: found an unknown key, expected name, perhaps; here one of name, seed, duration`},
	{1, `carriers = 1`, 0, `carriers: found an unknown key, expected carrier, perhaps`},
	{1, `zzz = 1`, 0, `zzz: found an unknown key, expected one of name`},
	{1, `"a.b" = 1`, 0, `a.b: found an unknown key`},
	{1, `a.b = 1`, 0, `a: found an unknown key`},
	{2, `duration = 20`, 0, `duration: found 20 (without quotes), expected a time from "100ms" to "24h", such as`},
	{2, `duration = "20"`, 0, `duration: found "20"`},
	{2, `duration = "25h"`, 0, `duration: found "25h"`},
	{2, `duration = "-5s"`, 0, `duration: found "-5s"`},
	{2, `duration = 2026-01-01`, 0, `duration: found 2026-01-01`},
	{2, `robot_config = "prot = 5"`, 0, `robot_config: found in its line 1 what fogplr does not take (prot: an unknown key`},
	{2, "robot_config = \"\"\"\nmtu = 1280\nmtu = 5\n\"\"\"", 0, `robot_config: found in its line 2 what`},
	{2, `robot_config = "log_level = 'info'"`, 0, `robot_config: found in its line 1 what`},
	{2, `robot_config = "["`, 0, `robot_config: found in its line 1 what`},
	{2, `robot_config = ["mtu = 5"]`, 0, `robot_config: found a list of 1`},

	// Carriers.
	{4, ``, 3, `interface of carrier number 1: found nothing, expected the name of a network interface`},
	{4, `interface = ""`, 0, `interface of carrier number 1: found an empty text`},
	{4, `interface = "sixteen-letters-"`, 0, `interface of carrier number 1: found "sixteen-letters-", expected the name of a network interface, at most 15`},
	{4, `interface = "a/b"`, 0, `interface of carrier number 1: found "a/b"`},
	{4, `interface = "lo"`, 0, `interface of carrier number 1: found "lo", expected a name that the kernel does not use`},
	{4, `interface = "plr0"`, 0, `interface of carrier number 1: found "plr0", expected the name of an uplink`},
	{4, `interface = 7`, 0, `interface of carrier number 1: found 7 (without quotes)`},
	{10, `interface = "cell-a"`, 0, `interface of carrier number 2: found "cell-a", as in the table of line 3, expected an interface of its own`},
	{6, `seed = 2`, 0, `seed of carrier "cell-a": found an unknown key, expected this key at the top of the file, before the first [table]; here one of interface`},
	{6, `dely = "20ms"`, 0, `dely of carrier "cell-a": found an unknown key, expected delay, perhaps; here one of interface, kind`},
	{6, `rate-mbit = 5`, 0, `rate-mbit of carrier "cell-a": found an unknown key, expected rate_mbit, perhaps`},
	{6, `Loss = 0.5`, 0, `Loss of carrier "cell-a": found an unknown key, expected loss, perhaps`},
	{6, `kind = "modem"`, 0, `kind of carrier "cell-a": found "modem", expected one of "ethernet", "raw-ip"`},
	{5, `nat = "cone"`, 0, `nat of carrier "cell-a": found "cone", expected one of "full-cone", "port-restricted", "symmetric"`},
	{5, `nat_idle = "5s"`, 0, `nat_idle of carrier "cell-a": found "5s", expected nat beside it`},
	{6, `nat_idle = "1500ms"`, 0, `nat_idle of carrier "cell-a": found "1500ms", expected whole seconds`},
	{6, `nat_idle = "0s"`, 0, `nat_idle of carrier "cell-a": found "0s", expected a time from "1s" to "24h"`},
	{6, `interface_mtu = 67`, 0, `interface_mtu of carrier "cell-a": found 67, expected a whole number from 68 to 65521`},

	// Links.
	{6, `delay = 20`, 0, `delay of carrier "cell-a": found 20 (without quotes), expected a time from "0s" to "1m"`},
	{6, `delay = "61s"`, 0, `delay of carrier "cell-a": found "61s"`},
	{6, `delay = "-1ms"`, 0, `delay of carrier "cell-a": found "-1ms"`},
	{6, `jitter = "much"`, 0, `jitter of carrier "cell-a": found "much"`},
	{6, `distribution = "normal"`, 0, `distribution of carrier "cell-a": found "normal", expected jitter beside it`},
	{6, "jitter = \"1ms\"\ndistribution = \"gauss\"", 7, `distribution of carrier "cell-a": found "gauss", expected one of "uniform", "normal"`},
	{6, `loss = 2`, 0, `loss of carrier "cell-a": found 2, expected a number from 0 to 1, where 0.02 is 2 %`},
	{6, "up.loss = 1\n", 8, `found a mistake in the TOML syntax`},
	{8, `loss = 1.5`, 0, `up.loss of carrier "cell-a": found 1.5`},
	{8, `loss = nan`, 0, `up.loss of carrier "cell-a": found NaN`},
	{8, `loss = "0.1"`, 0, `up.loss of carrier "cell-a": found "0.1", expected a number from 0 to 1, where 0.02 is 2 % (without quotes)`},
	{8, `nat = "symmetric"`, 0, `up.nat of carrier "cell-a": found an unknown key, expected one of delay, jitter`},
	{8, `los = 0.1`, 0, `up.los of carrier "cell-a": found an unknown key, expected loss, perhaps`},
	{7, `down = 5`, 0, `down of carrier "cell-a": found 5, expected a table with the keys of one direction`},
	{6, `burst = 0.5`, 0, `burst of carrier "cell-a": found 0.5, expected a table, {`},
	{6, `burst = {to_bad = 0.1}`, 0, `burst.to_good of carrier "cell-a": found nothing, expected the probability`},
	{6, `burst = {to_bad = 0.1, to_good = 7}`, 0, `burst.to_good of carrier "cell-a": found 7`},
	{6, `burst = {to_bad = 0.1, to_good = 0.5, loss_god = 0}`, 0, `burst.loss_god of carrier "cell-a": found an unknown key, expected loss_good, perhaps`},
	{8, "[carrier.up.burst]\nto_bad = 0.1\nto_good = true", 10, `up.burst.to_good of carrier "cell-a": found true`},
	{6, `rate_mbit = -1`, 0, `rate_mbit of carrier "cell-a": found -1, expected a number from 0 to 100000, where 0 means no limit`},
	{6, `rate_mbit = inf`, 0, `rate_mbit of carrier "cell-a": found +Inf`},
	{6, `queue = "10ms"`, 0, `queue of carrier "cell-a": found "10ms", expected rate_mbit or capacity beside it, without which it has no effect`},
	{6, "rate_mbit = 1\nqueue = \"0s\"", 7, `queue of carrier "cell-a": found "0s", expected a time from "1µs" to "1m"`},
	{8, `queue = "10ms"`, 0, `up.queue of carrier "cell-a": found "10ms", expected rate_mbit or capacity beside it`},
	{6, `mtu = 0`, 0, `mtu of carrier "cell-a": found 0, expected a whole number from 68 to 65535`},
	{6, `big = 500`, 0, `big of carrier "cell-a": found 500, expected big_loss beside it`},
	{6, `big_loss = 0.5`, 0, `big_loss of carrier "cell-a": found 0.5, expected big beside it`},
	{6, `black_hole = "yes"`, 0, `black_hole of carrier "cell-a": found "yes", expected true or false (without quotes)`},
	{6, `duplicate = 1.1`, 0, `duplicate of carrier "cell-a": found 1.1`},
	{6, `reorder_delay = "1ms"`, 0, `reorder_delay of carrier "cell-a": found "1ms", expected reorder beside it`},
	{6, `capacity = ""`, 0, `capacity of carrier "cell-a": found an empty text, expected a file of times`},
	{6, `capacity = "none"`, 0, `capacity of carrier "cell-a": found "none", which cannot be replayed (stat DIR/none: no such file`},
	{6, `capacity = "wrong.times"`, 0, `capacity of carrier "cell-a": found "wrong.times", which cannot be replayed (DIR/wrong.times: line 2: "soon"`},
	{6, "capacity = \"times\"\nrate_mbit = 5", 6, `capacity of carrier "cell-a": found "times", expected only one of rate_mbit and capacity`},
	{8, "rate_mbit = 5\n[carrier.down]\nrate_mbit = 3\ncapacity = \"times\"", 10, `down.rate_mbit of carrier "cell-a": found 3, expected only one of`},

	// Traces.
	{6, `trace = ""`, 0, traceProblem + `an empty text, which cannot be replayed (it has not two parts`},
	{6, `trace = "drive.csv"`, 0, traceProblem + `"drive.csv", which cannot be replayed (it has not two parts`},
	{6, `trace = "drive.csv:"`, 0, traceProblem + `"drive.csv:", which`},
	{6, `trace = "none.csv:a"`, 0, traceProblem + `"none.csv:a", which cannot be replayed (stat DIR/none.csv: no such file`},
	{6, `trace = "drive.csv:c"`, 0, traceProblem + `"drive.csv:c", which cannot be replayed (DIR/drive.csv: line 1: there is no column "c"; the columns are a, b)`},
	{6, `trace = "wrong.csv:a"`, 0, traceProblem + `"wrong.csv:a", which cannot be replayed (DIR/wrong.csv: line 3: "fast"`},
	{6, `trace = ".:a"`, 0, traceProblem + `".:a", which cannot be replayed (DIR is not an ordinary file)`},
	{6, `trace = "builtin:sailing:1"`, 0, traceProblem + `"builtin:sailing:1", which cannot be replayed (there is no such built-in trace), expected FILE:COLUMN`},
	{6, `trace = "builtin:driving"`, 0, traceProblem + `"builtin:driving", which`},
	{6, `trace = "builtin:driving:5"`, 0, traceProblem + `"builtin:driving:5", which cannot be replayed (line 1: there is no column "5"; the columns are 1, 2, 3, 4)`},
	{6, `trace = "builtin:indoor:3"`, 0, traceProblem + `"builtin:indoor:3", which`},
	{8, `trace = "wrong.csv:a"`, 0, `up.trace of carrier "cell-a": found "wrong.csv:a"`},
	{6, `trace_row = "1s"`, 0, `trace_row of carrier "cell-a": found "1s", expected trace beside it`},
	{6, `trace_first = 1`, 0, `trace_first of carrier "cell-a": found 1, expected trace beside it`},
	{6, "trace = \"drive.csv:a\"\ntrace_row = \"0s\"", 7, `trace_row of carrier "cell-a": found "0s", expected a time from "1ms" to "1h"`},
	{6, "trace = \"drive.csv:a\"\ntrace_first = 2", 7, `trace_first of carrier "cell-a": found 2, expected a row from 0 to 1, since DIR/drive.csv has no more`},
	{6, "trace = \"drive.csv:a\"\n[carrier.down]\ntrace_first = 2", 8, `down.trace_first of carrier "cell-a": found 2`},
	{6, "trace = \"drive.csv:a\"\ntrace_first = -1", 7, `trace_first of carrier "cell-a": found -1, expected a whole number from 0`},

	// Gateways.
	{14, ``, 13, `name of gateway number 2: found nothing, expected a name of letters`},
	{14, `name = ""`, 0, `name of gateway number 2: found an empty text`},
	{14, `name = "thirteen-long"`, 0, `name of gateway number 2: found "thirteen-long", expected a name of letters, digits, '-' and '_', at most 12`},
	{14, `name = "a.b"`, 0, `name of gateway number 2: found "a.b"`},
	{14, `name = "-a"`, 0, `name of gateway number 2: found "-a"`},
	{14, `name = "robot"`, 0, `name of gateway number 2: found "robot", expected a name that the laboratory does not use itself`},
	{14, `name = "nat-a"`, 0, `name of gateway number 2: found "nat-a"`},
	{13, "[[gateway]]\nname = \"west\"\n[[gateway]]", 14, `name of gateway number 2: found "west", as in the table of line 11, expected a name of its own`},
	{12, "name = \"west\"\npause_every = \"1s\"", 11, `pause_for of gateway "west": found nothing, expected a time, since there is pause_every`},
	{12, "name = \"west\"\npause_for = \"1s\"", 11, `pause_every of gateway "west": found nothing, expected a time, since there is pause_for`},
	{12, "name = \"west\"\npause_for = \"0s\"\npause_every = \"1s\"", 13, `pause_for of gateway "west": found "0s"`},
	{12, "name = \"west\"\ndelay = \"1s\"", 13, `delay of gateway "west": found an unknown key, expected one of name, pause_every, pause_for`},

	// Faults.
	{16, ``, 15, `at of fault number 1: found nothing, expected a time after the start`},
	{16, `at = 5`, 0, `at of fault number 1: found 5 (without quotes)`},
	{16, `at = "20s"`, 0, `at of fault number 1: found "20s", expected a time before the end, which is at "20s"`},
	{16, `at = "-1s"`, 0, `at of fault number 1: found "-1s"`},
	{17, ``, 15, `do of fault number 1: found nothing, expected one of "black-hole", "link-down"`},
	{17, `do = "blackhole"`, 0, `do of fault number 1: found "blackhole", expected one of "black-hole", "link-down"`},
	{18, ``, 15, `carrier of fault number 1: found nothing, expected one of "cell-a", "cell-b"`},
	{18, `carrier = "cell-c"`, 0, `carrier of fault number 1: found "cell-c", expected one of "cell-a", "cell-b"`},
	{18, "carrier = \"cell-a\"\ngateway = \"west\"", 19, `gateway of fault number 1: found "west", expected no such key here, since a fault black-hole happens to a carrier`},
	{18, "carrier = \"cell-a\"\ndirection = \"left\"", 19, `direction of fault number 1: found "left", expected one of "both", "up", "down"`},
	{18, "carrier = \"cell-a\"\nas = \"cell-c\"", 19, `as of fault number 1: found "cell-c", expected no such key here, since a fault black-hole leaves`},
	{18, "carrier = \"cell-a\"\nfor = \"0s\"", 19, `for of fault number 1: found "0s"`},
	{18, "carrier = \"cell-a\"\nuntil = \"9s\"", 19, `until of fault number 1: found an unknown key, expected one of at, do, for, carrier, direction`},
	{21, "do = \"gateway-restart\"\nfor = \"1s\"", 22, `for of fault number 2: found "1s", expected no such key here, since a fault gateway-restart undoes itself`},
	{21, "do = \"robot-restart\"", 22, `gateway of fault number 2: found "west", expected no such key here, since a fault robot-restart happens to a robot`},
	{22, `gateway = "north"`, 0, `gateway of fault number 2: found "north", expected one of "west", "east"`},
	{22, `gateway = 1`, 0, `gateway of fault number 2: found 1 (without quotes)`},
	{22, "gateway = \"west\"\ndirection = \"up\"", 23, `direction of fault number 2: found "up", expected no such key here, since a fault gateway-kill has both`},
	{22, "gateway = \"west\"\nfault = 5", 23, `fault of fault number 2: found an unknown key`},
	{17, "do = \"replug\"\nas = \"a b\"", 18, `as of fault number 1: found "a b"`},
	{17, "do = \"replug\"\nas = \"plr0\"", 18, `as of fault number 1: found "plr0", expected the name of an uplink`},
	{17, "do = \"replug\"\nas = \"cell-b\"", 18, `as of fault number 1: found "cell-b", expected a name that no other carrier has; this one belongs to carrier "cell-b"`},
	{17, "do = \"replug\"\nfor = \"1s\"", 18, `for of fault number 1: found "1s", expected no such key here`},
	{18, "carrier = \"cell-b\"\n[[fault]]\nat = \"7s\"\ndo = \"nat-rebind\"\ncarrier = \"cell-b\"", 21, `do of fault number 2: found "nat-rebind", expected another kind of fault, or a nat for carrier "cell-b", which has none`},
	{18, "carrier = \"cell-a\"\n[[fault]]\nat = \"7s\"\ndo = \"black-hole\"\ncarrier = \"cell-a\"\ndirection = \"up\"", 20, `at of fault number 2: found "7s", when the black-hole of line 15 lasts, expected a time before that, or a "for" there`},
	{18, "carrier = \"cell-a\"\nfor = \"3s\"\n[[fault]]\nat = \"7s\"\ndo = \"black-hole\"\ncarrier = \"cell-a\"", 21, `at of fault number 2: found "7s", when the black-hole of line 15 lasts, expected a time after "8s"`},
	{22, "gateway = \"west\"\n[[fault]]\nat = \"8s\"\ndo = \"server-stop\"\ngateway = \"west\"", 24, `at of fault number 3: found "8s", when the gateway-kill of line 19 lasts`},
	{18, "carrier = \"cell-a\"\nfor = \"2s\"\n[[fault]]\nat = \"7s\"\ndo = \"black-hole\"\ncarrier = \"cell-a\"", 21, `at of fault number 2: found "7s", when the black-hole of line 15 lasts, expected a time after "7s"`},
	{12, "name = \"west\"\npause_every = \"1s\"\npause_for = \"1s\"", 24, `gateway of fault number 2: found "west", expected a gateway without pause_every`},
	{22, "gateway = \"west\"\n[[fault]]\nat = \"6s\"\ndo = \"gateway-restart\"\ngateway = \"west\"", 24, `at of fault number 3: found "6s", when the gateway-kill of line 19 lasts`},

	// Workloads.
	{24, ``, 23, `type of workload number 1: found nothing, expected one of "rpc", "stream"`},
	{24, `type = "udp"`, 0, `type of workload number 1: found "udp", expected one of "rpc", "stream", "ddsperf", "iperf3", "command", "ros2"`},
	{24, "type = \"rpc\"\nname = \"a b\"", 25, `name of workload number 1: found "a b"`},
	{24, "type = \"rpc\"\n[[workload]]\ntype = \"rpc\"", 25, `name of workload number 2: found "rpc", as in the table of line 23, expected a name of its own for every workload`},
	{24, "type = \"rpc\"\nvendor = \"rti\"", 25, `vendor of workload "rpc": found "rti", expected one of "cyclone", "fast", "udp"`},
	{24, "type = \"rpc\"\nvendor = \"udp\"\nsize = 3", 26, `size of workload "rpc": found 3, expected 4 to 65499 bytes, for a datagram`},
	{24, "type = \"rpc\"\nvendor = \"udp\"\nreply_size = 65500", 26, `reply_size of workload "rpc": found 65500, expected at most 65499 bytes, for a datagram`},
	{24, "type = \"rpc\"\nvendor = \"udp\"\n[[workload]]\ntype = \"rpc\"\nname = \"b\"\nvendor = \"udp\"\ngateway = \"west\"", 27, `type of workload "b": found "rpc", expected another type, vendor or gateway, since the server of workload "rpc" has the same port there`},
	{24, "type = \"iperf3\"\nname = \"b\"\ngateway = \"east\"", 28, `type of workload "iperf3": found "iperf3", expected another type`},
	{24, "type = \"iperf3\"\nname = \"a\"\n[[workload]]\ntype = \"iperf3\"\nname = \"b\"\ngateway = \"west\"", 27, `type of workload "b": found "iperf3", expected another type`},
	{24, "type = \"rpc\"\nrate = 0", 25, `rate of workload "rpc": found 0, expected a number from 0.001 to 20000 a second`},
	{24, "type = \"rpc\"\nsize = 0", 25, `size of workload "rpc": found 0, expected a whole number from 1`},
	{24, "type = \"rpc\"\nreply_size = 1.0", 25, `reply_size of workload "rpc": found 1.0`},
	{24, "type = \"rpc\"\ndeadline = \"0s\"", 25, `deadline of workload "rpc": found "0s"`},
	{24, "type = \"rpc\"\nlost_after = \"100ms\"", 25, `lost_after of workload "rpc": found "100ms", expected a time that is not before the deadline, "200ms"`},
	{24, "type = \"rpc\"\nwork = \"-1ms\"", 25, `work of workload "rpc": found "-1ms"`},
	{24, "type = \"rpc\"\nargs = []", 25, `args of workload "rpc": found an empty list, expected no such key here, since a workload of type rpc has none`},
	{24, "type = \"rpc\"\nrat = 5", 25, `rat of workload "rpc": found an unknown key, expected rate, perhaps; here one of type, name, vendor, rate, size`},
	{24, "type = \"stream\"\nvendor = \"fast\"", 25, `vendor of workload "stream": found "fast", expected no such key here`},
	{24, "type = \"ddsperf\"\ndeadline = \"1s\"", 25, `deadline of workload "ddsperf": found "1s", expected no such key here`},
	{24, "type = \"ros2\"\nrate = 1", 25, `rate of workload "ros2": found 1, expected no such key here`},
	{24, "type = \"command\"", 23, `args of workload "command": found nothing, expected a command on the robot`},
	{24, "type = \"command\"\nargs = []", 25, `args of workload "command": found an empty list`},
	{24, "type = \"command\"\nargs = [\"\"]", 25, `args of workload "command": found a list of 1`},
	{24, "type = \"command\"\nargs = \"ls -l\"", 25, `args of workload "command": found "ls -l", expected a command on the robot, a list of texts`},
	{24, "type = \"command\"\nargs = [\n\"ping\",\n5\n]", 27, `args of workload "command": found 5 (without quotes)`},
	{24, "type = \"command\"\nargs = [\"ls\"]\nserver = []", 26, `server of workload "command": found an empty list`},
	{27, `gateway = "north"`, 0, `gateway of workload "iperf3": found "north", expected one of "west", "east"`},
	{27, `args = "-u"`, 0, `args of workload "iperf3": found "-u", expected a list of at most 100 texts, further arguments of iperf3`},
}

// load parses text in a folder with some traces, which are called DIR in errors.
func load(t *testing.T, text string) error {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "drive.csv", "a,b\n10,20\n30,-1\n")
	write(t, dir, "wrong.csv", "a\n10\nfast\n")
	write(t, dir, "times", "1\n2\n")
	write(t, dir, "wrong.times", "1\nsoon\n")
	_, err := parse(filepath.Join(dir, "s.toml"), text, onDisk)
	if err == nil {
		return nil
	}
	var list *config.Error
	if !errors.As(err, &list) {
		t.Errorf("error %v is no *config.Error", err)
	}
	return errors.New(strings.ReplaceAll(err.Error(), dir, "DIR"))
}

func TestProblems(t *testing.T) {
	if err := load(t, strings.Join(good, "\n")); err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		err := load(t, p.text())
		at := p.line
		if p.at != 0 {
			at = p.at
		}
		want := fmt.Sprintf("DIR/s.toml:%d: %s", at, p.want)
		switch {
		case err == nil:
			t.Errorf("line %d %s: no error, want %s", p.line, p.with, want)
		case !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), ", expected "):
			t.Errorf("line %d %s:\n got %v\nwant %s", p.line, p.with, err, want)
		}
	}
}

// What is wrong with a file as a whole.
func TestWholeFiles(t *testing.T) {
	carrier := "[[carrier]]\ninterface = \"c%d\"\n"
	many := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf(carrier, i)
		}
		return text
	}
	for _, c := range []struct{ text, want string }{
		{"", `s.toml:1: carrier: found no [[carrier]], expected a table [[carrier]] with interface`},
		{"seed = 1\n\n", `s.toml:3: carrier: found no [[carrier]]`},
		{"carrier = []", `s.toml:1: carrier: found an empty list, expected tables [[carrier]], 1 to 8`},
		{"[carrier]\ninterface = \"a\"", `s.toml:1: carrier: found a table, expected tables [[carrier]], 1 to 8`},
		{"carrier = [5]", `s.toml:1: carrier: found 5, expected a table [[carrier]]`},
		{"gateway = []\n" + many(1), `s.toml:1: gateway: found an empty list, expected tables [[gateway]], 1 to 8`},
		{many(9), `s.toml:1: carrier: found a list of 9, expected tables [[carrier]], 1 to 8`},
		{"carrier = [\n{interface = \"a\"},\n{kind = \"raw-ip\"},\n{}]", `s.toml:3: interface of carrier number 2: found nothing`},
		{"fault = [\n  { at = \"1s\", do = \"unplug\", carrier = \"x\" }]\n" + many(1), `s.toml:2: carrier of fault number 1: found "x", expected one of "c0"`},
		{strings.Repeat("#", maxFile+1), `s.toml: found a larger file, expected at most 1048576 bytes`},
		{"\xff\xfen\x00", `s.toml:1: found a mistake in the TOML syntax`},
	} {
		err := load(t, c.text)
		if err == nil || !strings.HasPrefix(err.Error(), "DIR/"+c.want) {
			t.Errorf("%.100s:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	if err := load(t, many(8)); err != nil {
		t.Errorf("eight carriers: %v", err)
	}
}

// All problems come at once, in the order of the lines, up to a limit.
func TestAllProblemsAtOnce(t *testing.T) {
	text := "sead = 1\n[[carrier]]\nloss = 7\n[[fault]]\ndo = \"unplug\"\n[[workload]]\ntype = \"x\"\n"
	err := load(t, text)
	if err == nil {
		t.Fatal("no error")
	}
	var got []string
	for _, line := range strings.Split(err.Error(), "\n") {
		got = append(got, regexp.MustCompile(`:(\d+): (\w+)`).FindString(line))
	}
	if want := []string{":1: sead", ":2: interface", ":3: loss", ":4: at", ":4: carrier", ":7: type"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q, of\n%v", got, want, err)
	}
	err = load(t, strings.Repeat("[[fault]]\nat = 5\n", 100))
	if err == nil || strings.Count(err.Error(), "\n") != tables.MaxProblems-1 {
		t.Errorf("100 wrong faults: %v", err)
	}
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.toml")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		pipe:                            "pipe.toml is not an ordinary file",
		filepath.Join(dir, "none.toml"): "none.toml: found no such file, expected a readable scenario file",
		dir:                             "found a file that cannot be read",
	} {
		if _, err := Load(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}

// The reference file has every key that the loader knows.
func TestEverythingHasAllKeys(t *testing.T) {
	file := filepath.Join(examples, "everything.toml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// A key that is unknown in every table makes the loader tell the known ones.
	const stranger = "zzz = 1"
	spoiled := []string{stranger}
	quoted := false
	for _, line := range strings.Split(string(text), "\n") {
		quoted = quoted != strings.Contains(line, `"""`)
		spoiled = append(spoiled, strings.ReplaceAll(line, "burst = {", "burst = { "+stranger+","))
		if strings.HasPrefix(line, "[") && !quoted {
			spoiled = append(spoiled, stranger)
		}
	}
	_, err = parse(file, strings.Join(spoiled, "\n"), onDisk)
	var list *config.Error
	if !errors.As(err, &list) {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, p := range list.Problems {
		for _, key := range strings.Split(strings.TrimPrefix(p.Expected, "one of "), ", ") {
			keys[key] = true
		}
	}
	if len(keys) < 50 {
		t.Fatalf("the loader told of %d keys only: %v\n%v", len(keys), keys, err)
	}
	for key := range keys {
		if !regexp.MustCompile(`(?m)^\[*(carrier\.)?`+regexp.QuoteMeta(key)+`(\]| =)`).Match(text) && !strings.Contains(string(text), " "+key+" = ") {
			t.Errorf("%s is not in %s", key, file)
		}
	}
}
