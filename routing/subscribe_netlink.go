package routing

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

type netlinkSubscriber struct {
	ns    netns.NsHandle
	inode uint64
}

func (k *netlinkKernel) subscriber() (subscriber, error) {
	fd, err := unix.FcntlInt(uintptr(k.ns), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	return &netlinkSubscriber{netns.NsHandle(fd), k.inode}, nil
}

func (s *netlinkSubscriber) close() { s.ns.Close() }

func (s *netlinkSubscriber) subscribe() (subscription, error) {
	// Entering a namespace takes CAP_SYS_ADMIN even when it is the own one, so do
	// it only when this thread is in another.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ns := s.ns
	if current, inode, err := currentNamespace(); err == nil {
		current.Close()
		if inode == s.inode {
			ns = netns.None()
		}
	}
	socket, err := nl.SubscribeAt(ns, netns.None(), unix.NETLINK_ROUTE,
		unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
		unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE,
		unix.RTNLGRP_IPV4_NETCONF) // rp_filter
	if err != nil {
		return nil, err
	}
	if err := socket.SetReceiveBufferSize(watchBuffer, false); err != nil {
		socket.Close()
		return nil, err
	}
	return netlinkSubscription{socket}, nil
}

type netlinkSubscription struct{ socket *nl.NetlinkSocket }

func (s netlinkSubscription) receive() error {
	_, _, err := s.socket.Receive()
	if errors.Is(err, os.ErrClosed) {
		return os.ErrClosed
	}
	return err
}

func (s netlinkSubscription) close() { s.socket.Close() }
