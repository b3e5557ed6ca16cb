// Package contacts keeps in a file where a gateway's robots were last heard from,
// so that a gateway that is started again can call them before they notice that
// it was gone.
package contacts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"

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
}

const bookVersion = 1

// Load returns the contacts in file, none if it is not there.
func Load(file string) ([]tunnel.Contact, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	all, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

func decode(b []byte) ([]tunnel.Contact, error) {
	if len(b) > maxFile {
		return nil, fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	var content book
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&content); err != nil {
		return nil, fmt.Errorf("it is not the JSON that fogplr writes: %w", err)
	}
	if content.Version != bookVersion {
		return nil, fmt.Errorf("it has version %d, not %d", content.Version, bookVersion)
	}
	var all []tunnel.Contact
	for _, e := range content.Contacts {
		if a := e.Endpoint.Addr(); !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || e.Endpoint.Port() == 0 {
			return nil, fmt.Errorf("%v is no address of a carrier", e.Endpoint)
		}
		all = append(all, tunnel.Contact{Key: tunnel.Key(e.CarrierKey), Endpoint: e.Endpoint})
	}
	return all, nil
}

// Save puts contacts in the place of those in file.
func Save(file string, contacts []tunnel.Contact) error {
	content := book{Version: bookVersion, Contacts: []entry{}}
	for _, c := range contacts {
		content.Contacts = append(content.Contacts, entry{keys.Public(c.Key), c.Endpoint})
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
