package play

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/test/scenario"
)

// endsWithin is how long a program may take to end after it was asked to.
const endsWithin = 10 * time.Second

// server is a program on a gateway that can be started again.
type server struct {
	make   func(context.Context) (*lab.Cmd, error)
	cmd    *lab.Cmd     // started
	killed bool         // by a fault
	output bytes.Buffer // of all its runs
}

func (v *server) start(ctx context.Context) error {
	cmd, err := v.make(ctx)
	if err != nil {
		return err
	}
	cmd.Stdout = &v.output
	if err := cmd.Start(); err != nil {
		return err
	}
	v.cmd, v.killed = cmd, false
	return nil
}

// ended says how a server ended that should not have, or nothing.
func (v *server) ended() string {
	select {
	case <-v.cmd.Done():
		if !v.killed {
			return fmt.Sprintf("its server on a gateway ended early: %v (log: %s)", v.cmd.Wait(), v.cmd.Log())
		}
	default:
	}
	return ""
}

func startAll(ctx context.Context, servers []*server) (err error) {
	for _, v := range servers {
		err = errors.Join(err, v.start(ctx))
	}
	return err
}

func killAll(servers []*server) (err error) {
	for _, v := range servers {
		v.killed = true
		err = errors.Join(err, v.cmd.Kill())
	}
	return err
}

func signalAll(servers []*server, sig syscall.Signal) (err error) {
	for _, v := range servers {
		err = errors.Join(err, v.cmd.Signal(sig))
	}
	return err
}

// stopServers ends the programs on all gateways, stopped ones too.
func (s *Standing) stopServers() {
	for _, servers := range s.servers {
		for _, v := range servers {
			_ = v.cmd.Signal(syscall.SIGCONT)
			_ = v.cmd.Stop(endsWithin) // how it ends is no matter
		}
	}
}

// job is a workload under way.
type job struct {
	*Standing
	w       scenario.Workload
	client  []string
	service []string           // on gateways, nil for none
	on      []*lab.Gateway     // that have it
	servers map[string]*server // by gateway
	calls   *apps.Client       // rpc only
	cmd     *lab.Cmd
	output  bytes.Buffer
}

// jobs returns the workloads that begin before the start, since they find each
// other first, and those that begin with it.
func (s *Standing) jobs() (early, late []*job, err error) {
	s.servers = map[string][]*server{}
	for _, w := range s.Scenario.Workloads {
		j := &job{Standing: s, w: w, servers: map[string]*server{}, on: s.World.Gateways}
		if w.Gateway != "" || w.Type == scenario.Iperf3 {
			g := s.World.Gateways[0]
			if w.Gateway != "" {
				if g, err = s.gateway(w.Gateway); err != nil {
					return nil, nil, err
				}
			}
			j.on = []*lab.Gateway{g}
		}
		if err := j.plan(); err != nil {
			return nil, nil, fmt.Errorf("workload %s: %w", w.Name, err)
		}
		if w.Type == scenario.RPC {
			s.calling = append(s.calling, j)
		}
		if w.Type == scenario.RPC || w.Type == scenario.Stream {
			early = append(early, j)
		} else {
			late = append(late, j)
		}
	}
	return early, late, nil
}

