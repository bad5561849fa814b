package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"tare/cluster/pod"
	"tare/collect"
	"tare/collect/disk"
	"tare/collect/system"
	"tare/record"
	"tare/workload/inside"
	"tare/workload/objects"
)

// node reads the node on which the load and its pods run. It reads what a pod sees of its node's kernel, without further rights.
type node struct {
	probes []collect.Probe // of memory and disks
	begun  time.Time       // the process

	mu    sync.Mutex
	buf   []record.Sample
	taken []objects.Reading // since the last plateau
	err   error             // the first error, which ends the readings
}

// interval is the time between two readings of the node.
const interval = 250 * time.Millisecond

// bootID names the run of the kernel that a process is in (random(4)). The kubelet reports it for its node.
const bootID = "/proc/sys/kernel/random/boot_id"

// ownFile is a file that the kubelet mounts into each container from its own directory. So it is on the file system of the
// kubelet's files, and usually of the runtime's files.
const ownFile = "/etc/hosts"

// openNode begins to read the node with a name. It returns an error if the load runs on another kernel, because it would not see
// the node's memory.
func openNode(ctx context.Context, a *api, name string, begun time.Time) (*node, error) {
	if name == "" {
		return nil, fmt.Errorf("%s is not set: tare sets it in the pod of a study", pod.EnvNode)
	}
	own, err := os.ReadFile(bootID)
	if errors.Is(err, os.ErrNotExist) {
		err = nil // gVisor has no boot ID
	}
	if err != nil {
		return nil, err
	}
	theirs, err := a.bootID(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the boot ID of the node %s: %w", name, err)
	}
	if strings.TrimSpace(string(own)) != theirs {
		return nil, fmt.Errorf("the load does not run on the kernel of the node %s, so it cannot read the node's memory; run it in a sandbox with the node's kernel, such as process", name)
	}
	n := &node{begun: begun}
	for _, c := range []collect.Collector{system.New(), disk.New()} {
		p, err := c.Open(ctx, nil)
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
		n.probes = append(n.probes, p)
	}
	return n, nil
}

// maxNode is the most bytes of a node's object.
const maxNode = 4 << 20

// bootID asks the API server which run of its kernel a node is in.
func (a *api) bootID(ctx context.Context, name string) (string, error) {
	var n corev1.Node
	if err := a.get(ctx, "/api/v1/nodes/"+name, usualType, maxNode, &n); err != nil {
		return "", err
	}
	if n.Status.NodeInfo.BootID == "" {
		return "", errors.New("the API server does not report it")
	}
	return n.Status.NodeInfo.BootID, nil
}

func (n *node) close() error {
	var errs []error
	for _, p := range n.probes {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// watch reads the node until ctx ends.
func (n *node) watch(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			n.read()
		case <-ctx.Done():
			return
		}
	}
}

// plateau syncs the disks, takes one more reading, and returns the readings since the last plateau.
func (n *node) plateau() ([]objects.Reading, error) {
	unix.Sync()
	n.read()
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.taken
	n.taken = nil
	return out, n.err
}

// read takes a reading. If there are too many, it replaces the last one.
func (n *node) read() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		return
	}
	r, err := n.now()
	if n.err = err; err != nil {
		return
	}
	if len(n.taken) >= objects.MaxReadings {
		n.taken = n.taken[:objects.MaxReadings-1]
	}
	n.taken = append(n.taken, r)
}

// now reads the node. The caller holds mu.
func (n *node) now() (r objects.Reading, err error) {
	r.At = time.Since(n.begun).Seconds()
	for _, p := range n.probes {
		if n.buf, err = p.Read(n.buf[:0]); err != nil {
			return r, err
		}
		for i := range n.buf {
			switch x := &n.buf[i]; x.Name {
			case "system_memory_available":
				r.Available = x.Value
			case "system_page_cache":
				r.Cache = x.Value
			case record.DeviceRead:
				r.Read += x.Value
			case record.DeviceWrote:
				r.Written += x.Value
			}
		}
	}
	var st unix.Statfs_t
	if err := unix.Statfs(ownFile, &st); err != nil {
		return r, fmt.Errorf("cannot read the used space of the node's file system: %w", err)
	}
	r.Used = float64(st.Blocks-st.Bfree) * float64(st.Bsize)
	return r, nil
}

// Leftovers of pods: a kubelet removes containers, and with them what their snapshotter copied, up to a minute after their pod.
const (
	leftoverTime  = 75 * time.Second
	leftoverShare = 0.1       // of what the pods took of the disk
	leftoverLeast = 256 << 20 // bytes; less is not waited for, because others write too
)

// emptied waits until the disk is about as full as before the load, if the pods used much of it. So the removal of this load does
// not disturb the next one. If others write to the disk meanwhile, it only waits longer.
func (n *node) emptied(ctx context.Context, before, after objects.Reading) {
	took := after.Used - before.Used
	if took < leftoverLeast {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leftoverTime)
	defer cancel()
	most := before.Used + leftoverShare*took
	for {
		n.mu.Lock()
		r, err := n.now()
		n.mu.Unlock()
		if err != nil || r.Used <= most || !inside.SleepUntil(ctx, time.Now().Add(time.Second)) {
			return
		}
	}
}
