package path

import "time"

// Stage names how far a path got, or what fails.
type Stage uint8

// Stages of a path.
const (
	StageUp                Stage = iota // proven
	StageNoRoute                        // the carrier cannot send to the endpoint
	StageNoReply                        // nothing comes back
	StageHandshakeRefused               // the port answers, the handshake is not
	StageAddressNotAllowed              // the session stands, probes are not answered
	StageStarting                       // too early to tell
	StageNoWayOut                       // frames come in, but none gets out
	StageResting                        // at a gateway: the robot took its leave

	// These are up and carry.
	StageLargeLost // small packets pass, large ones do not
	StageThrottled // no more than a rate is delivered
	StageLossOut   // much is lost on the way out, little on the way in
	StageLossIn    // and the other way round
	StageLossy     // so much is lost that the path is of use only beside others
)

// Up reports whether a path in this stage is up.
func (s Stage) Up() bool { return s == StageUp || s >= StageLargeLost && s <= StageLossy }

// String returns the stage as `status` shows it, empty for StageUp.
func (s Stage) String() string {
	switch s {
	case StageUp:
		return ""
	case StageNoRoute:
		return "no route"
	case StageNoReply:
		return "no reply"
	case StageHandshakeRefused:
		return "handshake refused"
	case StageAddressNotAllowed:
		return "address not allowed"
	case StageStarting:
		return "starting"
	case StageNoWayOut:
		return "no way out"
	case StageResting:
		return "resting"
	case StageLargeLost:
		return "large packets lost"
	case StageThrottled:
		return "throttled"
	case StageLossOut:
		return "loss on the way out"
	case StageLossIn:
		return "loss on the way in"
	case StageLossy:
		return "lossy"
	}
	return "unknown"
}

// Hint says in plain sentences what the stage means and what to do, empty for
// StageUp.
func (s Stage) Hint() string {
	switch s {
	case StageNoRoute:
		return "This carrier has no address or no route to the gateway, so nothing can be sent on this path. " +
			"Check that the interface is up, has an address, and got a default gateway from its network."
	case StageNoReply:
		return "Nothing comes back from the gateway over this carrier. " +
			"Check that the gateway runs, that its endpoint in robot.toml is right, and that no firewall on the way blocks UDP to that port."
	case StageHandshakeRefused:
		return "The gateway's port answers, but the gateway does not accept this robot's key or this robot does not know the gateway's. " +
			"Compare public_key in robot.toml with `fogplr pubkey` on the gateway, and carrier_keys in gateway.toml with `fogplr pubkey --robot` here."
	case StageAddressNotAllowed:
		return "The keys agree, but the gateway does not answer what this robot sends, because the two configurations name different addresses. " +
			"Make address in robot.toml and in the gateway's [[robot]] the same, and likewise the gateway's address in gateway.toml and in the robot's [[gateway]]."
	case StageStarting:
		return "The first handshake is under way. Wait a few seconds."
	case StageNoWayOut:
		return "The gateway's packets still came in by this carrier when its answers stopped, so what this robot sends does not get out. " +
			"That is the carrier's network or radio: nothing can be mended here, and the path comes back by itself."
	case StageResting:
		return "The robot has said that it does not use this carrier now: its monthly cap is used up, or it has no network. " +
			"Nothing is sent there until it comes back; `fogplr status` on the robot says more."
	case StageLargeLost:
		return "Small packets pass on this path, but large ones get lost on the way, so only small ones can be sent on it. " +
			"A filter or a tunnel in the carrier's network drops them without saying so; what is too large goes over the other paths. " +
			"If there is no other, ask the carrier's provider, or lower the MTU on its router."
	case StageThrottled:
		return "This carrier delivers only up to a certain rate, and drops what is sent beyond it: it throttles UDP, or it is that slow. " +
			"Small urgent packets still get through; keep large data off it, or ask its provider."
	case StageLossOut:
		return "Packets get lost on the way from this robot to the gateway, but hardly any on the way back. " +
			"The carrier's uplink is weak or full: look at its signal and at what else is sent over it."
	case StageLossIn:
		return "Packets get lost on the way from the gateway to this robot, but hardly any on the way out. " +
			"The carrier's downlink is weak or full: look at its signal and at what else is received over it."
	case StageLossy:
		return "This path loses so much that it helps only beside others. Look at the carrier's signal and at what else uses it."
	}
	return ""
}

// stage judges by evidence that stays valid for a while, so that it does not
// flap between two attempts.
func (m *Machine) stage(now time.Time) Stage {
	switch {
	case m.up:
		return m.troubles()
	case !m.route:
		return StageNoRoute
	case !m.died && now.Sub(m.searchAt) < startingFor:
		return StageStarting
	case m.deaf(now):
		return StageAddressNotAllowed
	case m.refused(now):
		return StageHandshakeRefused
	case m.noWayOut && now.Sub(m.lastHeard) < evidenceFor:
		return StageNoWayOut
	}
	return StageNoReply
}

// troubles names the worst of what a path that is up suffers from: what drops
// large frames or throttles also shows as loss, so it comes first.
func (m *Machine) troubles() Stage {
	switch {
	case m.sizes.State() == SearchError:
		return StageLargeLost
	case m.throttle.Rate() > 0:
		return StageThrottled
	case m.quality.way == wayOut:
		return StageLossOut
	case m.quality.way == wayIn:
		return StageLossIn
	case m.quality.lossy:
		return StageLossy
	}
	return StageUp
}

// deaf: a fresh session got no reply lately.
func (m *Machine) deaf(now time.Time) bool {
	return !m.deafAt.IsZero() && now.Sub(m.deafAt) < evidenceFor
}

// refused: the port answered lately, and several handshakes in a row were not.
func (m *Machine) refused(now time.Time) bool {
	return !m.reachableAt.IsZero() && now.Sub(m.reachableAt) < evidenceFor && m.failed >= refusedAttempts
}
