package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// output is standard output that remembers the first failed write, so that no
// command need look after each of them.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // the name is always /dev/stdout
	}
	o.err = err
	return n, err
}

// failed returns the first failed write as a plain sentence, or nil.
func (o *output) failed() error {
	if o.err == nil {
		return nil
	}
	return fmt.Errorf("what this command prints could not be written: %w", o.err)
}

// exposed says whether the output goes to a file that others may read.
func (o *output) exposed() bool {
	f, ok := o.w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0
}
