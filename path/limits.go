package path

import "time"

// The values of DefaultConfig.
const (
	// defaultActive: short enough that three lost probes are noticed within the
	// time a person takes for a hitch, long enough that a path costs 5 small
	// frames a second each way.
	defaultActive = 200 * time.Millisecond
	// defaultIdle keeps NAT bindings (30 s and more, RFC 4787) and WireGuard keys
	// alive on an idle path. defaultMaxIdle makes two idle paths on one carrier cost
	// half of 10 MB a day; it is also WireGuard's own keepalive, so with more there
	// would be keepalives beside the probes.
	defaultIdle    = 5 * time.Second
	defaultMaxIdle = 10 * time.Second
	// defaultLinger: gaps between the packets of one application are shorter.
	defaultLinger = time.Second
	// defaultSuspect is three active intervals.
	defaultSuspect = 600 * time.Millisecond
	// defaultTrust: fades and handovers of 1 to 2 s must not cost a handshake.
	defaultTrust = 3 * time.Second
	// defaultMaxTrust bounds what a lossy path may stretch Trust to.
	defaultMaxTrust = 10 * time.Second
	// defaultRetry: a handshake costs the gateway two Curve25519 operations.
	defaultRetry = time.Second
	// defaultMaxRetry is RekeyTimeout of WireGuard, the pace of WireGuard itself.
	defaultMaxRetry = 5 * time.Second
	// defaultIdleRetry: two paths that stay down all day cost less than 10 MB, though
	// WireGuard repeats each handshake every 5 s.
	defaultIdleRetry = 20 * time.Second
	// defaultVerify: with probes, 2 kB/s of an active path are its own.
	defaultVerify = 5 * time.Second
	// defaultLargest is the frame of an inner packet of 1,280 bytes.
	defaultLargest = 1308
)

// What LowData has in place of those.
const (
	lowActive  = 500 * time.Millisecond // two fifths of the cost under traffic
	lowIdle    = 10 * time.Second
	lowMaxIdle = 40 * time.Second // WireGuard's keepalive divides it; 2 MB a day
	lowVerify  = 30 * time.Second
)

// WireGuard's own times (golang.zx2c4.com/wireguard/device/constants.go).
const (
	rekeyTimeout    = 5 * time.Second   // least distance of initiations without Expire
	rejectAfterTime = 180 * time.Second // life of a key pair
)

const (
	// ringSize is how many probes are remembered: 64 at the active interval are
	// more than maxTrust. A power of two.
	ringSize = 64
	// minSpacing between two probes, whatever the events: link events come in
	// bursts of a dozen.
	minSpacing = 50 * time.Millisecond
	// minOverdue probes must be overdue before a path is suspected or given up.
	minOverdue = 3
	// retryGrowth is the divisor by which the distance of handshakes grows:
	// a fourteenth each time, 1 s to 5 s in about a minute.
	retryGrowth = 14
	// returnProofs are needed by a path that died: one reply can be the last
	// frame that a dying link squeezed through.
	returnProofs = 2
	// pollGap: a Poll this much later than promised means that this program or
	// machine slept, which says nothing about the peer.
	pollGap = 2 * time.Second
	// sealWait: a probe that was not encrypted by then waits in WireGuard's
	// staging, so the key pair is gone.
	sealWait = 1500 * time.Millisecond
	// keysDoubtful is a sleep after which keys that WireGuard renews at 120 s may be
	// 180 s old, or will be before that renewal is noticed to be overdue.
	keysDoubtful = 45 * time.Second
	// slowAfter so long without traffic, a link event or success, a search takes its
	// time.
	slowAfter = 10 * time.Minute
	// expireGrace: frames encrypted just before Expire are still being sent, and
	// do not prove a new session.
	expireGrace = 10 * time.Millisecond
)

// Round trip time (RFC 6298).
const (
	clockGranularity = 10 * time.Millisecond // G, covers scheduling delays
	initialRTO       = time.Second           // RFC 6298, 2.1
	maxRTO           = 3 * time.Second       // beyond it a probe is as good as lost
)

// Answer ratio.
const (
	ratioGain = 1.0 / 64 // per probe: a memory of 13 s at the active interval
	quickGain = 1.0 / 8  // for what must know of a change at once
	// suspectChance is the chance that a path which answers as usual is
	// suspected; that costs a harmless handshake.
	suspectChance = 1e-2
	// deathChance is the chance that it is given up.
	deathChance = 1e-7
)

// Naming the stage.
const (
	startingFor     = 2500 * time.Millisecond // no verdict before
	refusedAttempts = 3                       // handshakes without answer, the last of them just sent
	deafFor         = 2 * time.Second         // a fresh session without a reply before "not allowed"; more if RTT is above
	evidenceFor     = 30 * time.Second        // six retries at the slowest pace
	stunFast        = 2 * time.Second         // distance of STUN requests at first
	stunFastFor     = 10 * time.Second        // how long at first is
	stunSlow        = 5 * time.Second         // and later
)

// Keepalive.
const (
	// keepaliveProofs silences in a row must end well before a longer one is tried.
	keepaliveProofs = 2
	// endedChance is the chance that loss is taken for the end of a mapping: a day
	// has some thousand silences, and each mistake costs hours.
	endedChance = 1e-6
	// badMemory is for how long the silence that ended a mapping is not tried again.
	badMemory = 6 * time.Hour
)

