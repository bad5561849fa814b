package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// captured are the files that collect/cgroup reads from one control group.
func captured() []string {
	return []string{
		"cpu.stat", "cpu.max", "cpu.pressure", "memory.current", "memory.peak", "memory.stat", "memory.events", "memory.pressure",
		"pids.current", "io.stat", "io.pressure",
	}
}

// captureScript loads a control group that has every controller, 0.2 cores and 64 MiB. Its
// processes read and write two disks past the page cache, ask for more memory than the limit,
// and two are always busy, one of them with 20 MiB. It prints the files as JSON while these
// run.
const captureScript = `
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
`

// capture reads the files of a busy control group for the tests of collect/cgroup, exactly
// as the kernel writes them.
func capture(ctx context.Context, l *lab) error {
	out, err := l.sh(ctx, fmt.Sprintf(captureScript, strings.Join(captured(), " ")))
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	var text map[string]string
	if err := json.Unmarshal([]byte(out), &text); err != nil {
		return fmt.Errorf("cannot read the captured files: %w", err)
	}
	for name, coded := range text {
		if files[name], err = base64.StdEncoding.DecodeString(coded); err != nil {
			return fmt.Errorf("cannot read the captured %s: %w", name, err)
		}
		l.log.printf("%s:\n%s", name, files[name])
	}
	for _, n := range captured() {
		if len(files[n]) == 0 {
			return fmt.Errorf("%s is empty", n)
		}
		if l.capture == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(l.capture, n), files[n], 0o644); err != nil { //nolint:gosec // no secret
			return err
		}
	}
	return nil
}
