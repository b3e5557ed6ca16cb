package config

import (
	"slices"

	"github.com/fogplr/fogplr/internal/tables"
)

// RoleOf says what kind of node file is for, "robot" or "gateway", by its keys as
// LoadNode does. Its error is an *Error.
func RoleOf(file string) (string, error) {
	t, err := tables.Read(file, maxFile, fileExpected)
	if err != nil {
		return "", err
	}
	return roleOf(t), nil
}

func roleOf(t *tables.Table) string {
	if slices.ContainsFunc(robotKeys, t.Has) {
		return "robot"
	}
	return "gateway"
}