// Search for the largest frame (RFC 8899).
const (
	// smallestFrame is what the smallest probes and replies take up.
	smallestFrame = 48
	// sizeTries is MAX_PROBES.
	sizeTries = 3
	// missChance is the chance that a size which passes is taken for too large. The
	// search goes on sooner or later, so it costs little.
	missChance = 1e-4
	// holeChance is the chance that one which was found is given up for loss, each
	// time that it is tried: every few seconds.
	holeChance = 1e-5
	// searchProbes in one search: 33 kB by both directions, and what it takes to
	// halve 2 kB to the end with three misses of the last size.
	searchProbes = 12
	// sizeWait is the least time that an answer is waited for. RFC 8899 asks for a
	// second where nothing is known of the RTT. A full frame at 64 kbit/s takes
	// 170 ms each way, and late answers count.
	sizeWait = 500 * time.Millisecond
	// sizeSpacing of probes keeps a search below 6 kB/s: its own burst must not be
	// what a slow carrier drops.
	sizeSpacing = 250 * time.Millisecond
	// controlWait is by how much longer when small probes are not answered either.
	controlWait = 4
	// raiseAfter is PMTU_RAISE_TIMER.
	raiseAfter = 10 * time.Minute
	// raiseSoon is that of a search which could not be brought to its end, or which
	// found that hardly anything passes.
	raiseSoon = time.Minute
	// searchSpacing is the least distance of searches, whatever the link events.
	searchSpacing = time.Minute
	// doubtLoss one way, of at least doubtFrames in a second, is a sign that large
	// frames may be getting lost.
	doubtLoss   = 0.1
	doubtFrames = 20
	// blockedFrames of the size that was found, all lost while hardly others are, are
	// no chance.
	blockedFrames = 20
	// doubtSpacing is the least distance of tries because of loss.
	doubtSpacing = time.Second
	// maxMissed sizes are remembered: those of a search, and what one before left.
	maxMissed = 16
	// sizesRemembered is for how many probes a late answer counts. A power of two.
	sizesRemembered = 16
)

// Throttle. Shares are of 1.
const (
	loadInterval     = time.Second            // least length of a Load that a Machine makes
	throttleShortest = 500 * time.Millisecond // a policer's burst counts for too much in less
	throttleLongest  = 30 * time.Second       // the load was not the same all the time
	throttleLoads    = 64                     // that are remembered: a minute of traffic
	throttleRecent   = 16                     // of each kind that count, so that the rate is followed
	throttleLeast    = 8                      // of each kind that are needed
	throttleFrames   = 20                     // in a load that can be called lossy
	throttleLoss     = 0.08                   // loss that makes one so, and by which heavy and light must differ
	throttleLight    = 100                    // frames under light load that are needed
	throttleMost     = 0.8                    // of heavy loads must be lossy, of light ones must not
	throttleMargin   = 0.15                   // between the limit and heavy or light
	throttleSpread   = 0.15                   // of the limit: between the quartiles of what heavy loads delivered
	throttleVaried   = 1.25                   // by which heavy loads must differ to show that nothing more comes through
	throttleFlat     = 1.08                   // which is this little more
	throttleEdges    = 4                      // or else so many changes between light and heavy: chance makes one or two
	throttleOver     = 1.3                    // of the limit, delivered without loss, speaks against it
	throttleAgainst  = 3                      // loads that do so end it
	throttleFor      = 10 * time.Minute       // without evidence end it as well
)

// Hearing (gateway side).
const (
	hearingFactor = 3                 // announced intervals of silence before a robot's carrier is not live
	hearingMin    = 3 * time.Second   // as Trust on the other side
	hearingMax    = 120 * time.Second // whatever is announced; the longest idle interval is 40 s
	hearingRecent = 150 * time.Second // below rejectAfterTime: keys still stand
)

// Loss meter.
const (
	lossBuckets = 10          // window of Share, in buckets
	lossBucket  = time.Second // length of one
	// lossEvidence is how many frames tell something of loss: those of probes alone,
	// on an active path, within the window.
	lossEvidence = 30
	// A path is lossy, and of use only beside others, when it loses lossyShare one
	// way: applications that repeat what is lost stall. Below lossyLeast it is not.
	lossyShare = 0.3
	lossyLeast = 0.2
	// answeredLeast is the share of probes that an idle path must answer.
	answeredLeast = 0.5
	// Loss is one-way from oneWayShare on, until it falls below oneWayLeast, when
	// the other way loses a third of it at most.
	oneWayShare  = 0.05
	oneWayLeast  = 0.03
	oneWayFactor = 3
	// verdictFor is how long a verdict stands when nothing is sent.
	verdictFor = time.Minute
	// oldReturns is in how many buckets in a row an epoch before the current one must
	// come, and the current one not, to be current again: the frames of one path that
	// are late after a restart come before those of the new epoch, or soon after.
	oldReturns = 2
	// lossResync: a frame this far behind the highest number means that the
	// sender's numbering started again; reordering never reaches that far.
	lossResync = 1 << 16
)
