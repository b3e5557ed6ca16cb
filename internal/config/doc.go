// Package config reads robot.toml and gateway.toml. It reports every problem of
// a file at once, each with its line, and renders the commented files that
// `fogplr init` writes.
package config
