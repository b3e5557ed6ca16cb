package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// workloadKeys are the keys that mean something to each type, besides type and
// name.
var workloadKeys = []struct {
	kind string
	keys []string
}{
	{RPC, []string{"vendor", "rate", "size", "reply_size", "deadline", "lost_after", "work"}},
	{Stream, []string{"rate", "size"}},
	{DDSPerf, []string{"args"}},
	{Iperf3, []string{"gateway", "args"}},
	{Command, []string{"gateway", "args", "server"}},
	{ROS2, nil},
}

func (t *table) workloads(s *Scenario, gateways names) {
	var kinds []string
	for _, k := range workloadKeys {
		kinds = append(kinds, k.kind)
	}
	var taken names
	for _, w := range t.tables("workload", maxWorkloads) {
		kind, ok := oneOf(w, "type", kinds...)
		if !ok {
			continue // which keys it may have is not known
		}
		k := Workload{Type: kind, Name: w.name("name", kind)}
		taken.add(w, "name", k.Name, "a name of its own for every workload")
		w.owner = "workload " + strconv.Quote(k.Name)
		w.workload(&k, workloadKeys[slices.Index(kinds, kind)].keys, gateways)
		s.Workloads = append(s.Workloads, k)
	}
}

// workload reads the keys that mean something, and refuses others.
func (t *table) workload(k *Workload, keys []string, gateways names) {
	for _, other := range workloadKeys {
		for _, key := range other.keys {
			if !slices.Contains(keys, key) {
				t.refuse(key, fmt.Sprintf("a workload of type %s has none", k.Type))
			}
		}
	}
	for _, key := range keys {
		switch key {
		case "vendor":
			k.Vendor = choice(t, key, "cyclone", "cyclone", "fast", "udp")
		case "rate":
			k.Rate = t.real(key, minCalls, maxCalls, defaultRate, " a second")
		case "size":
			k.Size = int(t.number(key, 1, maxPayload, defaultSize))
		case "reply_size":
			k.ReplySize = int(t.number(key, 1, maxPayload, defaultSize))
		case "deadline":
			k.Deadline = t.duration(key, time.Millisecond, maxDelay, defaultDeadline)
		case "lost_after":
			k.LostAfter = t.duration(key, time.Millisecond, maxDelay, max(defaultLostAfter, k.Deadline))
		case "work":
			k.Work = t.duration(key, 0, maxDelay, 0)
		case "gateway":
			k.Gateway = gateways.refer(t, key, false)
		case "args":
			t.args(k)
		case "server":
			k.Server = t.program(key, `a command on the gateways, a list of texts, such as ["nc", "-l", "9"]`)
		}
	}
	if k.LostAfter < k.Deadline {
		t.fail("lost_after", show(t.m["lost_after"]), fmt.Sprintf("a time that is not before the deadline, %q", short(k.Deadline)))
	}
	t.finish()
}

// args reads further arguments, or what a command runs on the robot.
func (t *table) args(k *Workload) {
	if k.Type != Command {
		k.Args = t.words("args", fmt.Sprintf("a list of at most %d texts, further arguments of %s", maxArgs, k.Type))
		return
	}
	const expected = `a command on the robot, a list of texts, such as ["ping", "-c", "10", "10.77.0.11"]`
	if !t.has("args") {
		t.missing("args", expected)
	}
	k.Args = t.program("args", expected)
}
