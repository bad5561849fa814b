package vm

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/sizing"
)

// TestThreadsOf: several threads share a disk by its queues, or have a disk each.
func TestThreadsOf(t *testing.T) {
	both := qemu{version: "10.0.2", maps: map[string]bool{busBlk: true, busSCSI: true}}
	blk := qemu{version: "9.1.0", maps: map[string]bool{busBlk: true}}
	old := qemu{version: "7.2.22"}
	for name, c := range map[string]struct {
		threads, disks, vcpus, queues int
		bus                           string
		q                             qemu
		want, why                     string
	}{
		"none":                  {0, 2, 1, 0, busBlk, both, "[[] []]", ""},
		"one, old":              {1, 1, 1, 0, busBlk, old, "[[0]]", ""},
		"a queue each":          {2, 1, 2, 0, busBlk, both, "[[0 1]]", ""},
		"every disk":            {2, 2, 4, 0, busSCSI, both, "[[0 1] [0 1]]", ""},
		"a disk each, old":      {2, 3, 4, 0, busBlk, old, "[[0] [1] [0]]", ""},
		"a disk each, 1 queue":  {2, 2, 1, 0, busBlk, both, "[[0] [1]]", ""},
		"old":                   {2, 1, 2, 0, busBlk, old, "", "io_threads = 2: QEMU 7.2.22 has no iothread-vq-mapping for virtio-blk"},
		"old for SCSI":          {2, 1, 2, 0, busSCSI, blk, "", "install QEMU 10.0 or later, or write 1"},
		"too few vCPUs":         {4, 1, 2, 0, busBlk, both, "", "a disk needs a queue for each I/O thread, and has 2"},
		"too few queues":        {2, 1, 4, 1, busBlk, both, "", "has 1; set default_vcpus to 2 or more, and no smaller disk_queues"},
		"no disks, any number":  {16, 0, 1, 0, busBlk, old, "[]", ""},
		"more queues than vCPU": {4, 1, 2, 4, busBlk, both, "[[0 1 2 3]]", ""},
	} {
		o := options{threads: c.threads, diskQueues: c.queues, bus: c.bus, size: sizing.Size{VCPUsBoot: c.vcpus}}
		got, err := o.threadsOf(c.disks, c.q)
		switch {
		case c.why == "" && (err != nil || fmt.Sprint(got) != c.want):
			t.Errorf("%s: %v, %v; want %s", name, got, err, c.want)
		case c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
}

// TestFront: what the guest sees of a disk, and the threads before it.
func TestFront(t *testing.T) {
	for name, c := range map[string]struct {
		d    disk
		want []string
	}{
		"plain": {disk{serial: "data"}, []string{`-device {"drive":"data","driver":"virtio-blk-pci","rerror":"report","serial":"data","werror":"report"}`}},
		"two threads": {disk{serial: "data", queues: 2, threads: []int{0, 1}}, []string{
			"-object iothread,id=io0 -object iothread,id=io1", `"iothread-vq-mapping":[{"iothread":"io0"},{"iothread":"io1"}],"num-queues":2`}},
		"SCSI": {disk{serial: "data", bus: busSCSI, queues: 4, threads: []int{3}}, []string{
			"-object iothread,id=io3", `-device {"driver":"virtio-scsi-pci","id":"scsi-data","iothread":"io3","num_queues":4}`,
			`-device {"bus":"scsi-data.0","drive":"data","driver":"scsi-hd"`}},
	} {
		l := &line{}
		l.front(c.d)
		text := strings.Join(l.args, " ")
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in %s", name, want, text)
			}
		}
	}
}

// TestNthCPU: threads are bound in turn, round the processors that they may use.
func TestNthCPU(t *testing.T) {
	var may unix.CPUSet
	may.Set(1)
	may.Set(70)
	for n, want := range []int{1, 70, 1} {
		one := nthCPU(&may, n)
		if one.Count() != 1 || !one.IsSet(want) {
			t.Errorf("thread %d is not bound to processor %d", n, want)
		}
	}
}
