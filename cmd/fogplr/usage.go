package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// plainArgs lets `fogplr help COMMAND` and `fogplr --version` be what they are
// elsewhere.
func plainArgs(args []string) []string {
	if len(args) > 0 && args[0] == "help" {
		return append(slices.Clone(args[1:]), "--help")
	}
	if i := slices.Index(args, "--version"); i == 0 || i == 1 && args[0] == "--json" {
		args = slices.Clone(args)
		args[i] = "version"
	}
	return args
}

// missing matches what kong says of a flag at the end that wants a value.
var missing = regexp.MustCompile(`^(--[a-z-]+): (expected .* value but got "EOL"|missing value)`)

// usage puts what the parser found wrong into a plain sentence.
func usage(err error) error {
	if m := missing.FindStringSubmatch(err.Error()); m != nil {
		err = errors.New(m[1] + " needs a value behind it")
	}
	return usageError{fmt.Errorf("%w (fogplr --help lists the commands)", err)}
}

// fileName is a flag that names a file or folder.
type fileName string

// UnmarshalText refuses an empty name, such as an unset variable of a shell.
func (f *fileName) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		return errors.New("the name of the file is empty")
	}
	*f = fileName(b)
	return nil
}

// port is a flag that is a UDP port.
type port uint16

// Decode reads 1 to 65535.
func (p *port) Decode(ctx *kong.DecodeContext) error {
	t, err := ctx.Scan.PopValue("port")
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(t.String()), 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("%s is no port, which is a whole number from 1 to 65535", t)
	}
	*p = port(n)
	return nil
}
