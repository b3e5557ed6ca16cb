package resolve

import "time"

// Every bound of this package, with its unit and reason.
const (
	// maxServers is how many DNS servers of a carrier are asked: resolv.conf(5)
	// has three, and more would only make a dead network cost more.
	maxServers = 3
	// maxTries is how many times one question is sent at most, truncated answers
	// apart, which are asked for again by TCP.
	maxTries = 4
	// hedge is the silence after which the next server is asked as well, the
	// first one still being waited for: longer than most round trips, and three
	// of them fit into lookupTime.
	hedge = time.Second
	// lookupTime ends a question. Round trips of two seconds (GPRS, a modem that
	// wakes up) leave time for a second try.
	lookupTime = 5 * time.Second
	// udpAnswer is the room in bytes for an answer by UDP. Questions offer no
	// EDNS, so an honest server sends 512 at most (RFC 1035, 4.2.1).
	udpAnswer = 4096

	// maxAddresses is how many addresses of one answer are kept. A gateway is
	// one machine with a few addresses.
	maxAddresses = 8
	// maxCandidates bounds what is tried for one path.
	maxCandidates = 8
	// maxPrefixes is how many NAT64 prefixes of one network are kept; networks
	// with several keep them for load sharing or a change.
	maxPrefixes = 4

	// managerFile is how much of another program's file is read, in bytes: a
	// hundred leases of dhclient.
	managerFile = 64 << 10
	// managerFiles is how many files of one folder are looked at: interfaces
	// times what configures them.
	managerFiles = 256

	// perMinute bounds a carrier's questions in any minute, meteredPerMinute if
	// its data costs. At some 250 bytes for question and answer with all headers
	// a link that flaps all day stays at 9 MB and 3 MB.
	perMinute        = 24
	meteredPerMinute = 8
	// maxInFlight bounds the questions that one carrier waits for at once.
	maxInFlight = 8

	// refresh is how often a name is asked for while all is well, meteredRefresh
	// where data costs. It only finds what was added; a gateway that moved is
	// found because its paths fail.
	refresh        = 10 * time.Minute
	meteredRefresh = time.Hour
	// firstRetry and lastRetry bound the distance of questions that get no
	// answer, or whose answers do not help. It doubles: six in the first three
	// minutes, then twelve an hour.
	firstRetry = 2 * time.Second
	lastRetry  = 5 * time.Minute
	// resolutionDelay is how long a name's IPv4 addresses wait for its IPv6 ones
	// (RFC 8305, section 3).
	resolutionDelay = 50 * time.Millisecond
	// captiveRetry is the longest distance of questions that tell whether a captive
	// portal still is one; they cost 1 MB a day. Where data costs they are as seldom
	// as others.
	captiveRetry = 20 * time.Second
	// spacing is the least distance of one question to its repetition, whatever
	// happens: link events come in bursts of a dozen.
	spacing = time.Second
	// calm is how long a path must have answered before its next failure is news
	// that restarts the retries. One that comes and goes does so by itself.
	calm = time.Minute
)
