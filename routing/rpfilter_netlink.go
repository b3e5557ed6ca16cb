package routing

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// What linux/if_link.h and linux/ip.h call IFLA_INET_CONF and
// IPV4_DEVCONF_RP_FILTER.
const (
	iflaInetConf    = 1
	devconfRPFilter = 8
)

// setRPFilter works by rtnetlink (Linux 2.6.37 and later), for which CAP_NET_ADMIN
// is enough. The file in /proc/sys is read-only for the daemon of the systemd unit
// and in most containers.
func (k *netlinkKernel) setRPFilter(index, value int) error {
	req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	families := nl.NewRtAttr(unix.IFLA_AF_SPEC, nil)
	families.AddRtAttr(unix.AF_INET, nil).AddRtAttr(iflaInetConf, nil).
		AddRtAttr(devconfRPFilter, binary.NativeEndian.AppendUint32(nil, uint32(value)))
	req.AddData(families)
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("RTM_SETLINK: %w", err)
	}
	return nil
}
