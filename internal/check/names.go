package check

import "fmt"

// judgeNames looks at the host names of endpoints.
func judgeNames(f *Facts) []Finding {
	var out []Finding
	for _, n := range f.Names {
		switch {
		case len(n.Addrs) > 0 || n.Problem == "":
		case n.Never:
			out = append(out, Finding{ID: "dns.name", Level: Fails,
				Text: fmt.Sprintf("There is no host %s (%s), so its gateway cannot be reached. Correct the endpoint in %s.", n.Host, n.Problem, f.Config.File)})
		default:
			out = append(out, Finding{ID: "dns.name", Level: Warning,
				Text: fmt.Sprintf("The address of %s cannot be found out now (%s), so its gateway cannot be reached until it can. "+
					"Is there a carrier with a connection, and does /etc/resolv.conf name a server that answers?", n.Host, n.Problem)})
		}
	}
	return out
}
