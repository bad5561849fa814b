#!/bin/sh
# Runs every test and prints what was skipped and why, so that a green run
# cannot hide a gap.
set -u
out=$(mktemp)
trap 'rm -f "$out"' EXIT
# Packages one after another: several of them use the host's bridge and cgroups,
# and timing under a busy neighbour fails for no reason.
go test -p 2 -timeout 20m -json ./... >"$out"
status=$?
go run ./scripts/testsummary <"$out" || status=1
exit $status
