package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// captured are the files of one control group that collect/cgroup reads.
func captured() []string {
	return []string{
		"cpu.stat", "cpu.max", "cpu.pressure", "memory.current", "memory.peak", "memory.stat", "memory.events", "memory.pressure",
		"pids.current", "io.stat", "io.pressure",
	}
}

// captureScript loads a control group with every controller, 0.2 cores and 64 MiB: two
// busy loops, a process that reads and writes the disk beside the page cache, and one that
// asks for more memory than there is. It prints the files while the loops run, as JSON.
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
inside 'dd if=/dev/zero of=/dev/null bs=100M count=1 status=none' && exit 1
inside 'sh -c "while :; do :; done"' & one=$!
inside 'sh -c "while :; do :; done"' & two=$!
sleep 5
echo '{'
for f in %s; do printf '"%%s": "%%s",\n' $f "$(base64 -w0 $g/$f)"; done
echo '"kernel": "'$(uname -r | base64 -w0)'"}'
kill -9 $one $two
wait || true
until rmdir $g; do sleep 0.1; done
rm /root/capture
for c in cpu io memory pids; do case " $before " in *" $c "*) ;; *) echo -$c >/sys/fs/cgroup/cgroup.subtree_control ;; esac; done
`

// capture reads the files of a busy control group, as the kernel writes them, for the
// tests of collect/cgroup.
func capture(ctx context.Context, l *lab) error {
	names := ""
	for _, n := range captured() {
		names += n + " "
	}
	out, err := l.sh(ctx, fmt.Sprintf(captureScript, names))
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	var text map[string]string
	if err := json.Unmarshal([]byte(out), &text); err != nil {
		return fmt.Errorf("what was captured: %w", err)
	}
	for name, coded := range text {
		if files[name], err = base64.StdEncoding.DecodeString(coded); err != nil {
			return fmt.Errorf("what was captured of %s: %w", name, err)
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
