#!/bin/sh
# A virtual machine's first start: fetch tare's image from the coordinator, start the agent in it.
set -eu
exec >/dev/console 2>&1
trap 'echo "tare: the agent cannot start"' EXIT
export {{.Env}}
r=/var/lib/tare i=/run/tare
mkdir -p $r $i
mount -o ro -L {{.Label}} $i
[ -x $r/tare ] || curl -sSf --retry 9 --retry-connrefused --cacert $i/ca.crt --cert $i/tls.crt --key $i/tls.key \
  --connect-to "::$TARE_COORDINATOR" https://{{.Server}}/$TARE_SANDBOX_NAME/$TARE_SANDBOX_TOKEN | tar -xf - -C $r
[ -x $r/tare ]
mkdir -p $r$i $r/tmp
chmod 1777 $r/tmp
mount --bind $i $r$i
for d in proc sys dev; do mkdir -p $r/$d; mount --rbind /$d $r/$d; done
{{range .Disks}}d=$(ls /dev/disk/by-id/*{{.Serial}}) p=$r{{.Path}}
mkfs.ext4 -qF $d
mkdir -p $p
mount $d $p
{{end}}{{range .Memory}}p=$r{{.Path}}
mkdir -p $p
mount -t tmpfs{{if .Size}} -o size={{.Size}}{{end}} tare $p
{{end}}trap - EXIT
setsid chroot $r /tare internal pod </dev/null &
