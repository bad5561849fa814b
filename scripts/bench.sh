#!/bin/sh
# Prints the figures of docs/performance.md: bench.sh [-only NAME,...] [-rounds N] [-json]
# As root; on a quiet machine, it takes about five minutes.
set -eu
cd "$(dirname "$0")/.."
mkdir -p .cache # on the disk that results are written to
[ -x bin/tare ] || go build -trimpath -o bin/tare ./cmd/tare
go build -o .cache/bench ./scripts/bench
exec .cache/bench -dir .cache "$@"
