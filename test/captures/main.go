// Command captures makes the captures of rtps/testdata again: two servers and a
// client of the ROS 2 mapping, by Cyclone DDS and Fast DDS, from their discovery
// to their end. Beside each capture it writes what tshark reads in it.
//
//	go run ./test/captures rtps/testdata
//
// It needs root, tshark and `make apps`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fogplr/fogplr/test/lab"
)

// scene is one capture to make.
type scene struct {
	name    string
	vendor  string // prefix of the programs' names
	profile bool   // that of `fogplr env`: no message is larger than a packet
	v6      bool
	request int // bytes
	reply   int
	count   int     // of requests
	loss    float64 // share of packets, each way, once the client has been answered
	late    bool    // the second server comes once the client has been answered
}

const (
	overlayMTU = 1280
	small      = 200
	large      = 20_000
)

// scenes are all captures. Without the profile both vendors leave it to IP to
// make fragments of large messages.
var scenes = []scene{
	{name: "cyclone-small", profile: true, request: small, reply: small, count: 3},
	{name: "cyclone-frag", profile: true, request: large, reply: large, count: 1},
	{name: "cyclone-ipfrag", request: large, reply: large, count: 1},
	{name: "cyclone-ipfrag6", v6: true, request: small, reply: large, count: 1},
	{name: "cyclone-loss", profile: true, request: small, reply: large, count: 3, loss: 0.08},
	{name: "cyclone-late", profile: true, request: small, reply: small, count: 12, late: true},
	{name: "fast-small", vendor: "fast_", profile: true, request: small, reply: small, count: 3},
	{name: "fast-frag", vendor: "fast_", profile: true, request: large, reply: large, count: 1},
	{name: "fast-ipfrag", vendor: "fast_", request: large, reply: large, count: 1},
	{name: "fast-loss", vendor: "fast_", profile: true, request: small, reply: large, count: 3, loss: 0.08},
	{name: "fast-late", vendor: "fast_", profile: true, request: small, reply: small, count: 12, late: true},
}

// sceneTime bounds one scene: Fast DDS repairs a loss after 3 s, maybe again.
const sceneTime = 40 * time.Second

func main() {
	lab.Main()
	again := flag.Bool("dissect", false, "only write again what tshark reads in the captures that are there")
	only := flag.String("only", "", "make only the captures whose name begins so")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: captures [-dissect] [-only PREFIX] DIRECTORY")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Arg(0), *only, *again); err != nil {
		fmt.Fprintln(os.Stderr, "captures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, only string, again bool) error {
	made := 0
	for _, s := range scenes {
		if !strings.HasPrefix(s.name, only) {
			continue
		}
		err := error(nil)
		if !again {
			err = s.make(ctx, dir)
		}
		if err == nil {
			err = s.dissect(ctx, dir)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		made++
	}
	if made == 0 {
		return errors.New("no capture has a name that begins so")
	}
	return nil
}

// make plays the scene and writes the capture.
func (s *scene) make(ctx context.Context, dir string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, sceneTime)
	defer cancel()
	w, err := newWorld(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.lab.Close()) }()
	whole := filepath.Join(w.lab.Dir(), "ethernet.pcap")
	if err := w.play(ctx, whole); err != nil {
		return err
	}
	return distil(whole, s.file(dir))
}

func (s *scene) file(dir string) string { return filepath.Join(dir, s.name+".pcap.gz") }

// dissect writes what tshark reads in the capture.
func (s *scene) dissect(ctx context.Context, dir string) error {
	messages, err := dissect(ctx, s.file(dir), filepath.Join(dir, s.name+".txt"))
	if err == nil {
		fmt.Printf("%-16s %4d RTPS messages\n", s.name, messages)
	}
	return err
}
