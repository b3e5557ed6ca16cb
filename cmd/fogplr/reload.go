package main

import (
	"context"
	"fmt"
	"io"

	"github.com/fogplr/fogplr/internal/control"
)

type reloadCmd struct{ socketFlag }

func (c reloadCmd) Run(a *app) error {
	path, err := c.path()
	if err != nil {
		return err
	}
	if err := control.Reload(context.Background(), path); err != nil {
		return err
	}
	var out struct {
		Reloaded bool `json:"reloaded"`
		// Warnings are those of the status: what is wrong now, new or not.
		Warnings []string `json:"warnings"`
	}
	out.Reloaded, out.Warnings = true, []string{}
	if s, err := control.Status(context.Background(), path); err == nil {
		out.Warnings = append(out.Warnings, s.Warnings...)
	}
	return a.print(out, func(w io.Writer) {
		fmt.Fprintln(w, "The new configuration is in use.")
		warnings(w, out.Warnings)
	})
}
