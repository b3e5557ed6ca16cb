// Package systemd holds the tests of the units in systemd/: a robot and two
// gateways, each a Debian machine booted by systemd-nspawn, installed and
// started as a user would. They need root, a Debian mirror once (the root file
// system is kept), debootstrap, systemd-nspawn and Linux 5.7 or newer.
package systemd
