# Runs inside.sh in what a privileged container is: its own mounts, PID namespace and control
# group namespace, with the shell in the group that is its root. It runs in a delegated unit, and
# leaves that group as inside.sh left it until it has looked at it.
unit=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)
box=$unit/box
mkdir "$unit/outer" "$box"
echo $$ >"$unit/outer/cgroup.procs"
for c in cpu cpuset io memory pids; do echo +$c >"$unit/cgroup.subtree_control"; done
before=$(cat "$box/cgroup.type" "$box/cgroup.subtree_control")
sh -c 'echo $$ >"$1/cgroup.procs"; exec unshare --cgroup --pid --fork --mount-proc sh -euxc "
	until ! grep -qx 0 /sys/fs/cgroup/\$2/cgroup.procs; do sleep 0.1; done
	umount /sys/fs/cgroup
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	mount -t tmpfs run /run
	exec sh -eux \$1" inner "$2" "${1#/sys/fs/cgroup/}"' outer "$box" "$1" & pid=$!
# unshare itself stays outside of the namespaces: tare could not move it.
until [ "$(wc -l <"$box/cgroup.procs")" -ge 2 ]; do kill -0 $pid; sleep 0.1; done
echo $pid >"$unit/outer/cgroup.procs"
wait $pid
after=$(cat "$box/cgroup.type" "$box/cgroup.subtree_control")
[ "$before" = "$after" ]
[ -z "$(find "$box" -mindepth 1 -type d)" ]
