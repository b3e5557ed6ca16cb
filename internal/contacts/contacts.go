// Package contacts keeps in a file where a gateway's robots were last heard from,
// so that a gateway that is started again can call them before they notice that
// it was gone.
package contacts

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/fogplr/fogplr/internal/files"
	"github.com/fogplr/fogplr/internal/keys"
	"github.com/fogplr/fogplr/tunnel"
)

// book is the content of the file.
type book struct {
	Version  int     `json:"version"`
	Contacts []entry `json:"contacts"`
}

type entry struct {
	CarrierKey keys.Public    `json:"carrier_key"`
	Endpoint   netip.AddrPort `json:"endpoint"`
	Local      netip.AddrPort `json:"local,omitzero"`
}

const bookVersion = 1

// Load returns the contacts in file, none if it is not there.
func Load(file string) ([]tunnel.Contact, error) {
	b, err := files.Read(file, maxFile)
	if b == nil || err != nil {
		return nil, err
	}
	all, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

func decode(b []byte) ([]tunnel.Contact, error) {
	var content book
	if err := files.Decode(b, maxFile, &content); err != nil {
		return nil, err
	}
	if content.Version != bookVersion {
		return nil, fmt.Errorf("it has version %d, not %d", content.Version, bookVersion)
	}
	var all []tunnel.Contact
	for _, e := range content.Contacts {
		if a := e.Endpoint.Addr(); !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || e.Endpoint.Port() == 0 {
			return nil, fmt.Errorf("%v is no address of a carrier", e.Endpoint)
		}
		if l := e.Local; l.IsValid() && (l.Addr().Is4() != e.Endpoint.Addr().Is4() || l.Addr().IsMulticast() || l.Port() == 0) {
			return nil, fmt.Errorf("%v is no address to reach %v from", l, e.Endpoint)
		}
		all = append(all, tunnel.Contact{Key: tunnel.Key(e.CarrierKey), Endpoint: e.Endpoint, Local: e.Local})
	}
	return all, nil
}

// Save puts contacts in the place of those in file.
func Save(file string, contacts []tunnel.Contact) error {
	content := book{Version: bookVersion, Contacts: []entry{}}
	for _, c := range contacts {
		content.Contacts = append(content.Contacts, entry{keys.Public(c.Key), c.Endpoint, c.Local})
	}
	b, err := json.MarshalIndent(content, "", " ")
	if err == nil {
		err = files.Replace(file, append(b, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot keep where the robots are: %w", err)
	}
	return nil
}
