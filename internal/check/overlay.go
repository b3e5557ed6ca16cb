package check

import (
	"fmt"

	"github.com/fogplr/fogplr/internal/config"
)

// judgeOverlay looks at the overlay's own interface and prefix.
func judgeOverlay(f *Facts) []Finding {
	if f.Network == nil || f.Config.Node == nil {
		return nil
	}
	var out []Finding
	for _, w := range f.Network.Warnings {
		out = append(out, Finding{ID: "overlay.conflict", Level: Warning, Text: w})
	}
	name := f.Config.Node.Interface
	l := f.overlay()
	switch {
	case l == nil && f.Daemon.Status != nil:
		out = append(out, f.restarts(Finding{ID: "overlay.missing", Level: Fails,
			Text: fmt.Sprintf("There is no interface %s although fogplr runs: somebody has removed it. Programs that used it have to be restarted after fogplr.", name)}))
	case l == nil:
		out = append(out, Finding{ID: "overlay.missing", Level: Note, Repair: f.start(),
			Text: fmt.Sprintf("There is no interface %s yet. fogplr makes it when it starts; DDS looks for interfaces only at its own start, so start ROS 2 after fogplr.", name)})
	case f.tenant() != "":
		out = append(out, Finding{ID: "overlay.taken", Level: Fails, Text: config.Taken(f.Config.Role, f.Config.File, name, f.tenant()) + "."})
	case !l.TUN:
		out = append(out, Finding{ID: "overlay.taken", Level: Fails,
			Text: fmt.Sprintf("%s exists and is no TUN device, so fogplr cannot use it. Remove it, or give interface in %s another name.", name, f.Config.File)})
	default:
		if !l.Multicast {
			out = append(out, Finding{ID: "overlay.multicast", Level: Warning, Repair: fmt.Sprintf("ip link set dev %s multicast on", name),
				Text: fmt.Sprintf("%s has no MULTICAST flag, so DDS does not look for other machines there. fogplr sets the flag when it starts.", name)})
		}
		if want := f.Config.Node.MTU; f.Daemon.Status != nil && l.MTU != want {
			out = append(out, Finding{ID: "overlay.mtu", Level: Warning, Repair: fmt.Sprintf("ip link set dev %s mtu %d", name, want),
				Text: fmt.Sprintf("%s has an MTU of %d bytes, and fogplr set it to %d: somebody has changed it.", name, l.MTU, want)})
		}
	}
	return out
}
