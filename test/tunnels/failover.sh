#!/bin/sh
# Keeps a robot's way to its gateways on the best carrier that works, as many
# robots do it today:
#
#   failover.sh GATEWAY... -- CARRIER...
#
# GATEWAY is a gateway's public address, CARRIER an interface, the best one first.
#
# Every second it pings all gateways through every carrier; a carrier answers when
# one of the gateways does. When the carrier in use has not answered three times
# in a row, the host routes to all gateways move to the best carrier that answers.
# When a better carrier has answered three times in a row, they move back. Three is
# what such scripts usually have: with fewer, a little loss would do. With one
# carrier there is nothing to choose, and it only keeps the routes.
#
# The carriers' routers are taken from their default routes. Host routes, by
# metric: 10 the carrier in use; from 20 on all carriers, so that pings find their
# way and the kernel has another one when an interface goes down; 1000
# "unreachable", so that no carrier is used that is not in the list.
set -u

# Times in a row.
leave_after=3 return_after=3

gateways=
while [ "$1" != -- ]; do
	gateways="$gateways $1"
	shift
done
shift
carriers=$*
current=$1

# next_hop prints what stands between destination and device in a route through
# the carrier: nothing on a point-to-point device. It fails when the carrier has
# no default route.
next_hop() {
	set -- $(ip -4 route show default dev "$1" 2>/dev/null)
	case "$*" in
	"default via "*) echo "via $3" ;;
	"default "*) ;;
	*) return 1 ;;
	esac
}

# routes writes them as lines for ip -batch.
routes() {
	metric=19
	for carrier in $carriers; do
		metric=$((metric + 1))
		hop=$(next_hop "$carrier") || continue
		for gateway in $gateways; do
			echo "route replace $gateway $hop dev $carrier metric $metric"
			if [ "$carrier" = "$current" ]; then
				echo "route replace $gateway $hop dev $carrier metric 10"
			fi
		done
	done
	for gateway in $gateways; do
		echo "route replace unreachable $gateway metric 1000"
	done
}

# keep_routes makes the routes what they should be.
keep_routes() {
	routes | ip -4 -force -batch -
}

# ask pings once through every carrier, for a second, and leaves in $answered the
# carriers that answer.
ask() {
	jobs=
	for carrier in $carriers; do
		for gateway in $gateways; do
			ping -n -q -c 1 -W 1 -I "$carrier" "$gateway" >/dev/null 2>&1 &
			jobs="$jobs $carrier:$!"
		done
	done
	answered=" "
	for job in $jobs; do
		if wait "${job#*:}"; then
			answered="$answered${job%:*} "
		fi
	done
}

# judge counts what ask found, and chooses the carrier to use.
judge() {
	first= better= passed= missed=0 i=0
	for carrier in $carriers; do
		i=$((i + 1))
		eval "good=\${good_$i:-0} bad=\${bad_$i:-0}"
		case $answered in
		*" $carrier "*) good=$((good + 1)) bad=0 first=${first:-$carrier} ;;
		*) good=0 bad=$((bad + 1)) ;;
		esac
		eval "good_$i=$good bad_$i=$bad"
		if [ "$carrier" = "$current" ]; then
			passed=yes missed=$bad
		elif [ -z "$passed" ] && [ "$good" -ge "$return_after" ]; then
			better=${better:-$carrier}
		fi
	done
	if [ "$missed" -ge "$leave_after" ]; then
		better=$first
	fi
	if [ -n "$better" ] && [ "$better" != "$current" ]; then
		echo "$(date +%T.%N) from $current to $better"
		current=$better
	fi
}

keep_routes
while :; do
	sleep 1 &
	pause=$!
	if [ "$carriers" != "$current" ]; then
		ask
		judge
	fi
	keep_routes
	wait "$pause"
done
