package tunnel

import (
	"time"

	"github.com/fogplr/fogplr/replicate"
)

// judgeLatent looks for a path whose copies stopped while its twins' go on. The
// caller holds inward.mu.
func (n *node) judgeLatent(p *peer, now time.Time) {
	var frames [replicate.MaxSlot + 1]int
	for l := range p.paths() {
		frames[l.slot], l.rxData = l.rxData, 0
	}
	expected := replicate.SlotSet(p.carries.Load())
	began, ended := p.latent.Observe(now, &frames, expected)
	if began|ended == 0 {
		return
	}
	for l := range p.paths() {
		switch {
		case began.Has(l.slot):
			n.cfg.Log.Warn("Latent error: copies stopped coming by this path while others go on. Nothing is lost, but there is less in reserve.",
				"peer", p.name, "carrier", l.carrier)
		case ended.Has(l.slot) && expected.Has(l.slot): // else the path is down, and told so
			n.cfg.Log.Info("Latent error over.", "peer", p.name, "carrier", l.carrier)
		}
	}
}
