#!/bin/sh
# Lets every fuzz target look for new inputs for a few seconds:
#   scripts/fuzz.sh [SECONDS]
set -eu
seconds=${1:-5}
for pkg in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "$pkg $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${seconds}s" "$pkg"
	done
done
