// Package apps finds the programs of this directory, which speak DDS or plain
// datagrams, and reads what they print. `make apps` builds them; each explains its
// options with --help.
package apps

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Path returns the path of a built program: rpc_server, rpc_client (Cyclone
// DDS), fast_rpc_server, fast_rpc_client (Fast DDS), stream_pub, stream_sub
// (Cyclone DDS), udp_rpc_server or udp_rpc_client (plain datagrams).
func Path(program string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "build", "apps", program)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w (build it with: make apps)", err)
	}
	return path, nil
}

// Root returns the directory of this repository: that above the running program's,
// or one upwards from the working directory.
func Root() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	if dir := filepath.Dir(filepath.Dir(program)); isRoot(dir) {
		return dir, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; !isRoot(dir); dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			return "", errors.New("the repository of fogplr is neither here nor above; run this in it")
		}
	}
	return dir, nil
}

func isRoot(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "test", "apps", "apps.go"))
	return err == nil
}

// Event is one thing that happened to a request.
type Event struct {
	Seq       int64   `json:"seq"` // number of the request, from 1
	T         float64 `json:"t"`   // when it was sent, seconds since 1970
	LatencyMS float64 `json:"latency_ms"`
	By        string  `json:"by"` // who replied
	Lost      bool    `json:"lost"`
	Extra     bool    `json:"extra"` // not the first reply
	Late      bool    `json:"late"`  // a reply after the request counted as lost
}

// First reports whether the event is the reply that counts.
func (e *Event) First() bool { return e.Seq > 0 && !e.Lost && !e.Extra && !e.Late }

// Summary is the last line of an RPC client.
type Summary struct {
	Requests   int64   `json:"requests"`
	Replies    int64   `json:"replies"` // first ones
	Lost       int64   `json:"lost"`
	Pending    int64   `json:"pending"` // neither answered nor lost when the client was ended
	Extra      int64   `json:"extra"`
	Late       int64   `json:"late"`
	Missed     int64   `json:"missed"` // lost, or answered after the deadline
	DeadlineMS float64 `json:"deadline_ms"`
	MeanMS     float64 `json:"mean_ms"`
	P50MS      float64 `json:"p50_ms"`
	P99MS      float64 `json:"p99_ms"`
	MaxMS      float64 `json:"max_ms"`
	By         map[string]struct {
		First int64 `json:"first"`
		All   int64 `json:"all"`
	} `json:"by"`
}

// StreamSummary is the last line of stream_sub.
type StreamSummary struct {
	Sources      int64   `json:"sources"`
	Received     int64   `json:"received"` // different samples
	Lost         int64   `json:"lost"`     // between the first and the last received
	Duplicates   int64   `json:"duplicates"`
	OutOfOrder   int64   `json:"out_of_order"`
	LongestHole  int64   `json:"longest_hole"` // samples lost in a row
	LongestGapMS float64 `json:"longest_gap_ms"`
}

// ParseEvent reads a line of an RPC client; ok is false when it is not an event.
func ParseEvent(line []byte) (e Event, ok bool) {
	return e, json.Unmarshal(line, &e) == nil && e.Seq > 0
}

// summaryMark opens the summary.
const summaryMark = `{"summary":true`

// ParseSummary finds the summary in the whole output of a program and reads it
// into s, a *Summary or a *StreamSummary.
func ParseSummary(output []byte, s any) error {
	for line := range bytes.Lines(output) {
		if bytes.HasPrefix(line, []byte(summaryMark)) {
			return json.Unmarshal(line, s)
		}
	}
	return errors.New("the program printed no summary")
}
