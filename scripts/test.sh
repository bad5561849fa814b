#!/bin/sh
# Runs a part of the tests: test.sh GOTESTSUM PART. It prints each package's result and, at the end,
# the output of what failed and the reason of what was skipped, so that a green run cannot hide a gap.
#
#   host    packages whose tests use the host's bridge and cgroups
#   rest    the other packages, and the tests of cmd/tare that only compute
#   alone   tests that make a cause or a quota, and want to find it in what trials measured
#
# The Makefile runs host beside rest, however many processors there are, and alone after both. So two
# packages run at a time: times under many busy neighbours fail for no reason. What uses the host takes
# turns by the host's lock. Two such packages side by side would wait for each other, with a
# processor idle. A test that needs nothing real runs without the lock (cmd/tare/user_test.go).
# Where another package computes, what makes a cause would wait for a quieter moment and run again.
#
# A busy host fails a test now and then, so a test that fails runs once more, after the others of
# its part. More than five failures are a fault of timing in the tests or in what they test, not a busy
# host. After a crash or a data race nothing runs again. docs/tests.md lists the skips that are
# accepted.
#
# The linter has vetted the tests already. go test would vet every dependency for it: -vet=off.
#
# The time limit finds a test that hangs. It is several times what the slowest package takes on an
# idle host with two cores, because a host at load 6 is that much slower.
set -eu
alone='TestCausePageCache|TestCauseOfMachines|TestRelieved|TestRelievedIOLimit|TestRelievedHost|TestPlantedQuota'
computes='TestScripts|TestDocs.*|TestTune.*|TestKillAtAnyMomentOnFake|TestMemoryOfHostileSeries|TestFar(Run|Ends|Errors)|TestPublishedIOThreads|TestCompareGate|TestPushStudy|TestKillRehearsal|TestLogFormat' # of cmd/tare: nothing real, or an ordinary user
sum=$1
unset MAKEFLAGS MFLAGS # a test of a tool that knows make's job server would wait for it

# tests runs the tests of the packages, with more flags of go test.
tests() {
	packages=$1
	shift
	"$sum" --rerun-fails=1 --rerun-fails-max-failures=5 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race \
		--packages "$packages" -- -p 1 -vet=off -timeout 2h "$@"
}

# packages lists the packages whose tests import what takes the host, or the others.
packages() {
	all=$(go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./...) || return 1
	printf '%s\n' "$all" | awk -v part="$1" '{ host = / \[?tare\/(host\/state\/statetest|trial\/trialtest|sandbox\/sandboxtest)[] ]/; if ((part == "host") == (host > 0)) print $1 }'
}

case ${2:-} in
host)
	list=$(packages host)
	tests "$list" -skip "^($alone|$computes)\$"
	;;
rest)
	list=$(packages rest)
	status=0
	tests "$list" || status=1
	tests ./cmd/tare -run "^($computes)\$" || status=1
	exit $status
	;;
alone) tests ./cmd/tare -run "^($alone)\$" ;;
*)
	echo "usage: $0 GOTESTSUM host|rest|alone" >&2
	exit 2
	;;
esac
