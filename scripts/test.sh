#!/bin/sh
# Runs every test: test.sh GOTESTSUM. It prints each package's result and, at the end, the output
# of what failed and the reason of what was skipped, so that a green run cannot hide a gap.
#
# Two packages at a time, however many processors there are. Tests that use the host's bridge
# and cgroups take turns by the host's lock, for which they wait no longer than 20 minutes; and
# times under many busy neighbours fail for no reason. The sum of the times under that lock is
# how long the whole takes: a test that needs nothing real runs without it (cmd/tare/user_test.go).
#
# Some tests make a cause or a quota and want to find it in what trials measured. Where another
# package computes, they wait for a quieter moment and run again. So they run last, with nothing
# beside them.
#
# A busy host fails a test now and then, so a test that fails runs once more, alone. More than
# five failures are a fault of timing in the tests or in what they test, not a busy host. After a
# crash or a data race nothing runs again. docs/tests.md lists the skips that are accepted.
#
# The linter has vetted the tests already, without Kubernetes's libraries: -vet=off.
#
# The time limit finds a test that hangs. It is several times what the slowest package takes on an
# idle host with two cores, because a host at load 6 is that much slower.
alone='^(TestCausePageCache|TestCauseOfMachines|TestRelieved|TestRelievedIOLimit|TestRelievedHost|TestPlantedQuota)$'
sum=$1

# tests runs the tests of the packages, with more flags of go test.
tests() {
	packages=$1
	shift
	"$sum" --rerun-fails=1 --rerun-fails-max-failures=5 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race \
		--packages "$packages" -- -p 2 -vet=off -timeout 2h "$@"
}

status=0
tests ./... -skip "$alone" || status=1
tests ./cmd/tare -run "$alone" || status=1
exit $status
