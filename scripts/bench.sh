#!/bin/sh
# Prints the figures of docs/performance.md: bench.sh [-only NAME,...] [-rounds N] [-json]
# As root; on a quiet machine, it takes about five minutes.
set -eu
cd "$(dirname "$0")/.."
mkdir -p .cache # on the disk that results are written to
[ -x bin/tare ] && [ -e sandbox/vm/boot/guest-init ] || make build
# The machines that it starts itself boot from what tare's do.
go build -tags guestinit -o .cache/bench ./scripts/bench
# The first study runs beside the commit before turns came, which has a study of its own. A shallow
# clone lacks it.
before=$(git rev-parse -q --verify 'e2deb11^{commit}^') || exec .cache/bench -dir .cache "$@"
dir=.cache/before-$before
if [ ! -x "$dir/bin/tare" ]; then
	rm -rf "$dir"
	mkdir -p "$dir"
	git archive "$before" | tar -x -C "$dir"
	make -C "$dir" build
fi
exec .cache/bench -dir .cache -before "$dir/bin/tare" -before-study "$dir/studies/first.yaml" "$@"
