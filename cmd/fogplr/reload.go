package main

import (
	"context"
	"fmt"
	"io"

	"github.com/fogplr/fogplr/internal/control"
	"github.com/fogplr/fogplr/routing"
)

type reloadCmd struct{ socketFlag }

func (c reloadCmd) Run(a *app) error {
	path, err := c.path()
	if err != nil {
		return err
	}
	if err := control.Reload(context.Background(), path); err != nil {
		return c.advise(err, path, routing.InUse)
	}
	var out struct {
		Reloaded bool `json:"reloaded"`
		// Warnings are those of the status: what is wrong as far as that is known so
		// soon, new or not. What becomes of routes and names it tells in a moment.
		Warnings []string `json:"warnings"`
	}
	out.Reloaded, out.Warnings = true, []string{}
	if s, err := control.Status(context.Background(), path); err == nil {
		out.Warnings = append(out.Warnings, s.Warnings...)
	}
	return a.print(out, func(w io.Writer) {
		status := "`fogplr status" + c.words() + "`"
		end := "See " + status + " in a moment for how it does."
		if len(out.Warnings) > 0 {
			end = "Known so far; see " + status + " in a moment:"
		}
		fmt.Fprintln(w, "The new configuration is in use.", end)
		warnings(w, out.Warnings)
	})
}
