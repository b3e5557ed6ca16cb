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
)

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
	}
	return ""
}

// stage judges by evidence that stays valid for a while, so that it does not
// flap between two attempts.
func (m *Machine) stage(now time.Time) Stage {
	switch {
	case m.up:
		return StageUp
	case !m.route:
		return StageNoRoute
	case !m.died && now.Sub(m.searchAt) < startingFor:
		return StageStarting
	case m.deaf(now):
		return StageAddressNotAllowed
	case m.refused(now):
		return StageHandshakeRefused
	}
	return StageNoReply
}

// deaf: a fresh session got no reply lately.
func (m *Machine) deaf(now time.Time) bool {
	return !m.deafAt.IsZero() && now.Sub(m.deafAt) < evidenceFor
}

// refused: the port answered lately, and several handshakes in a row were not.
func (m *Machine) refused(now time.Time) bool {
	return !m.reachableAt.IsZero() && now.Sub(m.reachableAt) < evidenceFor && m.failed >= refusedAttempts
}
