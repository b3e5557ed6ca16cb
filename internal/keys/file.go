package keys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/fogplr/fogplr/internal/files"
)

// ReadPrivate reads the private key in file: one line of base64. The warning is
// a plain sentence when others than the owner may read the file, else empty.
// The errors are plain sentences that name the file and never its content.
func ReadPrivate(file string) (k Private, warning string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return k, "", openError(file, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return k, "", fmt.Errorf("cannot read the private key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return k, "", fmt.Errorf("%s is not a file, so it cannot hold a private key", file)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return k, "", fmt.Errorf("cannot read the private key: %w", err)
	}
	if len(b) > maxFile {
		return k, "", fmt.Errorf("%s is too long for a private key: expected one line of 44 characters, as `fogplr keygen` writes it", file)
	}
	k, err = ParsePrivate(string(b))
	if err != nil {
		return k, "", fmt.Errorf("%s does not hold a private key: its content is %w; expected one line of 44 characters, as `fogplr keygen` writes it", file, err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		warning = fmt.Sprintf("%s can be read or written by others than its owner (mode %04o), and who has this key can take this node's place: run `chmod 600 %s`", file, mode, file)
	}
	return k, warning, nil
}

func openError(file string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the private key file %s does not exist: make one with `(umask 077; fogplr keygen > %s)`: %w", file, file, fs.ErrNotExist)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("this user may not read the private key file %s: %w", file, fs.ErrPermission)
	}
	return fmt.Errorf("cannot read the private key: %w", err)
}

// WritePrivate writes k to file with mode 0600. Unless force is true it does not
// replace a file that is there: then the error wraps fs.ErrExist.
func WritePrivate(file string, k Private, force bool) error {
	put := files.Create
	if force {
		put = files.Replace
	}
	err := put(file, []byte(k.Base64()+"\n"), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already and is not replaced, since the old key would be lost: %w", file, fs.ErrExist)
	}
	if err != nil {
		return fmt.Errorf("cannot write the private key: %w", err)
	}
	return nil
}
