#!/bin/sh
# Installs the fogplr program and its systemd units, or removes them.
set -eu
umask 022

usage() {
	cat <<'EOF'
usage: systemd/install.sh [--uninstall] [DESTDIR]

Copies the program, the systemd units, the system user and the run-time
directories into DESTDIR. Without DESTDIR the target is this machine: then the
user and the directories are made at once and systemd reads its units again.
Running it twice is the same as running it once. Nothing is started or enabled.

--uninstall removes what was copied. On this machine it first stops and
disables the services and takes plr0 away. The files in /etc/fogplr (with your
private key), /var/lib/fogplr and the system user stay.

environment:
  PREFIX  where programs and units go (default: /usr)
  BINARY  the program to install (default: bin/fogplr of this tree)
EOF
}

action=install
case "${1:-}" in
-h | --help)
	usage
	exit 0
	;;
--uninstall)
	action=uninstall
	shift
	;;
-*)
	usage >&2
	exit 2
	;;
esac
if [ $# -gt 1 ]; then
	usage >&2
	exit 2
fi
destdir=${1:-}
destdir=${destdir%/}
prefix=${PREFIX:-/usr}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
binary=${BINARY:-$here/../bin/fogplr}

program=$prefix/bin/fogplr
unitdir=$prefix/lib/systemd/system
sysusers=$prefix/lib/sysusers.d/fogplr.conf
tmpfiles=$prefix/lib/tmpfiles.d/fogplr.conf
units="fogplr-robot.service fogplr-gateway.service"

# live is true when the target is this machine and systemd runs it.
live() {
	[ -z "$destdir" ] && [ -d /run/systemd/system ]
}

# put copies standard input to $2 with mode $1, so that a program that reads
# the file sees the old or the new one and never a part.
put() {
	mkdir -p "$(dirname "$destdir$2")"
	cat >"$destdir$2.new"
	chmod "$1" "$destdir$2.new"
	mv -f "$destdir$2.new" "$destdir$2"
}

install_all() {
	if [ ! -f "$binary" ]; then
		echo "install.sh: there is no program at $binary: run \`make build\` first, as the user who has Go, or name a program with BINARY=FILE" >&2
		exit 1
	fi
	put 0755 "$program" <"$binary"
	for unit in $units; do
		sed "s,/usr/bin/fogplr,$program,g" "$here/$unit" | put 0644 "$unitdir/$unit"
	done
	put 0644 "$sysusers" <"$here/fogplr.sysusers"
	put 0644 "$tmpfiles" <"$here/fogplr.tmpfiles"
	if live; then
		systemd-sysusers "$sysusers"
		systemd-tmpfiles --create "$tmpfiles"
		systemctl daemon-reload
	fi
}

uninstall_all() {
	if live; then
		for unit in $units; do
			if [ -f "$unitdir/$unit" ]; then
				systemctl disable --now "$unit"
			fi
		done
		if [ -x "$program" ]; then
			"$program" cleanup --all
		fi
	fi
	for unit in $units; do
		rm -f "$destdir$unitdir/$unit"
	done
	rm -f "$destdir$program" "$destdir$sysusers" "$destdir$tmpfiles"
	if live; then
		systemctl daemon-reload
	fi
}

${action}_all
