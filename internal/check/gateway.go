package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fogplr/fogplr/internal/check/firewall"
	"github.com/fogplr/fogplr/routing"
)

// judgeGateway looks at a gateway's ports, and at what lies behind it.
func judgeGateway(f *Facts) []Finding {
	if f.Config.Role != "gateway" {
		return nil
	}
	return append(f.taken(), f.behind()...)
}

// taken is about ports that others have.
func (f *Facts) taken() []Finding {
	if f.running() {
		return nil // fogplr has them itself, or says what it lacks
	}
	var out []Finding
	for _, h := range f.Ports {
		if !slices.Contains(f.Config.Ports, h.Port) {
			continue
		}
		found := Finding{ID: "gateway.port", Level: Fails}
		who := fmt.Sprintf("%s (process %d)", h.Name, h.PID)
		switch {
		case h.PID == 0:
			who = "another program"
			if vpn := f.kernelWireGuard(); vpn != "" {
				who = "another program, most likely the kernel's WireGuard (" + vpn + ")"
				found.Repair = "wg-quick down " + vpn
			}
		case h.Unit != "":
			found.Repair = "systemctl stop " + h.Unit
		default:
			found.Repair = fmt.Sprintf("kill %d", h.PID)
		}
		found.Text = fmt.Sprintf("UDP port %d is taken by %s, so the gateway cannot start. If that program is needed, give another listen_port in %s, and its number in the endpoint of every robot.",
			h.Port, who, f.Config.File)
		out = append(out, found)
	}
	return out
}

func (f *Facts) kernelWireGuard() string {
	if f.Network == nil {
		return ""
	}
	for _, l := range f.Network.Links {
		if l.Kind == "wireguard" {
			return l.Name
		}
	}
	return ""
}

// behind is about services that do not run on the gateway itself. fogplr delivers
// to the gateway's own addresses alone; whoever sends on from there needs the
// kernel's forwarding.
func (f *Facts) behind() []Finding {
	if f.Network == nil || f.Config.Node == nil {
		return nil
	}
	what := ""
	i := slices.IndexFunc(f.Network.Links, func(l routing.LinkFacts) bool { return l.Kind == "bridge" && l.Up && len(l.Addresses) > 0 })
	switch {
	case f.Firewall != nil && f.Firewall.DNAT:
		what = "the packet filter sends some packets on to other machines or containers (dnat)"
	case i >= 0:
		what = fmt.Sprintf("there are virtual machines or containers behind %s", f.Network.Links[i].Name)
	default:
		return nil
	}
	if f.Kernel.Forwards != nil && !*f.Kernel.Forwards {
		return []Finding{{ID: "gateway.ip_forward", Level: Warning, Repair: "sysctl -w net.ipv4.ip_forward=1",
			Text: "The kernel does not forward packets (net.ipv4.ip_forward=0), but " + what + ". If the robots' service runs there, no request reaches it. To keep the setting over a reboot, write it to a file in /etc/sysctl.d."}}
	}
	if f.Firewall == nil {
		return nil
	}
	where, blocked := f.Firewall.Blocks("forward", firewall.Packet{Port: ddsFirst, In: f.Config.Node.Interface, V6: f.only6()})
	if !blocked {
		return nil
	}
	return []Finding{{ID: "gateway.forward_policy", Level: Note, Repair: letIn(where, "", f.Config.Node.Interface),
		Text: fmt.Sprintf("The packet filter (%s) forwards nothing that comes from %s, but %s. If the robots' service runs there, no request reaches it.", where, f.Config.Node.Interface, what)}}
}

// only6 says that the overlay has no IPv4 address.
func (f *Facts) only6() bool {
	for _, a := range f.Config.Node.Addresses {
		if a.Addr().Is4() {
			return false
		}
	}
	return true
}

// judgeFirewall says what a packet filter keeps out for sure. It is a hint: what
// cannot be judged is left out, and so are filters on other machines.
func judgeFirewall(f *Facts) []Finding {
	if f.Firewall == nil || f.Config.Node == nil {
		return nil
	}
	name := f.Config.Node.Interface
	var out []Finding
	for _, port := range f.Config.Ports {
		where, blocked := f.Firewall.Blocks("input", firewall.Packet{Port: port, Inside: []string{name}})
		if !blocked {
			continue
		}
		out = append(out, Finding{ID: "firewall.port", Level: Warning, Repair: letIn(where, fmt.Sprint(port), ""),
			Text: fmt.Sprintf("The packet filter (%s) accepts nothing on UDP port %d as far as can be seen, so robots do not reach this gateway.", where, port)})
	}
	for _, port := range []uint16{ddsFirst, ddsFirst + 10} {
		where, blocked := f.Firewall.Blocks("input", firewall.Packet{Port: port, In: name, V6: f.only6()})
		if !blocked {
			continue
		}
		out = append(out, Finding{ID: "firewall.dds", Level: Warning, Repair: letIn(where, "", name),
			Text: fmt.Sprintf("The packet filter (%s) drops what arrives at %s, as far as can be seen, so DDS does not find programs on the other nodes. Only nodes whose keys stand in the configuration can send there.", where, name)})
		break
	}
	return out
}

// iptablesTable is how the tables of iptables are called here.
const iptablesTable = "iptables-"

// split takes a chain's full name apart.
func split(where string) (family, table, chain string) {
	f := append(strings.Fields(where), "", "", "")
	return f[0], f[1], f[2]
}

// letIn is the command that lets a UDP port, or all that arrives by an interface,
// through the chain.
func letIn(where, port, iface string) string {
	family, table, chain := split(where)
	switch {
	case strings.HasPrefix(table, "firewalld") && port != "":
		return "firewall-cmd --permanent --add-port=" + port + "/udp && firewall-cmd --reload"
	case strings.HasPrefix(table, "firewalld"):
		return "firewall-cmd --permanent --zone=trusted --add-interface=" + iface + " && firewall-cmd --reload"
	case strings.HasPrefix(table, iptablesTable):
		command := "iptables"
		if family == "ip6" {
			command = "ip6tables"
		}
		if port != "" {
			return fmt.Sprintf("%s -I %s -p udp --dport %s -j ACCEPT", command, chain, port)
		}
		return fmt.Sprintf("%s -I %s -i %s -j ACCEPT", command, chain, iface)
	case port != "":
		return fmt.Sprintf("nft insert rule %s %s %s udp dport %s accept", family, table, chain, port)
	}
	return fmt.Sprintf("nft insert rule %s %s %s iifname %s accept", family, table, chain, iface)
}