// plan decides which programs the workload is.
func (j *job) plan() (err error) {
	w := &j.w
	ms := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds()*1e3, 'f', -1, 64) }
	number := func(n int) string { return strconv.Itoa(n) }
	rate := strconv.FormatFloat(w.Rate, 'f', -1, 64)
	seconds := number(max(1, int(j.Scenario.Duration.Seconds()))) // 0 is no end for some
	switch w.Type {
	case scenario.RPC:
		prefix := map[string]string{"cyclone": "", "fast": "fast_", "udp": "udp_"}[w.Vendor]
		j.service = []string{prefix + "rpc_server", "--service", w.Name, "--delay-ms", ms(w.Work), "--name"}
		j.client = []string{prefix + "rpc_client", "--rate", rate, "--count", "0", "--size", number(w.Size),
			"--reply-size", number(w.ReplySize), "--deadline-ms", ms(w.Deadline), "--lost-after-ms", ms(w.LostAfter)}
		if w.Vendor == "udp" {
			j.client = append(j.client, "--to", j.addresses())
		} else {
			j.client = append(j.client, "--service", w.Name, "--servers", number(len(j.on)), "--match-timeout-s", "40", "--settle-ms", "500")
		}
	case scenario.Stream:
		j.service = []string{"stream_sub", "--topic", w.Name}
		j.client = []string{"stream_pub", "--topic", w.Name, "--rate", rate, "--count", "0", "--size", number(w.Size),
			"--subscribers", number(len(j.on)), "--match-timeout-s", "40", "--settle-ms", "500"}
	case scenario.DDSPerf:
		j.service = []string{"ddsperf", "pong"}
		j.client = append([]string{"ddsperf", "-D", seconds, "ping"}, w.Args...)
	case scenario.Iperf3:
		address := j.Tunnel.Address(j.on[0].Node).String()
		j.service = []string{"iperf3", "-s", "-B", address}
		j.client = append([]string{"iperf3", "-c", address, "-t", seconds}, w.Args...)
	case scenario.Command:
		j.service, j.client = w.Server, w.Args
	case scenario.ROS2:
		if os.Getenv("ROS_SETUP") == "" {
			return errors.New("it needs a ROS 2 installation: set ROS_SETUP to its setup.sh, such as /opt/ros/jazzy/setup.sh")
		}
		j.service = []string{"sh", "-c", `. "$ROS_SETUP" && exec ros2 run demo_nodes_cpp add_two_ints_server`}
		j.client = []string{"sh", "-c", `. "$ROS_SETUP" && while ros2 run demo_nodes_cpp add_two_ints_client; do :; done`}
	default:
		return fmt.Errorf("there is no workload of type %s", w.Type)
	}
	if w.Type == scenario.RPC || w.Type == scenario.Stream {
		for _, p := range []*string{&j.service[0], &j.client[0]} {
			if *p, err = apps.Path(*p); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin starts the programs, first those on the gateways, and returns when the
// workload works.
func (j *job) begin(ctx context.Context) error {
	for _, g := range j.on {
		if j.service == nil {
			break
		}
		args := j.service
		if j.w.Type == scenario.RPC {
			args = append(args[:len(args):len(args)], g.Name())
		}
		v := &server{make: func(ctx context.Context) (*lab.Cmd, error) {
			return j.Tunnel.Command(ctx, g.Node, args[0], args[1:]...)
		}}
		if err := v.start(ctx); err != nil {
			return err
		}
		j.servers[g.Name()] = v
		j.Standing.servers[g.Name()] = append(j.Standing.servers[g.Name()], v)
	}
	var err error
	if j.cmd, err = j.Tunnel.Command(ctx, j.World.Robots[0].Node, j.client[0], j.client[1:]...); err != nil {
		return err
	}
	j.cmd.Env = append(j.cmd.Env, "FOGPLR_LAB_GATEWAYS="+j.addresses())
	if j.w.Type != scenario.RPC {
		j.cmd.Stdout = &j.output
		if j.w.Type == scenario.Iperf3 {
			time.Sleep(listens) // its client does not wait for its server
		}
		return j.cmd.Start()
	}
	j.calls = apps.NewClient(j.cmd)
	if err := j.cmd.Start(); err != nil {
		return err
	}
	return j.calls.AwaitFirst(ctx)
}

// listens is how long a server may take until it listens.
const listens = 300 * time.Millisecond

// addresses are those of the gateways inside the tunnel, by comma.
func (j *job) addresses() string {
	var all []string
	for _, g := range j.on {
		all = append(all, j.Tunnel.Address(g.Node).String())
	}
	return strings.Join(all, ",")
}

// answersWithin is how long a server that is back may take until it answers: its
// DDS and the client's have to find each other.
const answersWithin = 30 * time.Second

// answered waits until every server has answered a call made after since.
func (j *job) answered(ctx context.Context, since time.Time) error {
	after := float64(since.UnixNano()) / 1e9
	for end := time.Now().Add(answersWithin); ; {
		missing := map[string]bool{}
		for _, g := range j.on {
			missing[g.Name()] = true
		}
		for _, e := range j.calls.Events() {
			if e.T > after {
				delete(missing, e.By)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("workload %s: no answer from %v within %v", j.w.Name, missing, answersWithin)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// end ends the programs and returns what came of the workload.
func (j *job) end(ctx context.Context, start time.Time, duration time.Duration) (*Work, error) {
	work := &Work{Name: j.w.Name, Type: j.w.Type}
	if j.calls != nil { // calls made shortly before the end may still be answered
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-j.cmd.Done():
		case <-time.After(time.Until(start.Add(duration + j.w.LostAfter + time.Second))):
		}
	}
	work.Failed = j.finish()
	work.Output = j.output.String()
	for _, v := range j.servers {
		if how := v.ended(); how != "" && work.Failed == "" {
			work.Failed = how
		}
	}
	switch j.w.Type {
	case scenario.RPC:
		if _, err := j.calls.Finish(); err != nil {
			return nil, err
		}
		work.Calls = callsOf(j.calls.Events(), start, duration)
	case scenario.Stream:
		work.Streams = map[string]apps.StreamSummary{}
		for name, v := range j.servers {
			_ = v.cmd.Signal(syscall.SIGCONT)
			_ = v.cmd.Stop(endsWithin)
			var s apps.StreamSummary
			if err := apps.ParseSummary(v.output.Bytes(), &s); err != nil {
				work.Failed = fmt.Sprintf("its receiver on %s: %v", name, err)
				continue
			}
			work.Streams[name] = s
		}
	}
	return work, nil
}

// finish ends the client, or waits for one that ends by itself with the scenario,
// and says how it ended if that was not well.
func (j *job) finish() string {
	switch j.w.Type {
	case scenario.RPC, scenario.Stream, scenario.ROS2: // they go on for ever
		select {
		case <-j.cmd.Done():
			return fmt.Sprintf("it ended early: %v", j.cmd.Wait())
		default:
			_ = j.cmd.Stop(endsWithin) // lost calls and the signal make its status
			return ""
		}
	}
	select {
	case <-j.cmd.Done():
		if err := j.cmd.Wait(); err != nil {
			return err.Error()
		}
		return ""
	case <-time.After(endsWithin):
		_ = j.cmd.Stop(endsWithin)
		return fmt.Sprintf("it still ran %v after the end, and was stopped; let it end by itself", endsWithin)
	}
}
