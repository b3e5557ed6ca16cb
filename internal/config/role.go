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
	if slices.ContainsFunc(robotKeys, t.Has) {
		return "robot", nil
	}
	return "gateway", nil
}
