package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/fogplr/fogplr/internal/config"
	"github.com/fogplr/fogplr/internal/keys"
)

type keygenCmd struct{}

func (keygenCmd) Run(a *app) error {
	if a.stdout.exposed() {
		fmt.Fprintln(a.stderr, "fogplr: others may read the file that this key goes to; `umask 077` beforehand, or `chmod 600` now, keeps it secret")
	}
	k := keys.Generate()
	return a.print(struct {
		PrivateKey string `json:"private_key"`
	}{k.Base64()}, func(w io.Writer) { fmt.Fprintln(w, k.Base64()) })
}

type pubkeyCmd struct {
	Robot bool `help:"Print a robot's carrier_keys, which are derived from its key, for a [[robot]] in gateway.toml."`
}

func (c pubkeyCmd) Run(a *app) error {
	const longest = 1024 // bytes; a key takes 45
	if terminal(a.stdin) {
		fmt.Fprintln(a.stderr, "fogplr: waiting for a private key: paste it, then press Enter and Ctrl-D. From a file: fogplr pubkey < node.key")
	}
	b, err := io.ReadAll(io.LimitReader(a.stdin, longest))
	if err != nil {
		return fmt.Errorf("cannot read the private key from standard input: %w", err)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return usageError{errors.New("standard input is empty: give it the private key, as with `fogplr pubkey < node.key` (`fogplr keygen` makes one)")}
	}
	k, err := keys.ParsePrivate(string(b))
	if err != nil {
		return usageError{fmt.Errorf("standard input is no private key: it is %w; expected one line of 44 characters, as `fogplr keygen` writes it", err)}
	}
	if !c.Robot {
		return a.print(struct {
			PublicKey keys.Public `json:"public_key"`
		}{k.PublicKey()}, func(w io.Writer) { fmt.Fprintln(w, k.PublicKey()) })
	}
	all := keys.CarrierPublicKeys(k)
	return a.print(struct {
		CarrierKeys []keys.Public `json:"carrier_keys"`
	}{all[:]}, func(w io.Writer) { fmt.Fprintln(w, config.CarrierKeysLine(all[:])) })
}

// terminal says whether r is one, at which a person may not know what is awaited.
func terminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
