// Package tables reads strict TOML documents, whose every mistake is told with
// file, line and key. Keys are asked for one by one; what nobody asked for is a
// mistake too.
package tables
