package scenario

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

const ms = time.Millisecond

func TestEverything(t *testing.T) {
	s, err := Load(filepath.Join(examples, "everything.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "everything" || s.Seed != 7 || s.Duration != 30*time.Second || !strings.HasPrefix(s.Robot, "deadline = \"150ms\"\n[[carrier]]") {
		t.Errorf("top: %q, %d, %v, %q", s.Name, s.Seed, s.Duration, s.Robot)
	}
	both := lab.Params{
		Delay: 20 * ms, Jitter: 3 * ms, Distribution: lab.Normal, Queue: 150 * ms, MTU: 1380, Big: 1200, BigLoss: 0.02,
		Duplicate: 0.001, Reorder: 0.001, ReorderDelay: 15 * ms,
	}
	up, down := both, both
	up.Loss, up.Rate, up.Burst = 0.01, 5e6, &lab.GilbertElliott{ToBad: 0.01, ToGood: 0.25, LossBad: 1}
	down.Loss, down.Rate, down.Burst = 0, 20e6, &lab.GilbertElliott{ToBad: 0.002, ToGood: 0.2, LossBad: 0.8}
	outages := lab.Params{RTT: &lab.RTT{File: filepath.Join(examples, "p125-outages.csv"), Column: "a", Row: 500 * ms, First: 1200, Seed: 7}}
	wifi := lab.Params{
		RTT:      &lab.RTT{File: lab.Indoor, Column: "1", Row: time.Second, Seed: 7},
		Capacity: filepath.Join(examples, "everything-capacity.txt"),
	}
	same(t, s.Carriers, []Carrier{
		{lab.CarrierOptions{Interface: "cell-a", Up: up, Down: down, NAT: lab.NAT{Kind: lab.Symmetric, Idle: 30 * time.Second}}, 1400},
		{lab.CarrierOptions{Interface: "cell-b", Raw: true, Up: outages, Down: outages, NAT: lab.NAT{Kind: lab.PortRestricted}}, 0},
		{lab.CarrierOptions{Interface: "wlan0", Up: wifi, Down: wifi}, 0},
	})
	same(t, s.Gateways, []Gateway{{Name: "west"}, {Name: "east"}, {Name: "north", PauseEvery: 10 * time.Second, PauseFor: 100 * ms}})
	second := func(n int) time.Duration { return time.Duration(n) * time.Second }
	same(t, s.Faults, []Fault{
		{At: second(1), Kind: BlackHole, For: second(2), Carrier: "cell-a", Direction: Up},
		{At: second(4), Kind: LinkDown, For: second(2), Carrier: "cell-b"},
		{At: second(6), Kind: Unplug, For: second(1), Carrier: "wlan0"},
		{At: second(8), Kind: AddressChange, Carrier: "wlan0"},
		{At: second(10), Kind: Replug, Carrier: "wlan0", As: "wlan1"},
		{At: second(12), Kind: NATRebind, Carrier: "cell-a"},
		{At: second(14), Kind: GatewayKill, For: second(2), Gateway: "west"},
		{At: second(18), Kind: GatewayStop, For: second(1), Gateway: "east"},
		{At: second(20), Kind: GatewayRestart, Gateway: "west"},
		{At: second(22), Kind: ServerStop, For: second(1), Gateway: "west"},
		{At: second(24), Kind: ServerKill, For: second(1), Gateway: "east"},
		{At: second(26), Kind: RobotRestart},
	})
	same(t, s.Workloads, []Workload{
		{Name: "calls", Type: RPC, Vendor: "fast", Rate: 30, Size: 200, ReplySize: 1000, Deadline: 150 * ms, LostAfter: second(3), Work: 5 * ms},
		{Name: "odometry", Type: Stream, Rate: 50, Size: 1000},
		{Name: "ddsperf", Type: DDSPerf, Args: []string{"10Hz", "size", "100"}},
		{Name: "iperf3", Type: Iperf3, Gateway: "east", Args: []string{"--udp", "--bitrate", "1M"}},
		{Name: "ping", Type: Command, Gateway: "west", Args: []string{"ping", "-i", "0.2", "-w", "30", "10.77.0.11"}, Server: []string{"sleep", "infinity"}},
	})
}

func same[T any](t *testing.T, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %d, want %d: %+v", len(got), len(want), got)
		return
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("number %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

func TestDefaults(t *testing.T) {
	s, err := parse("/nowhere/My first one.toml", "[[carrier]]\ninterface = \"cell-a\"\n[[workload]]\ntype = \"rpc\"\n", onDisk)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []*Scenario{s}, []*Scenario{{
		File: "/nowhere/My first one.toml", Name: "My-first-one", Seed: 1, Duration: 20 * time.Second,
		Carriers:  []Carrier{{CarrierOptions: lab.CarrierOptions{Interface: "cell-a"}}},
		Gateways:  []Gateway{{Name: "west"}, {Name: "east"}},
		Workloads: []Workload{{Name: "rpc", Type: RPC, Vendor: "cyclone", Rate: 30, Size: 64, ReplySize: 64, Deadline: 200 * ms, LostAfter: 4 * time.Second}},
	}})
}

// What is unusual and right all the same.
func TestGoodScenarios(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a:b.csv", "x,7\n1,2\n")
	write(t, dir, "builtin:x", "x\n1\n")
	write(t, dir, "times", "1\n")
	const carrier = "[[carrier]]\ninterface = \"cell-a\"\n"
	for text, holds := range map[string]func(*Scenario) bool{
		"\xef\xbb\xbf" + carrier:                            func(s *Scenario) bool { return len(s.Workloads) == 0 },
		"robot_config = \"\"\n" + carrier:                   func(s *Scenario) bool { return s.Robot == "" },
		"robot_config = \"interface = 'tun7'\"\n" + carrier: func(s *Scenario) bool { return s.Robot == "interface = 'tun7'\n" },
		carrier + "loss = 1":                                func(s *Scenario) bool { return s.Carriers[0].Up.Loss == 1 && s.Carriers[0].Down.Loss == 1 },
		carrier + "trace = \"a:b.csv:7\"": func(s *Scenario) bool {
			return *s.Carriers[0].Up.RTT == lab.RTT{File: filepath.Join(dir, "a:b.csv"), Column: "7", Row: time.Second, Seed: 1}
		},
		carrier + "trace = \"./builtin:x:x\"": func(s *Scenario) bool {
			return s.Carriers[0].Up.RTT.File == filepath.Join(dir, "builtin:x")
		},
		carrier + "trace = \"" + dir + "/a:b.csv:x\"\n[carrier.down]\ntrace = \"\"": func(s *Scenario) bool {
			return s.Carriers[0].Up.RTT != nil && s.Carriers[0].Down.RTT == nil
		},
		carrier + "trace = \"builtin:driving:4\"\ntrace_first = 9\nup.trace_first = 3": func(s *Scenario) bool {
			return s.Carriers[0].Up.RTT.First == 3 && s.Carriers[0].Down.RTT.First == 9
		},
		carrier + "capacity = \"times\"\nqueue = \"1s\"\n[carrier.up]\ncapacity = \"\"\nrate_mbit = 0.5": func(s *Scenario) bool {
			up, down := s.Carriers[0].Up, s.Carriers[0].Down
			return up.Capacity == "" && up.Rate == 5e5 && down.Capacity == filepath.Join(dir, "times") && down.Rate == 0
		},
		// A queue for both directions has an effect if one of them has a rate.
		carrier + "queue = \"1s\"\n[carrier.up]\nrate_mbit = 1": func(s *Scenario) bool { return s.Carriers[0].Down.Queue == time.Second },
		// Faults are sorted, and two of different things may be at one time.
		"fault = [{at = \"5s\", do = \"unplug\", carrier = \"cell-a\"}, {at = \"1s\", do = \"unplug\", carrier = \"cell-a\", for = \"3s\"}, {at = \"5s\", do = \"robot-restart\"}]\n" + carrier: func(s *Scenario) bool {
			f := s.Faults
			return f[0].At == time.Second && f[1].Kind == Unplug && f[2].Kind == RobotRestart
		},
		"fault = [{at = \"1s\", do = \"black-hole\", carrier = \"cell-a\", direction = \"up\"}, {at = \"2s\", do = \"black-hole\", carrier = \"cell-a\", direction = \"down\"}]\n" + carrier: func(s *Scenario) bool {
			return s.Faults[0].Direction == Up && s.Faults[1].Direction == Down
		},
		"fault = [{at = \"1s\", do = \"black-hole\", carrier = \"cell-a\"}]\n" + carrier: func(s *Scenario) bool { return s.Faults[0].Direction == BothWays },
		// An interface may get its first name back.
		"fault = [{at = \"1s\", do = \"replug\", carrier = \"cell-a\", as = \"x\"}, {at = \"2s\", do = \"replug\", carrier = \"cell-a\", as = \"cell-a\"}, {at = \"3s\", do = \"replug\", carrier = \"cell-a\"}]\n" + carrier: func(s *Scenario) bool {
			return s.Faults[0].As == "x" && s.Faults[1].As == "cell-a" && s.Faults[2].As == ""
		},
	} {
		s, err := parse(filepath.Join(dir, "s.toml"), text, onDisk)
		if err != nil {
			t.Errorf("%s\n%v", text, err)
		} else if !holds(s) {
			t.Errorf("%s\n%+v", text, s)
		}
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTraceOverride(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "d:1.csv", "a,b\n10,20\n30,-1\n")
	write(t, dir, "wrong.csv", "a\nfast\n")
	const text = "seed = 3\n[[carrier]]\ninterface = \"a\"\ntrace = \"builtin:driving:1\"\ntrace_first = 5\n[[carrier]]\ninterface = \"b\"\n[carrier.up]\ndelay = \"1ms\"\n"
	fresh := func() *Scenario {
		s, err := parse("s.toml", text, onDisk)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := fresh()
	if err := s.TraceOverride("d:1.csv:b,builtin:indoor:2"); err != nil {
		t.Fatal(err)
	}
	first := lab.Params{RTT: &lab.RTT{File: "d:1.csv", Column: "b", Row: time.Second, Seed: 3}}
	second := lab.Params{RTT: &lab.RTT{File: lab.Indoor, Column: "2", Row: time.Second, Seed: 3}}
	up := second
	up.Delay = ms
	same(t, []lab.CarrierOptions{s.Carriers[0].CarrierOptions, s.Carriers[1].CarrierOptions}, []lab.CarrierOptions{
		{Interface: "a", Up: first, Down: first}, {Interface: "b", Up: up, Down: second},
	})
	for spec, want := range map[string]string{
		"":                            `trace 1, "", cannot be replayed: it has not two parts`,
		"d:1.csv:a,":                  `trace 2, ""`,
		"d:1.csv:c":                   `there is no column "c"; the columns are a, b`,
		"d:1.csv:a,wrong.csv:a":       `trace 2, "wrong.csv:a", cannot be replayed: wrong.csv: line 2: "fast"`,
		"none.csv:a":                  `no such file`,
		"d:1.csv:a,d:1.csv:b,x.csv:1": `there are 3 traces, "d:1.csv:a,d:1.csv:b,x.csv:1", but the scenario has only 2 carriers`,
		"builtin:sailing:1":           `there is no such built-in trace`,
		"builtin:indoor:3":            `there is no column "3"`,
		"builtin:driving":             `there is no such built-in trace`,
		".:a":                         `not an ordinary file`,
	} {
		s := fresh()
		if err := s.TraceOverride(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", spec, err, want)
		}
		same(t, []*Scenario{s}, []*Scenario{fresh()})
	}
}

// FuzzParse reads no files: every trace that is not built in counts as right.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(examples, "*.toml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	for _, one := range problems {
		f.Add(one.with)
		f.Add(one.text())
	}
	from := source{
		rows:     func(lab.RTT) (int, error) { return 3600, nil },
		capacity: func(string) error { return nil },
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parse("fuzz.toml", text, from)
		if err != nil {
			if first, _, _ := strings.Cut(err.Error(), "\n"); !strings.HasPrefix(first, "fuzz.toml") || !strings.Contains(err.Error(), "found ") || !strings.Contains(err.Error(), ", expected ") {
				t.Errorf("error %q", err)
			}
			return
		}
		if s.Name == "" || s.Duration <= 0 || len(s.Carriers) == 0 || len(s.Gateways) == 0 {
			t.Errorf("%+v", s)
		}
		for i, c := range s.Faults {
			if c.At >= s.Duration || i > 0 && c.At < s.Faults[i-1].At || (c.Carrier != "") == (c.Gateway != "") && c.Kind != RobotRestart {
				t.Errorf("fault %+v", c)
			}
		}
		for _, w := range s.Workloads {
			if w.Name == "" || w.Type == RPC && (w.Rate <= 0 || w.Size <= 0 || w.LostAfter < w.Deadline) || w.Type == Command && len(w.Args) == 0 {
				t.Errorf("workload %+v", w)
			}
		}
	})
}
