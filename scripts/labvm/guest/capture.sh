g=/sys/fs/cgroup/lab-capture
before=$(cat /sys/fs/cgroup/cgroup.subtree_control)
for c in cpu io memory pids; do echo +$c >/sys/fs/cgroup/cgroup.subtree_control; done
mkdir $g
echo '20000 100000' >$g/cpu.max
echo 67108864 >$g/memory.max
inside() { sh -c "echo \$\$ >$g/cgroup.procs; exec $1"; }
inside 'dd if=/dev/zero of=/root/capture bs=64k count=64 oflag=direct status=none'
inside 'dd if=/root/capture of=/dev/null bs=64k iflag=direct status=none'
inside 'dd if=/dev/nvme0n2 of=/dev/null bs=64k count=16 iflag=direct status=none'
inside 'dd if=/dev/zero of=/dev/null bs=100M count=1 status=none' && exit 1
inside 'dd if=/dev/zero of=/dev/null bs=20M status=none' &
inside 'sh -c "while :; do :; done"' &
sleep 5
echo '{'
for f in %s; do printf '"%%s": "%%s",\n' $f "$(base64 -w0 $g/$f)"; done
echo '"kernel": "'$(uname -r | base64 -w0)'"}'
echo 1 >$g/cgroup.kill
wait || true
until rmdir $g 2>/dev/null; do sleep 0.1; done
rm /root/capture
for c in cpu io memory pids; do case " $before " in *" $c "*) ;; *) echo -$c >/sys/fs/cgroup/cgroup.subtree_control ;; esac; done
