package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/fogplr/fogplr/internal/tables"
)

// workloadKeys are the keys that mean something to each type, besides type, name
// and gateway.
var workloadKeys = []struct {
	kind string
	keys []string
}{
	{RPC, []string{"vendor", "rate", "size", "reply_size", "deadline", "lost_after", "work"}},
	{Stream, []string{"rate", "size"}},
	{DDSPerf, []string{"args"}},
	{Iperf3, []string{"args"}},
	{Command, []string{"args", "server"}},
	{ROS2, nil},
}

func readWorkloads(t *tables.Table, s *Scenario, gateways names) {
	var kinds []string
	for _, k := range workloadKeys {
		kinds = append(kinds, k.kind)
	}
	var taken names
	for _, w := range t.Tables("workload", 1, maxWorkloads) {
		kind, ok := tables.OneOf(w, "type", kinds...)
		if !ok {
			continue // which keys it may have is not known
		}
		k := Workload{Type: kind, Name: name(w, kind)}
		taken.add(w, "name", k.Name, "a name of its own for every workload")
		w.Owner = "workload " + strconv.Quote(k.Name)
		readWorkload(w, &k, workloadKeys[slices.Index(kinds, kind)].keys, gateways)
		s.checkPort(w, &k)
		s.Workloads = append(s.Workloads, k)
	}
}

// checkPort reports a workload whose server would find its port in use.
func (s *Scenario) checkPort(t *tables.Table, k *Workload) {
	for i := range s.Workloads {
		o := &s.Workloads[i]
		iperf := k.Type == Iperf3 && o.Type == Iperf3 && s.first(k.Gateway) == s.first(o.Gateway)
		udp := k.Vendor == vendorUDP && o.Vendor == vendorUDP && (k.Gateway == o.Gateway || k.Gateway == "" || o.Gateway == "")
		if iperf || udp {
			t.Wrong("type", fmt.Sprintf("another type, vendor or gateway, since the server of workload %q has the same port there", o.Name))
			return
		}
	}
}

// first is the first gateway where none is named.
func (s *Scenario) first(gateway string) string {
	if gateway == "" && len(s.Gateways) > 0 {
		return s.Gateways[0].Name
	}
	return gateway
}

// readWorkload reads the keys that mean something, and refuses others.
func readWorkload(t *tables.Table, k *Workload, keys []string, gateways names) {
	for _, other := range workloadKeys {
		for _, key := range other.keys {
			if !slices.Contains(keys, key) {
				refuse(t, key, fmt.Sprintf("a workload of type %s has none", k.Type))
			}
		}
	}
	for _, key := range keys {
		switch key {
		case "vendor":
			k.Vendor = tables.Choice(t, key, "cyclone", "cyclone", "fast", vendorUDP)
		case "rate":
			k.Rate = t.Real(key, minCalls, maxCalls, defaultRate, " a second")
		case "size":
			k.Size = int(t.Integer(key, 1, maxPayload, defaultSize))
		case "reply_size":
			k.ReplySize = int(t.Integer(key, 1, maxPayload, defaultSize))
		case "deadline":
			k.Deadline = t.Duration(key, time.Millisecond, maxDelay, defaultDeadline)
		case "lost_after":
			k.LostAfter = t.Duration(key, time.Millisecond, maxDelay, max(defaultLostAfter, k.Deadline))
		case "work":
			k.Work = t.Duration(key, 0, maxDelay, 0)
		case "args":
			args(t, k)
		case "server":
			k.Server = program(t, key, `a command on the gateways, a list of texts, such as ["nc", "-l", "9"]`)
		}
	}
	k.Gateway = gateways.refer(t, "gateway", false)
	if k.Vendor == vendorUDP && (k.Size < minDatagram || k.Size > maxDatagram) {
		t.Wrong("size", fmt.Sprintf("%d to %d bytes, for a datagram", minDatagram, maxDatagram))
	}
	if k.Vendor == vendorUDP && k.ReplySize > maxDatagram {
		t.Wrong("reply_size", fmt.Sprintf("at most %d bytes, for a datagram", maxDatagram))
	}
	if k.LostAfter < k.Deadline {
		t.Wrong("lost_after", fmt.Sprintf("a time that is not before the deadline, %q", tables.ShowTime(k.Deadline)))
	}
	finish(t)
}

// args reads further arguments, or what a command runs on the robot.
func args(t *tables.Table, k *Workload) {
	if k.Type != Command {
		k.Args = words(t, "args", fmt.Sprintf("a list of at most %d texts, further arguments of %s", maxArgs, k.Type))
		return
	}
	const expected = `a command on the robot, a list of texts, such as ["ping", "-c", "10", "10.77.0.11"]`
	t.Need("args", expected)
	k.Args = program(t, "args", expected)
}
