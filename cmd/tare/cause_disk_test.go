package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/analyse/cause"
	"tare/host/cgroup"
)

// TestCausePageCache: the same reads, past the page cache and from it.
func TestCausePageCache(t *testing.T) {
	m := madeCause{
		study: `compare: cache
baseline: direct
factors: {sandbox: [process]}
workloads:
  read: {kind: fio, rw: randread, bs: 4KiB, size: 64MiB, engine: libaio, iodepth: 4, cache: [direct, warm], duration: 2s, warmup: 300ms}`,
		wants: []wanted{{levels: map[string]string{"cache": "warm"}, cause: cause.PageCache}},
	}
	m.run(t)
}

// limitReads gives the control group of each container of this test, until it ends, a limit of reads
// a second of the disk with the data.
func limitReads(t *testing.T, reads int) {
	t.Helper()
	h, err := cgroup.Detect()
	if err != nil || h.Version == cgroup.None {
		t.Skip("no control groups: ", err)
	}
	disk, ok := wholeDisk(t)
	if !ok {
		t.Skip("the data is not on a disk of this host")
	}
	file, line := "blkio.throttle.read_iops_device", fmt.Sprintf("%s %d", disk, reads)
	root, ok := h.Path("blkio", "tare")
	if !ok {
		root, _ = h.Path("", "tare")
		file, line = "io.max", fmt.Sprintf("%s riops=%d", disk, reads)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int)
	go func() {
		limited := map[string]bool{}
		for ctx.Err() == nil {
			groups, _ := filepath.Glob(root + "/*/c") // a pattern without a mistake
			for _, g := range groups {
				if !limited[g] && ofThisTest(filepath.Dir(g)) {
					limited[g] = os.WriteFile(filepath.Join(g, file), []byte(line), 0) == nil // or it is gone already
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		done <- len(limited)
	}()
	t.Cleanup(func() {
		cancel()
		t.Logf("%d groups were limited", <-done)
	})
}

// ofThisTest reports whether a group, or one in it, has a descendant of this process. Others may run
// trials on this host before.
func ofThisTest(group string) bool {
	for _, pattern := range []string{"/cgroup.procs", "/*/cgroup.procs"} {
		files, _ := filepath.Glob(group + pattern) // a pattern without a mistake
		for _, f := range files {
			b, _ := os.ReadFile(f) // it may be gone
			for pid := range strings.FieldsSeq(string(b)) {
				if descends(pid) {
					return true
				}
			}
		}
	}
	return false
}

// descends reports whether a process descends from this one, by the parents in /proc/PID/stat.
func descends(pid string) bool {
	me := strconv.Itoa(os.Getpid())
	for pid != "0" && pid != me {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		_, after, ok := strings.Cut(string(b), ") ")
		fields := strings.Fields(after)
		if err != nil || !ok || len(fields) < 2 {
			return false
		}
		pid = fields[1]
	}
	return pid == me
}

// wholeDisk is the number MAJOR:MINOR of the disk below the temporary directory.
func wholeDisk(t *testing.T) (string, bool) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat("/var/lib", &st); err != nil {
		t.Fatal(err)
	}
	number := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	dir, err := filepath.EvalSymlinks("/sys/dev/block/" + number)
	if err != nil {
		return "", false
	}
	if _, err := os.Stat(dir + "/partition"); err == nil {
		b, err := os.ReadFile(filepath.Dir(dir) + "/dev")
		return strings.TrimSpace(string(b)), err == nil
	}
	return number, true
}
