package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fogplr/fogplr/test/deploy"
	"github.com/fogplr/fogplr/test/lab"
	"github.com/fogplr/fogplr/tunnel"
)

// While cables are pulled and modems unplugged, the status is asked for a hundred
// times a second: each answer is valid JSON with the names that there are, and the
// race detector, with which this fogplr is built, finds nothing.
func TestStatusWhileCablesArePulled(t *testing.T) {
	t.Parallel()
	w := start(t, options{
		Options: lab.Options{Gateways: []string{"west"}, Carriers: []lab.CarrierOptions{near20, near20}},
		Program: raceProgram(t),
	})
	r, g := w.robots[0], w.gateways[0]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var polling sync.WaitGroup
	var asked [2]int
	var problems [2]error
	for i, m := range []struct{ socket, peer string }{{r.Socket(), g.Name}, {g.Socket(), r.Name}} {
		polling.Go(func() { asked[i], problems[i] = poll(ctx, m.socket, m.peer, i == 0) })
	}
	flow := startTraffic(t, r.end(), g.end())
	a, b := r.lab.Carriers[0], r.lab.Carriers[1]
	began := time.Now()
	for range 6 {
		must(t, a.Link.Plug(false))
		time.Sleep(100 * time.Millisecond)
		must(t, a.Link.Plug(true))
		time.Sleep(100 * time.Millisecond)
		must(t, w.Replug(b, b.Interface))
		time.Sleep(100 * time.Millisecond)
		must(t, a.Rename("usb0"))
		time.Sleep(100 * time.Millisecond)
		must(t, a.Rename("cell-a"))
		time.Sleep(100 * time.Millisecond)
	}
	lasted := time.Since(began)
	must(t, r.WaitUp(t.Context()))
	cancel()
	polling.Wait()
	if flow.halt(t)[0].Received == 0 {
		t.Error("no packet came")
	}
	for i, err := range problems {
		if err != nil {
			t.Errorf("after %d answers: %v", asked[i], err)
		}
		if least := int(lasted.Seconds() * 100 / 4); asked[i] < least { // the machine may be busy
			t.Errorf("only %d answers in %v", asked[i], lasted)
		}
	}
	t.Logf("%v answers", asked)
	for _, m := range []*deploy.Member{r.Member, g.Member} {
		log := m.Log()
		must(t, m.Stop()) // fails with the status of the race detector
		if strings.Contains(read(t, log), "DATA RACE") {
			t.Errorf("the race detector found something, see %s", log)
		}
	}
}

// raceProgram builds fogplr with the race detector.
func raceProgram(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fogplr")
	build := exec.Command("go", "build", "-race", "-o", file, "../../cmd/fogplr")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build fogplr with -race: %v\n%s", err, out)
	}
	return file
}

// poll asks for the status a hundred times a second until ctx ends, and returns
// how often it was answered, and the first answer that is wrong.
func poll(ctx context.Context, socket, peer string, robot bool) (n int, err error) {
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	defer client.CloseIdleConnections()
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return n, nil
		case <-every.C:
		}
		answer, err := client.Get("http://fogplr/v1/status")
		if err != nil {
			return n, err
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err == nil {
			err = wellFormed(body, peer, robot)
		}
		if err != nil {
			return n, fmt.Errorf("%w: %s", err, body)
		}
		n++
	}
}

// wellFormed checks that a status names what there is, and nothing else.
func wellFormed(body []byte, peer string, robot bool) error {
	var s tunnel.Status
	if err := json.Unmarshal(body, &s); err != nil {
		return err
	}
	names := []string{"slot 0", "slot 1"}
	if robot {
		names = []string{"cell-a", "cell-b"}
	}
	if len(s.Peers) != 1 || s.Peers[0].Name != peer || len(s.Peers[0].Paths) < len(names) {
		return fmt.Errorf("not the one peer %s", peer)
	}
	for i, p := range s.Peers[0].Paths[:len(names)] {
		if p.Carrier != names[i] && !(robot && p.Carrier == "usb0") {
			return fmt.Errorf("a path by %q", p.Carrier)
		}
	}
	for _, c := range s.Carriers {
		if !slices.Contains(append(names, "usb0"), c.Interface) || c.Usable != (c.Problem == "") {
			return fmt.Errorf("carrier %+v", c)
		}
	}
	if robot && len(s.Carriers) != len(names) {
		return fmt.Errorf("%d carriers", len(s.Carriers))
	}
	return nil
}
