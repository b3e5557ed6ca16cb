// Package dds tries the profiles of internal/dds with the DDS programs of
// test/apps on a bare link that is named and sized like plr0. It needs root and
// `make apps`. It contains tests only.
package dds
