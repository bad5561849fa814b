find /sys/fs/cgroup -mindepth 1 -type d ! -path '*/systemd-udevd.service/*' ! -name '*.service' ! -name '*.mount' ! -name '*.socket' ! -name '*.slice' ! -name init.scope ! -name 'session-*' -printf 'control group %p\n'
grep -e /run/tare -e /var/lib/tare /proc/self/mountinfo | sed 's/^/mount /' || true
ls /run/netns 2>/dev/null | sed 's/^/netns /' || true
ls /sys/class/net | grep tare | sed 's/^/link /' || true
grep -lz ^TARE_SANDBOX= /proc/[0-9]*/environ 2>/dev/null | sed 's/^/process /' || true
find /run/tare /var/lib/tare -mindepth 1 ! -name lock ! -name '*.lock' -printf 'file %p\n' 2>/dev/null || true
find /dev/shm -name 'tare-*' -printf 'file %p\n'
systemctl list-units --all --plain --no-legend '*tare*' | sed 's/^/unit /'
