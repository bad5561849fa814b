#!/bin/sh
# Runs every test and prints what was skipped and why, so that a green run
# cannot hide a gap.
set -u
out=$(mktemp)
trap 'rm -f "$out"' EXIT
# Two packages at a time, however many processors there are. Tests that use the
# host's bridge and cgroups take turns by the host's lock, for which they wait no
# longer than five minutes; and times under many busy neighbours fail for no reason. On
# such a host cmd/tare, which has the host for itself most of the time, takes 20 minutes.
go test -p 2 -timeout 40m -json ./... >"$out"
status=$?
# Tests that failed run once more, alone: see scripts/testsummary.
go run ./scripts/testsummary -status "$status" <"$out"
