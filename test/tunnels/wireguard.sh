#!/bin/sh
# Runs wireguard-go as wg0 until it is killed:
#
#   unshare --mount sh wireguard.sh PROGRAM CONFIG ADDRESS/PREFIX MTU
#
# The nodes of a laboratory share the file system, and wireguard-go names its
# control socket after the interface alone. So each node gets a folder of its own
# for it.
set -eu
program=$1 config=$2 address=$3 mtu=$4
sockets=/var/run/wireguard

configure() {
	until [ -S "$sockets/wg0.sock" ]; do
		sleep 0.02
	done
	sleep 0.02 # until it listens as well
	wg setconf wg0 "$config" &&
		ip address add "$address" dev wg0 &&
		ip link set wg0 mtu "$mtu" up
}

mkdir -p "$sockets"
mount -t tmpfs wireguard "$sockets"
# The process that starts as this shell becomes wireguard-go: whoever waits for
# its end knows that wg0 and the UDP port are free again.
{ configure || kill $$; } &
exec "$program" -f wg0
