package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/cluster/pod"
	"tare/collect"
	"tare/collect/disk"
	"tare/collect/system"
	"tare/record"
	"tare/workload/objects"
)

// node reads the node that the load and its pods run on: all that a pod sees of its node's kernel, without more rights.
type node struct {
	probes []collect.Probe // of memory and disks
	begun  time.Time       // the process

	mu    sync.Mutex
	buf   []record.Sample
	taken []objects.Reading // since they were last asked for
	err   error             // the first, which ends the readings
}

// interval is how often the node is read.
const interval = 250 * time.Millisecond

// bootID names the run of the kernel that a process is in (random(4)). The kubelet reports it for its node.
const bootID = "/proc/sys/kernel/random/boot_id"

// ownFile is a file that the kubelet puts into each container from its own directory: its file system is the one that the
// kubelet, and mostly the runtime, has its files on.
const ownFile = "/etc/hosts"

// openNode begins to read the node with a name. It is an error if the load has another kernel than the node, whose memory
// it would not see.
func openNode(ctx context.Context, a *api, name string, begun time.Time) (*node, error) {
	if name == "" {
		return nil, fmt.Errorf("%s is not set: tare sets it in the pod of a study", pod.EnvNode)
	}
	own, err := os.ReadFile(bootID)
	if errors.Is(err, os.ErrNotExist) {
		err = nil // gVisor has none
	}
	if err != nil {
		return nil, err
	}
	theirs, err := a.bootID(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the kernel of node %s: %w", name, err)
	}
	if strings.TrimSpace(string(own)) != theirs {
		return nil, fmt.Errorf("the load does not run on the kernel of node %s, so it cannot read the node's memory; run it in a sandbox with the node's kernel, such as process", name)
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

// maxNode bounds the object of a node, in bytes.
const maxNode = 4 << 20

// bootID asks the API server which run of its kernel a node is in.
func (a *api) bootID(ctx context.Context, name string) (string, error) {
	resp, err := a.open(ctx, "/api/v1/nodes/"+name, "application/json")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	var n struct {
		Status struct {
			NodeInfo struct {
				BootID string `json:"bootID"`
			} `json:"nodeInfo"`
		} `json:"status"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxNode)).Decode(&n); err != nil {
		return "", err
	}
	if n.Status.NodeInfo.BootID == "" {
		return "", errors.New("it does not say")
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

// plateau takes one more reading, when all that was written is on the disks, and returns those since the last plateau.
func (n *node) plateau() ([]objects.Reading, error) {
	unix.Sync()
	n.read()
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.taken
	n.taken = nil
	return out, n.err
}

// read takes a reading. The last one is replaced when there are too many.
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
		return r, fmt.Errorf("cannot ask how full the node's file system is: %w", err)
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

// emptied waits until the disk is about as full as before the load, if the pods took much of it, so that the next load does
// not meet the end of this one. What others write meanwhile only makes it wait longer.
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
		if err != nil || r.Used <= most || !sleepUntil(ctx, time.Now().Add(time.Second)) {
			return
		}
	}
}
