package vm

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// threadsOf returns, for each disk, the numbers of its I/O threads. Several threads share a disk by its
// queues, as in KubeVirt's supplemental pool, if QEMU can do that and the disk has a queue for each
// thread. Otherwise each disk has one of the threads, in turn.
func (o *options) threadsOf(disks int, q qemu) ([][]int, error) {
	out := make([][]int, disks)
	queues := cmp.Or(o.diskQueues, o.size.VCPUsBoot)
	shared := o.threads > 1 && q.maps[o.bus] && queues >= o.threads
	for i := range out {
		switch {
		case shared:
			for n := range o.threads {
				out[i] = append(out[i], n)
			}
		case o.threads > 0:
			out[i] = []int{i % o.threads}
		}
	}
	switch {
	case disks == 0 || shared || o.threads <= disks:
		return out, nil
	case !q.maps[o.bus]:
		return nil, fmt.Errorf("%s = %d: QEMU %s has no %s for %s, so that each disk has one I/O thread, and the virtual machine has %d; install QEMU %s or later, or write %d",
			paramThreads, o.threads, q.version, mappingOption, o.bus, disks, mappingSince(o.bus), disks)
	default:
		return nil, fmt.Errorf("%s = %d: a disk needs a queue for each I/O thread, and has %d; set %s to %d or more, and no smaller %s",
			paramThreads, o.threads, queues, paramVCPUs, o.threads, paramDiskQ)
	}
}

// diskFacts says how the volumes' disks are served.
func (i *instance) diskFacts() map[string]string {
	if i.o.threads == 0 {
		return nil
	}
	by, most := "disk", 0
	for _, t := range i.threads {
		most = max(most, len(t))
	}
	if most > 1 {
		by = "queue"
	}
	return map[string]string{"io_threads": strconv.Itoa(i.o.threads), "io_threads_by": by}
}

// pinThreads binds each I/O thread to one of the processors that it may use, in turn.
func (i *instance) pinThreads(ctx context.Context) error {
	if !i.o.pinned {
		return nil
	}
	var threads []struct {
		ID  string `json:"id"`
		TID int    `json:"thread-id"`
	}
	if err := i.machine.qmp.Run(ctx, "query-iothreads", nil, &threads); err != nil {
		return err
	}
	for n, t := range threads {
		var may unix.CPUSet
		if err := unix.SchedGetaffinity(t.TID, &may); err != nil {
			return fmt.Errorf("the I/O thread %s: %w", t.ID, err)
		}
		one := nthCPU(&may, n)
		if err := unix.SchedSetaffinity(t.TID, &one); err != nil {
			return fmt.Errorf("binding the I/O thread %s to a processor: %w", t.ID, err)
		}
	}
	return nil
}

// nthCPU returns a set with the nth processor of a set. After the last it begins again.
func nthCPU(of *unix.CPUSet, n int) (one unix.CPUSet) {
	n %= max(of.Count(), 1)
	for cpu := range 64 * len(of) {
		if !of.IsSet(cpu) {
			continue
		}
		if n == 0 {
			one.Set(cpu)
			return one
		}
		n--
	}
	return *of
}
