package check

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"github.com/fogplr/fogplr/internal/config"
)

// judgeDDS looks at where DDS is pointed, in this environment and in the programs
// that run.
func judgeDDS(f *Facts) []Finding {
	if f.Config.Node == nil {
		return nil
	}
	out := f.before()
	out = append(out, f.elsewhere()...)
	return append(out, f.shell()...)
}

// named is what a profile has to name: the overlay's interface, or one of its
// addresses.
func named(n *config.Node) []string {
	words := []string{n.Interface}
	for _, a := range n.Addresses {
		words = append(words, a.Addr().String())
	}
	return words
}

// mentioned returns which of the words stand in an XML text, each alone or in a
// list, as an attribute or as text. Comments do not count.
func mentioned(text string, words []string) []string {
	var found []string
	look := func(s string) {
		for _, part := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(", \t\r\n;", r) }) {
			if slices.Contains(words, part) && !slices.Contains(found, part) {
				found = append(found, part)
			}
		}
	}
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict = false
	for {
		token, err := d.Token()
		if err != nil {
			return found
		}
		switch t := token.(type) {
		case xml.CharData:
			look(string(t))
		case xml.StartElement:
			for _, a := range t.Attr {
				look(a.Value)
			}
		}
	}
}

// pointing is where a profile points.
type pointing int

const (
	unset pointing = iota
	here
	away
	unread
)

func (s Setting) points(words []string) pointing {
	switch {
	case s.Value == "":
		return unset
	case s.Problem != "":
		return unread
	case len(mentioned(s.Text, words)) > 0:
		return here
	}
	return away
}

// settings are those that count for the vendor in use, both when it is not known.
func (p *Profile) settings() []Setting {
	switch {
	case strings.Contains(p.RMW, "cyclone"):
		return []Setting{p.Cyclone}
	case strings.Contains(p.RMW, "fastrtps"), strings.Contains(p.RMW, "fastdds"):
		return []Setting{p.FastDDS}
	}
	return []Setting{p.Cyclone, p.FastDDS}
}

// points says whether the profile points to the overlay.
func (p *Profile) points(words []string) bool {
	return slices.ContainsFunc(p.settings(), func(s Setting) bool { return s.points(words) == here })
}

// evalEnv points a shell to the overlay.
func (f *Facts) evalEnv() string { return `eval "$(` + f.command("env") + `)"` }

// shell is about the environment of this check.
func (f *Facts) shell() []Finding {
	words := named(f.Config.Node)
	var out []Finding
	for _, o := range f.Shell.Obstacles {
		out = append(out, Finding{ID: "dds.obstacle", Level: Warning, Text: o + "."})
	}
	set := false
	for _, s := range f.Shell.settings() {
		found := Finding{ID: "dds.profile", Level: Warning, Repair: f.evalEnv()}
		switch s.points(words) {
		case unset:
			continue
		case here:
			out = append(out, f.mute(s)...)
		case away:
			found.Text = fmt.Sprintf("%s points DDS to a profile that does not name %s (%s), so what this shell starts talks by other interfaces, in clear.", s.Variable, f.Config.Node.Interface, s.Value)
			out = append(out, found)
		case unread:
			found.Text = fmt.Sprintf("%s points DDS to a profile that cannot be read (%s), so what this shell starts fails or talks by other interfaces.", s.Variable, s.Problem)
			out = append(out, found)
		}
		set = true
	}
	pointed := slices.ContainsFunc(f.Programs, func(p Program) bool { return p.Profile != nil && p.Profile.points(words) })
	if !set && !pointed {
		out = append(out, Finding{ID: "dds.environment", Level: Note, Repair: f.evalEnv(),
			Text: fmt.Sprintf("This environment does not point DDS to %s. The shell or unit that starts ROS 2 has to, on every robot and replica; sudo drops the variables, so run this check without it to see them.", f.Config.Node.Interface)})
	}
	return out
}

// mute is about interfaces without multicast beside the overlay's: with one of
// them Cyclone DDS uses multicast on none.
func (f *Facts) mute(s Setting) []Finding {
	if f.Network == nil || s.Variable != f.Shell.Cyclone.Variable {
		return nil
	}
	var names []string
	for _, l := range f.Network.Links {
		if !l.Multicast && l.Name != f.Config.Node.Interface {
			names = append(names, l.Name)
		}
	}
	names = mentioned(s.Text, names)
	if len(names) == 0 {
		return nil
	}
	return []Finding{{ID: "dds.multicast", Level: Warning, Repair: fmt.Sprintf("ip link set dev %s multicast on", names[0]),
		Text: fmt.Sprintf("The profile in %s names %s as well, which has no MULTICAST flag: Cyclone DDS then looks for nobody by multicast, on %s neither.", s.Variable, list(names), f.Config.Node.Interface)}}
}

// before is about programs that were started before the overlay's interface was
// there, and so do not know it.
func (f *Facts) before() []Finding {
	if f.Network == nil {
		return nil
	}
	l := f.overlay()
	var late []Program
	for _, p := range f.Programs {
		if l == nil || p.Started > 0 && p.Started < l.Addressed {
			late = append(late, p)
		}
	}
	if len(late) == 0 {
		return nil
	}
	name := f.Config.Node.Interface
	was := fmt.Sprintf("before %s was there", name)
	if l == nil {
		was = fmt.Sprintf("while there is no %s yet", name)
	}
	var out []Finding
	if i := slices.IndexFunc(late, func(p Program) bool { return p.ROSDaemon }); i >= 0 {
		out = append(out, Finding{ID: "dds.ros_daemon", Level: Warning, Repair: "ros2 daemon stop",
			Text: fmt.Sprintf("The daemon of the ros2 command (process %d) was started %s and looks for interfaces only then, so ros2 node list and its like do not show what is behind %s. The command starts a new one by itself.", late[i].PID, was, name)})
		late = slices.DeleteFunc(late, func(p Program) bool { return p.ROSDaemon })
	}
	if len(late) > 0 {
		out = append(out, Finding{ID: "dds.before", Level: Warning, Repair: restart(late),
			Text: fmt.Sprintf("%s: started %s, and DDS looks for interfaces only at its start, so the other nodes are not found. Restart what should use %s, after fogplr.", programs(late), was, name)})
	}
	return out
}

// restart is the command that restarts those of the programs that are services.
func restart(list []Program) string {
	var units []string
	for _, p := range list {
		if p.Unit != "" && !slices.Contains(units, p.Unit) {
			units = append(units, p.Unit)
		}
	}
	if len(units) == 0 {
		return ""
	}
	return "systemctl restart " + strings.Join(units, " ")
}

func programs(list []Program) string {
	var words []string
	for _, p := range list[:min(len(list), namesShown)] {
		words = append(words, fmt.Sprintf("%s (process %d)", p.Name, p.PID))
	}
	if n := len(list) - namesShown; n > 0 {
		words = append(words, fmt.Sprintf("%d more", n))
	}
	return strings.Join(words, ", ")
}

// elsewhere is about programs whose environment points DDS elsewhere.
func (f *Facts) elsewhere() []Finding {
	words := named(f.Config.Node)
	var away []Program
	for _, p := range f.Programs {
		if p.Profile != nil && !p.Profile.points(words) {
			away = append(away, p)
		}
	}
	if len(away) == 0 {
		return nil
	}
	return []Finding{{ID: "dds.program", Level: Note, Repair: f.evalEnv(),
		Text: fmt.Sprintf("%s: started without a profile that names %s, so what DDS sends may leave by an uplink, in clear, or not at all. Set the variables where they are started, and restart them.", programs(away), f.Config.Node.Interface)}}
}
