#!/bin/sh
# Prints the figures of docs/performance.md: bench.sh [-only NAME,...] [-rounds N] [-json]
# As root; on a quiet machine, it takes about five minutes.
set -eu
cd "$(dirname "$0")/.."
mkdir -p .cache # on the disk that results are written to
[ -x bin/tare ] && [ -e sandbox/vm/boot/guest-init ] || make build
# The machines that it starts itself boot from what tare's do.
go build -tags guestinit -o .cache/bench ./scripts/bench
exec .cache/bench -dir .cache "$@"
