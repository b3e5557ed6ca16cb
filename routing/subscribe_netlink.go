package routing

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

type netlinkSubscriber struct{ ns netns.NsHandle }

func (k *netlinkKernel) subscriber() (subscriber, error) {
	fd, err := unix.FcntlInt(uintptr(k.ns), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	return &netlinkSubscriber{netns.NsHandle(fd)}, nil
}

func (s *netlinkSubscriber) close() { s.ns.Close() }

func (s *netlinkSubscriber) subscribe() (subscription, error) {
	socket, err := nl.SubscribeAt(s.ns, netns.None(), unix.NETLINK_ROUTE,
		unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
		unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE)
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
