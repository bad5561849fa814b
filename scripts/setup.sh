#!/bin/sh
# Installs what is missing: setup.sh go | run | test. It asks nothing and
# changes nothing that is there already. As root on a Debian-like system; else
# it says what to install.
set -eu

go_needed=1.26.8 # fetched if the host has no Go from 1.21 on
go_dir=/usr/local/lib/tare/go # where a Go that is fetched here goes; the Makefile looks there too
# runsc comes from its Go module: the packaged one is years old. Pinned, so
# that results can be compared.
runsc_version=v0.0.0-20260905035102-160fafc42237
runsc_dir=/usr/local/lib/tare/bin
vsock_version=0.3.0
qemu_dir=/usr/local/lib/tare/qemu # where a newer QEMU than the distribution's goes

say() { printf 'setup: %s\n' "$*" >&2; }

# install installs packages, and removes no others. It waits while another apt works, such as
# the updates of a machine that has just booted.
install() {
	DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -qq -y --no-remove --no-install-recommends "$@" >/dev/null
}

# here says whether the distribution has a package.
here() { [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]; }

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
	# shellcheck disable=SC2086 # a list of words
	install $missing 2>/dev/null || { apt-get update -qq && install $missing; }
}

# optional is packages for those that only some distributions have. It installs them
# one by one, so that one failure does not stop the others. It neither starts nor
# enables their services.
optional() {
	policy=/usr/sbin/policy-rc.d
	made=
	if [ "$(id -u)" = 0 ] && [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod +x "$policy"
		made=yes
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	fi
	for pair; do
		command -v "${pair%%:*}" >/dev/null 2>&1 && continue
		if command -v apt-cache >/dev/null 2>&1 && ! here "${pair#*:}"; then
			say "this distribution has no package ${pair#*:}; the tests that need ${pair%%:*} are skipped"
			continue
		fi
		(packages "$pair") || say "${pair#*:} could not be installed; the tests that need ${pair%%:*} are skipped"
		if command -v systemctl >/dev/null 2>&1; then
			service=${pair#*:}
			[ "$service" != openssh-server ] || service=ssh
			systemctl disable -q "$service.service" "$service.socket" 2>/dev/null || true
		fi
	done
	if [ -n "$made" ]; then
		rm -f "$policy"
		trap - EXIT
	fi
}

# lists fetches apt's lists if there are none from the last day: images
# are made of what they name, and an archive forgets old versions.
lists() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 0
	stamp=$(dirname "$0")/../.cache/apt-updated
	[ -n "$(find /var/lib/apt/lists -maxdepth 1 -name '*Release' 2>/dev/null | head -n 1)" ] &&
		[ -n "$(find "$stamp" -mtime -1 2>/dev/null)" ] && return 0
	if apt-get update -qq; then
		mkdir -p "$(dirname "$stamp")"
		: >"$stamp"
	else
		say "apt-get update failed; images are built from the lists that are there"
	fi
}

# recent says whether a go command can build this: it is new enough, or new
# enough to fetch the toolchain that go.mod asks for (from 1.21 on).
recent() {
	v=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) && [ -n "$v" ] || return 1
	[ "$(printf '%s\n%s\n' go1.21 "$v" | sort -V | head -n 1)" = go1.21 ]
}

