package sysnames

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestName(t *testing.T) {
	seen := map[string]int{}
	for nr := range Max {
		n := Name(nr)
		if o, ok := seen[n]; ok {
			t.Errorf("%d and %d are both %s", o, nr, n)
		}
		seen[n] = nr
	}
	for want, nr := range map[string]int{
		"read": unix.SYS_READ, "getpid": unix.SYS_GETPID, "futex": unix.SYS_FUTEX, "openat": unix.SYS_OPENAT, "clone3": unix.SYS_CLONE3,
		"io_uring_enter": unix.SYS_IO_URING_ENTER, "statx": unix.SYS_STATX, "sched_yield": unix.SYS_SCHED_YIELD, "recvfrom": unix.SYS_RECVFROM,
		"nr_-1": -1, "nr_511": 511, "nr_100000": 100000,
	} {
		if got := Name(nr); got != want {
			t.Errorf("%d is %s, not %s", nr, got, want)
		}
	}
}
