package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/fogplr/fogplr/internal/dds"
	"github.com/fogplr/fogplr/test/apps"
	"github.com/fogplr/fogplr/test/lab"
)

// port is the interface that DDS uses. It is a TAP device without offloads, so
// that every checksum in the capture is complete.
const port = "plr0"

// world is a client and two servers in one subnet.
type world struct {
	*scene
	lab     *lab.Lab
	hub     *lab.Node // the switch between them
	client  machine
	servers []machine
	links   []*lab.Link // of the servers
}

// machine is a node and its address.
type machine struct {
	*lab.Node
	prefix netip.Prefix
}

func newWorld(s *scene) (w *world, err error) {
	w = &world{scene: s}
	if w.lab, err = lab.New("captures"); err != nil {
		return nil, err
	}
	if err := w.build(); err != nil {
		return nil, errors.Join(err, w.lab.Close())
	}
	return w, nil
}

func (w *world) build() (err error) {
	if w.hub, err = w.lab.Node("switch"); err != nil {
		return err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "bridge"}}
	if err := w.hub.Netlink().LinkAdd(bridge); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	if err := w.hub.Up("bridge"); err != nil {
		return err
	}
	if w.client, _, err = w.join(bridge, "robot", 1, 0); err != nil {
		return err
	}
	for i, name := range []string{"west", "east"} {
		server, link, err := w.join(bridge, name, 2+i, time.Duration(10+5*i)*time.Millisecond)
		if err != nil {
			return err
		}
		w.servers, w.links = append(w.servers, server), append(w.links, link)
	}
	return nil
}

// join makes a machine behind a port of the switch. host is the last part of its
// address; delay is one way.
func (w *world) join(bridge netlink.Link, name string, host int, delay time.Duration) (m machine, link *lab.Link, err error) {
	node, err := w.lab.Node(name)
	if err != nil {
		return m, nil, err
	}
	if link, err = w.lab.Link(w.hub, name, node, port, lab.Both(lab.Params{Delay: delay}, uint64(host))); err != nil {
		return m, nil, err
	}
	device, err := w.hub.Netlink().LinkByName(name)
	if err != nil {
		return m, nil, err
	}
	if err := w.hub.Netlink().LinkSetMaster(device, bridge); err != nil {
		return m, nil, fmt.Errorf("port of the switch: %w", err)
	}
	m, err = w.machine(node, host)
	return m, link, err
}

// machine gives a node's port its address and MTU.
func (s *scene) machine(n *lab.Node, host int) (machine, error) {
	prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, 0, byte(host)}), 24)
	if s.v6 {
		prefix = netip.PrefixFrom(netip.MustParseAddr("fd77::"+strconv.Itoa(host)), 64)
	}
	return machine{n, prefix}, errors.Join(n.SetMTU(port, overlayMTU), n.AddAddress(port, prefix.String()))
}

// play runs the programs from their discovery to their end, and captures all of it.
func (w *world) play(ctx context.Context, file string) error {
	capture, err := w.client.Capture(port, file)
	if err != nil {
		return err
	}
	early := len(w.servers)
	if w.late {
		early = 1
	}
	var programs []*lab.Cmd
	serve := func(servers []machine) error {
		for _, m := range servers {
			c, err := w.program(ctx, m, "rpc_server", "--name", m.Name())
			if err == nil {
				err = c.Start()
			}
			if err != nil {
				return err
			}
			programs = append(programs, c)
		}
		return nil
	}
	if err := serve(w.servers[:early]); err != nil {
		return err
	}
	err = w.call(ctx, early, func() error { return serve(w.servers[early:]) })
	for _, c := range programs {
		err = errors.Join(err, c.Stop(5*time.Second))
	}
	time.Sleep(200 * time.Millisecond) // what the servers said at their end is still on its way
	return errors.Join(err, capture.Stop())
}

// call runs the client, which waits for so many servers; answered is called after
// the first reply. Every server must answer every request that it is there for.
func (w *world) call(ctx context.Context, servers int, answered func() error) error {
	cmd, err := w.program(ctx, w.client, "rpc_client", "--servers", strconv.Itoa(servers), "--rate=4", "--count", strconv.Itoa(w.count),
		"--size", strconv.Itoa(w.request), "--reply-size", strconv.Itoa(w.reply),
		"--lost-after-ms=20000", "--settle-ms=300", "--linger-ms", strconv.Itoa(int(w.linger().Milliseconds())))
	if err != nil {
		return err
	}
	client := apps.NewClient(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := errors.Join(client.AwaitFirst(ctx), answered(), w.worsen()); err != nil {
		return err
	}
	s, err := client.Finish()
	if err == nil && (int(s.Replies) != w.count || s.Extra == 0 || !w.late && int(s.Extra) != w.count) {
		err = fmt.Errorf("%d requests, %d replies and %d further ones; want one of each server", s.Requests, s.Replies, s.Extra)
	}
	return err
}

// worsen lets the links lose packets from now on.
func (w *world) worsen() error {
	var errs []error
	for _, l := range w.links {
		p := l.Params()
		p.AB.Loss, p.BA.Loss = w.loss, w.loss
		errs = append(errs, l.Set(p.AB, p.BA))
	}
	return errors.Join(errs...)
}

// linger is how long the client stays after the first reply to its last request:
// what was lost of the second one is sent again within a heartbeat's period, 3 s
// for Fast DDS, or a few.
func (s *scene) linger() time.Duration {
	if s.loss > 0 {
		return 12 * time.Second
	}
	return time.Second
}

// program prepares a DDS program with the settings of the scene.
func (w *world) program(ctx context.Context, m machine, name string, args ...string) (*lab.Cmd, error) {
	path, err := apps.Path(w.vendor + name)
	if err != nil {
		return nil, err
	}
	c := m.Command(ctx, path, args...)
	switch {
	case w.profile:
		files, err := dds.Write(filepath.Join(w.lab.Dir(), m.Name()), dds.Overlay{
			Interface: port, Addresses: []netip.Addr{m.prefix.Addr()}, MTU: overlayMTU})
		if err != nil {
			return nil, err
		}
		c.Env = []string{"CYCLONEDDS_URI=file://" + files.Cyclone, "FASTRTPS_DEFAULT_PROFILES_FILE=" + files.FastDDS}
	case w.v6:
		c.Env = []string{"CYCLONEDDS_URI=<General><Transport>udp6</Transport></General>"}
	}
	return c, nil
}
