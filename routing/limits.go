package routing

import (
	"time"

	"github.com/fogplr/fogplr/replicate"
)

const (
	// maxSlot is the highest carrier slot.
	maxSlot = replicate.MaxSlot

	// preferredPref is the priority of our rules when nobody else's comes first.
	// It is 5210 because other programs' rules for everything sit behind it:
	// Tailscale's at 5270, NetworkManager's VPNs' and wg-quick's above 30000.
	preferredPref = 5210
	// lowestPref is the first priority after the kernel's own rule for the local
	// table.
	lowestPref = 1
	// returnPref is the priority of the rules that give the kernel's
	// reverse-path check a route where no other rule has one: behind the
	// kernel's rule for the default table (32767), so that they change nothing
	// for traffic that had a route before.
	returnPref = 32800

	// maxReturnRules is how many rules one carrier gets for the way back of IPv6,
	// one for each of its addresses and each endpoint or gateway: 8 addresses (a few
	// prefixes with temporary ones, RFC 8981) by 8 of those.
	maxReturnRules = 64

	// blackholeMetric places the blackhole route behind every other route to the
	// same prefix. It is the largest value that the netlink library's int holds
	// on 32-bit machines too.
	blackholeMetric = 1<<31 - 1
	// connectedMetric6 is the kernel's metric of the route that comes with an
	// IPv6 address (IP6_RT_PRIO_ADDRCONF).
	connectedMetric6 = 256
	// maxAlias is the longest alias of an interface in bytes (IFALIASZ - 1).
	maxAlias = 255
	// carrierMetric6 is what the kernel makes of an IPv6 route without a metric
	// (IP6_RT_PRIO_USER); named, so that what we ask for is what we read back.
	carrierMetric6 = 1024

	// maxSaved is the most that is read of the remembered rp_filter values, in
	// bytes: room for a thousand interfaces.
	maxSaved = 64 << 10

	// maxNesting is how many interfaces on top of each other (a VLAN on a bond of
	// bridges) are looked through; the kernel allows 8 (MAX_NEST_DEV).
	maxNesting = 8
	// maxSysfs is the most that is read of one file of sysfs, in bytes: a page,
	// which is the most that the kernel shows.
	maxSysfs = 4 << 10

	// maxDumpTries is how often a dump is repeated when the kernel says that the
	// tables changed meanwhile (NLM_F_DUMP_INTR).
	maxDumpTries = 5
	// netlinkTimeout ends a request that the kernel does not answer.
	netlinkTimeout = 5 * time.Second

	// settleTime is how long Watch collects changes before it kicks, so that the
	// dozens of messages of one modem's coming up are one kick. It is also the
	// shortest time between two kicks.
	settleTime = 50 * time.Millisecond
	// pollInterval is how often Watch kicks without any message: the fallback
	// for what a subscription does not show, at two wake-ups a minute.
	pollInterval = 30 * time.Second
	// watchBuffer is the subscription's receive buffer in bytes. An overrun is
	// harmless (it is a kick like any other), so it need not be large.
	watchBuffer = 256 << 10
	// watchRetry is the time before a subscription that failed is opened again,
	// and how often Watch kicks while there is none.
	watchRetry = time.Second

	// restoreBurst and restoreEvery are the pace at which rules and routes that
	// other programs removed are put back: so many rounds at once, then one each
	// restoreEvery. The burst is for one program that reconfigures everything,
	// one interface after the other; the pace keeps a quarrel cheap and yet
	// restores whatever is removed within a second.
	restoreBurst = 10
	restoreEvery = 500 * time.Millisecond
	// quarrelMemory is how long after the last removal the warning about it stays.
	quarrelMemory = time.Minute
)