setup_go() {
	for go in go "$go_dir/bin/go"; do
		command -v "$go" >/dev/null 2>&1 && recent "$go" && return 0
	done
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		say "Go 1.21 or later is needed: see https://go.dev/doc/install"
		exit 1
	fi
	say "installing Go"
	packages go:golang-go update-ca-certificates:ca-certificates
	recent go && return 0
	# The distribution's Go is too old to fetch a toolchain by itself, but any Go
	# can download one: they are modules (https://go.dev/doc/toolchain).
	dir=$(cd / && GO111MODULE=on go mod download -json "golang.org/toolchain@v0.0.1-go$go_needed.linux-$(go env GOARCH)" |
		sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
	[ -n "$dir" ] || { say "Go $go_needed could not be downloaded; see https://go.dev/doc/install"; exit 1; }
	mkdir -p "$(dirname "$go_dir")"
	cp -r "$dir" "$go_dir.new"
	chmod -R u+w "$go_dir.new"
	# Modules have no executable files.
	chmod +x "$go_dir.new"/bin/* "$go_dir.new"/pkg/tool/*/*
	mv "$go_dir.new" "$go_dir"
}

# What virtual machines need. virtiofsd came with QEMU until Debian 12; later it is a
# package of its own.
setup_vm() {
	[ "$(uname -m)" = x86_64 ] || return 0 # tare makes no others
	packages qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils mke2fs:e2fsprogs mkfs.xfs:xfsprogs xz:xz-utils
	setup_qemu
	for f in /usr/libexec/virtiofsd /usr/lib/qemu/virtiofsd /usr/lib/virtiofsd; do
		[ -x "$f" ] && return 0
	done
	if here virtiofsd; then
		packages virtiofsd:virtiofsd
	elif ! command -v virtiofsd >/dev/null 2>&1; then
		say "this distribution has no virtiofsd; virtual machines have their files on virtio-blk"
	fi
}

# Several I/O threads for a disk need QEMU 9.0. Debian 12 has 7.2, and a newer QEMU in its
# backports. The newer one goes beside the host's QEMU, which stays. Both use the installed
# libraries, and the host's package sources do not change.
setup_qemu() {
	[ "$(id -u)" = 0 ] && command -v dpkg-deb >/dev/null 2>&1 || return 0
	[ ! -x "$qemu_dir/usr/bin/qemu-system-x86_64" ] || return 0
	have=$(qemu-system-x86_64 --version 2>/dev/null | sed -n 's/^QEMU emulator version \([0-9]*\).*/\1/p')
	[ "${have:-9}" -lt 9 ] || return 0
	name=$(. /etc/os-release && echo "${VERSION_CODENAME:-none}")
	suite=$name-backports
	got=$(mktemp -d)
	trap 'rm -rf "$got"' EXIT
	mkdir -p "$got/lists/partial" "$got/cache/archives/partial" "$got/root"
	# The host's own archive and key, but the other suite.
	sources=$(grep -ls "^Suites:.*[ :]$name\( \|\$\)" /etc/apt/sources.list.d/*.sources | head -n 1)
	if [ -n "$sources" ]; then
		awk -v suite="$suite" 'BEGIN { RS = ""; ORS = "\n\n" } !/security/ { sub(/Suites:[^\n]*/, "Suites: " suite); print; exit }' "$sources" >"$got/apt.sources"
		list=$got/apt.sources
	else
		list=$got/apt.list
		sed -n "s/^\(deb .*\) $name .*/\1 $suite main/p" /etc/apt/sources.list 2>/dev/null | head -n 1 >"$list"
	fi
	apt="-o Dir::Etc::sourcelist=$list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=$got/lists -o Dir::Cache=$got/cache"
	# shellcheck disable=SC2086 # lists of words
	if (cd "$got" && apt-get $apt update -qq && apt-get $apt download -qq qemu-system-x86 qemu-system-common qemu-system-data seabios) >/dev/null 2>&1 &&
		for deb in "$got"/*.deb; do dpkg-deb -x "$deb" "$got/root" || break; done &&
		"$got/root/usr/bin/qemu-system-x86_64" --version >/dev/null 2>&1; then
		mkdir -p "${qemu_dir%/*}"
		mv "$got/root" "$qemu_dir"
		chmod 755 "$qemu_dir"
	else
		say "$suite has no newer QEMU for this host; levels with two or more I/O threads for a disk are skipped"
	fi
	rm -rf "$got"
	trap - EXIT
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

# The tools that docs/tools.md shows, in a place of their own. Wheels only: nothing
# is built. Each must have a hash that requirements.txt names. If the tools are missing, the
# tests of the page say so and are skipped.
setup_python() {
	wanted=$(dirname "$0")/requirements.txt
	venv=$(dirname "$0")/../.cache/venv
	cmp -s "$wanted" "$venv/wanted" && return 0
	python3 -c 'import ensurepip' 2>/dev/null || packages python3-with-venv:python3-venv
	say "installing DuckDB and pandas into .cache/venv"
	if rm -rf "$venv" && python3 -m venv "$venv" >/dev/null 2>&1 &&
		"$venv/bin/pip" install -q --disable-pip-version-check --only-binary=:all: --require-hashes -r "$wanted" >"$venv/log" 2>&1; then
		cp "$wanted" "$venv/wanted"
	else
		say "DuckDB and pandas could not be installed ($(tail -n 1 "$venv/log" 2>/dev/null)); the tests of docs/tools.md will be skipped"
	fi
}

# The daemon of a test of virtual machines, which no distribution has. The Rust of Debian 12 is too
# old to build it; the host may have a newer one.
setup_vsock() {
	command -v vhost-device-vsock >/dev/null 2>&1 && return 0
	if [ "$(id -u)" != 0 ] || ! command -v cargo >/dev/null 2>&1; then
		say "vhost-device-vsock cannot be built without root and cargo; the test that needs it is skipped"
		return 0
	fi
	say "building vhost-device-vsock (a minute)"
	cargo install --quiet --locked --root /usr/local --version "$vsock_version" vhost-device-vsock >/dev/null 2>&1 ||
		say "vhost-device-vsock could not be built; the test that needs it is skipped"
}

# A Prometheus for tests, from the distribution's package. The package itself would start a service.
setup_prometheus() {
	to=$PWD/.cache/tools/prometheus
	[ -x "$to/prometheus" ] && return 0
	new=$(mktemp -d)
	if (cd "$new" && chmod 755 . && apt-get -qq download prometheus && dpkg -x prometheus_*.deb .) >/dev/null 2>&1 && mkdir -p "$to" && cp "$new/usr/bin/prometheus" "$to/"; then
		say "took prometheus from its package"
	else
		say "the package prometheus could not be had; the test that needs it is skipped"
	fi
	rm -rf "$new"
}

case ${1:-} in
go) setup_go ;;
run)
	setup_go
	lists
	packages runc:runc crun:crun sysbench:sysbench fio:fio pip3:python3-pip
	optional mkfs.erofs:erofs-utils # of the lab's runtime class runc-erofs
	setup_vm
	setup_runsc
	;;
test)
	setup_go
	packages sqlite3:sqlite3 iperf3:iperf3 qperf:qperf hyperfine:hyperfine hackbench:rt-tests pidstat:sysstat chromium:chromium skopeo:skopeo wrk:wrk
	# Other tools for tests: to save sandboxes, leave containers behind, and load images.
	optional nginx:nginx gcc:gcc git:git redis-server:redis-server redis-benchmark:redis-tools busybox:busybox-static criu:criu podman:podman containerd:containerd sshd:openssh-server
	setup_vsock
	setup_prometheus
	setup_python
	;;
*)
	echo "usage: $0 go|run|test" >&2
	exit 2
	;;
esac
