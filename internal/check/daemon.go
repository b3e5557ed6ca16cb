package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/tunnel"
)

// judgeDaemon passes on what the daemon says of itself.
func judgeDaemon(f *Facts) []Finding {
	d := f.Daemon
	if d.Status == nil {
		return f.silent()
	}
	out := f.pending()
	for _, w := range d.Status.Warnings {
		out = append(out, Finding{ID: "daemon.warning", Level: Warning, Text: w})
	}
	if d.Version != "" && d.Status.Version != d.Version {
		out = append(out, f.restarts(Finding{ID: "daemon.version", Level: Note,
			Text: fmt.Sprintf("The daemon that runs is version %s, this program is %s: the new one is used after a restart.", d.Status.Version, d.Version)}))
	}
	return append(out, paths(d.Status)...)
}

// pending is about what the daemon takes over from the file at a restart alone.
func (f *Facts) pending() []Finding {
	if len(f.Config.Pending) == 0 {
		return nil
	}
	var words []string
	programs := ""
	for _, p := range f.Config.Pending {
		words = append(words, fmt.Sprintf("%s is %s, and the daemon that runs has %s", p.Key, p.File, p.Daemon))
		if p.Key == "interface" || p.Key == "address" {
			programs = fmt.Sprintf(" Programs that use %s must then be restarted, too.", f.Config.Node.Interface)
		}
	}
	return []Finding{f.restarts(Finding{ID: "daemon.pending", Level: Warning,
		Text: fmt.Sprintf("A restart is pending: in %s %s. What is said here of name, addresses, interface and MTU is about what the daemon has.", f.Config.File, strings.Join(words, "; ")) + programs})}
}

// stopped says that the daemon does not run: nobody listens on its control socket,
// and no program has its device open.
func (f *Facts) stopped() bool { return f.Daemon.Stopped && !f.running() }

// silent is about a daemon that should answer.
func (f *Facts) silent() []Finding {
	d := f.Daemon
	switch {
	case d.Forbidden:
		return []Finding{{ID: "daemon.forbidden", Level: Note, Repair: f.sudo(),
			Text: "fogplr runs, but this user may not ask it how it is: use root, or add the user to the group fogplr."}}
	case d.Silent != "":
		return []Finding{f.restarts(Finding{ID: "daemon.silent", Level: Fails, Text: d.Silent + "."})}
	case f.running():
		return []Finding{f.restarts(Finding{ID: "daemon.silent", Level: Warning,
			Text: fmt.Sprintf("A program has %s open, most likely a fogplr daemon that was started with another control_socket, since nobody answers at %s. It takes over the one in %s when it is restarted.",
				f.Config.Node.Interface, f.Config.Node.ControlSocket, f.Config.File)})}
	case d.Killed:
		return []Finding{{ID: "daemon.stopped", Level: Note, Repair: f.start(),
			Text: fmt.Sprintf("The daemon of this %s does not run, but its control socket %s is there, so it was killed or has crashed: %s may say why. "+
				"What it has left is removed at its next start, or by `%s`.", f.Config.Role, f.Config.Node.ControlSocket, f.log(), f.command("cleanup"))}}
	case d.Stopped:
		return []Finding{{ID: "daemon.stopped", Level: Note, Repair: f.start(),
			Text: fmt.Sprintf("The daemon of this %s does not run, so nothing goes through the overlay now.", f.Config.Role)}}
	}
	return nil
}

// log is where the daemon has logged what it did.
func (f *Facts) log() string {
	if unit := config.Unit(f.Config.File); unit != "" {
		return "`journalctl -u " + unit + "`"
	}
	return "its log"
}

// paths says once what each hint of the status is about.
func paths(s *tunnel.Status) []Finding {
	unusable := map[int]bool{} // slots, which judgeCarriers tells
	for _, c := range s.Carriers {
		unusable[c.Slot] = c.Problem != ""
	}
	type hint struct {
		up   bool
		text string
	}
	var hints []hint
	about := map[hint][]string{}
	up := 0
	for _, peer := range s.Peers {
		for i := range peer.Paths {
			p := &peer.Paths[i]
			if p.Up {
				up++
			}
			if p.Hint == "" || p.Stage == "starting" || unusable[p.Slot] {
				continue
			}
			h := hint{p.Up, p.Hint}
			if about[h] == nil {
				hints = append(hints, h)
			}
			about[h] = append(about[h], p.Carrier+" to "+peer.Name)
		}
	}
	level := Warning
	if s.Role == "robot" && up == 0 {
		level = Fails
	}
	if s.Role == "gateway" {
		level = Note // robots come and go
	}
	var out []Finding
	for _, h := range hints {
		list, more := about[h], ""
		if n := len(list) - namesShown; n > 0 {
			list, more = slices.Clone(list[:namesShown]), fmt.Sprintf(" and %d more", n)
		}
		text := strings.Join(list, ", ") + more + ": " + h.text
		if !h.up {
			text = "Not up: " + strings.Join(list, ", ") + more + ". " + h.text
		}
		out = append(out, Finding{ID: "daemon.path", Level: level, Text: text})
	}
	return out
}
