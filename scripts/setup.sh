#!/bin/sh
# Installs what is missing: setup.sh go | run | test. It asks before nothing and
# changes nothing that is there already. As root on a Debian-like system; else
# it says what to install.
set -eu

go_needed=1.26
# runsc comes from its Go module: the packaged one is years old. Pinned, so
# that results can be compared.
runsc_version=v0.0.0-20260905035102-160fafc42237
runsc_dir=/usr/local/lib/tare/bin

say() { printf 'setup: %s\n' "$*" >&2; }

packages() { # installs those of "program:package" whose program is missing
	missing=
	for pair; do
		command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
	done
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		say "please install:$missing"
		return 0 # tare itself says what it cannot do without them
	fi
	say "installing$missing"
	export DEBIAN_FRONTEND=noninteractive
	# shellcheck disable=SC2086 # a list of words
	apt-get install -qq -y --no-install-recommends $missing >/dev/null 2>&1 ||
		{ apt-get update -qq && apt-get install -qq -y --no-install-recommends $missing >/dev/null; }
}

have_go() {
	command -v go >/dev/null 2>&1 || return 1
	v=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || return 1
	[ "$(printf '%s\n%s\n' "go$go_needed" "$v" | sort -V | head -n 1)" = "go$go_needed" ] && return 0
	# From 1.21 on an older go fetches the toolchain that go.mod asks for.
	[ "$(printf '%s\n%s\n' go1.21 "$v" | sort -V | head -n 1)" = go1.21 ]
}

setup_go() {
	have_go && return 0
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		say "installing Go"
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -qq
		# Where backports are known they are newer; plain otherwise.
		codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
		apt-get install -qq -y --no-install-recommends -t "$codename-backports" golang-go ca-certificates >/dev/null 2>&1 ||
			apt-get install -qq -y --no-install-recommends golang-go ca-certificates >/dev/null
	fi
	have_go || { say "Go $go_needed or later is needed: see https://go.dev/doc/install"; exit 1; }
}

setup_runsc() {
	[ -x "$runsc_dir/runsc" ] && [ "$(cat "$runsc_dir/runsc.version" 2>/dev/null)" = "$runsc_version" ] && return 0
	if command -v runsc >/dev/null 2>&1; then
		return 0 # the user's own
	fi
	if ! mkdir -p "$runsc_dir" 2>/dev/null || ! [ -w "$runsc_dir" ]; then
		say "runsc is missing and $runsc_dir cannot be written; run as root"
		return 0
	fi
	say "building runsc $runsc_version (a minute or two)"
	if GOBIN=$runsc_dir CGO_ENABLED=0 go install "gvisor.dev/gvisor/runsc@$runsc_version"; then
		echo "$runsc_version" >"$runsc_dir/runsc.version"
	else
		say "runsc could not be built; studies will skip it"
	fi
}

case ${1:-} in
go) setup_go ;;
run)
	setup_go
	packages runc:runc crun:crun sysbench:sysbench fio:fio
	setup_runsc
	;;
test)
	setup_go
	packages sqlite3:sqlite3 iperf3:iperf3 qperf:qperf hyperfine:hyperfine
	;;
*)
	echo "usage: $0 go|run|test" >&2
	exit 2
	;;
esac
