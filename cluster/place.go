package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tare/cluster/observer"
	"tare/cluster/pod"
	"tare/host/probe"
	"tare/record"
	"tare/sandbox"
	"tare/trial"
	"tare/volume"
	"tare/workload"
)

// place is a cluster as a trial.Place: a pod brings its directories and its network.
type place struct {
	nodes  observer.Nodes
	images map[string]Image // by name
	claims *claims
	at     []record.Node // of the study, by name
	fill   *fillers
	cold   *copies
	shared bool // the study has no namespace of its own
	// simulated is how many pods the cluster's simulated nodes take; it is negative if unknown.
	simulated int
	observed  bool // each node has an observer
	// neighbours are pods of others that loads pass through, by workload.Outside.Key.
	neighbours map[string]Neighbours
	storage    []pod.StorageClass // nil: not known
	inside     bool               // this process runs from tare's image, so pods have the programs that it finds
}

// names are those of the nodes, by trial.Maker.
func (p place) names() (all []string) {
	for _, n := range p.at {
		all = append(all, n.Name)
	}
	return all
}

// checkLink says why pods cannot be linked so.
func (p place) checkLink(l sandbox.Link) error {
	switch {
	case l == (sandbox.Link{}):
		return nil
	case l != (sandbox.Link{Path: record.PathNodes}):
		return errors.New("the link between pods cannot be shaped; on a cluster, write link-path: bridge (one node) or nodes, and none for the link's other factors")
	case len(p.at) < 2:
		return fmt.Errorf("link-path %s needs two nodes, and only one node can run the study; see `kubectl get nodes`", l.Path)
	}
	return nil
}

// Check implements trial.Place.
func (p place) Check(d trial.Demand) error {
	img, err := p.Image(d.Image)
	switch {
	case d.Image != "" && err != nil:
		return err
	case d.Own && img.Problem != "":
		return fmt.Errorf("image %s: %s", d.Image, img.Problem)
	case d.Saved:
		return errors.New("a saved pod cannot be restored by Kubernetes (docs/cluster.md says why); measure checkpoint on a host (without --on k8s)")
	case d.Memory && !p.observed:
		return errors.New("only an observer can read how much memory a node has free; add --observe")
	case d.Addresses > 0:
		return errors.New("neighbours: a pod has one address; write neighbours: 0, or measure on a host (without --on k8s)")
	case d.API && p.shared:
		return errors.New("a program that uses the cluster's API creates namespaces, which a study in an existing namespace may not; leave -n out")
	case d.Simulated > 0 && p.simulated == 0:
		return errors.New("nodes: simulated: the cluster has no node with the label type=simulated; add some (on the lab, `make lab NODES=64`), or write nodes: untainted")
	case p.simulated >= 0 && d.Simulated > p.simulated:
		return fmt.Errorf("nodes: simulated: the cluster's simulated nodes take %d pods, and the load creates %d; add nodes, or write a smaller count", p.simulated, d.Simulated)
	case d.CPUs != "":
		return fmt.Errorf("cpus %s: on a cluster, the kubelet's CPU manager chooses processors", d.CPUs)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Settings)) {
		if level := d.Settings[name]; level != record.SettingHost {
			return fmt.Errorf("%s %s: tare changes no settings of a cluster's nodes, which others share; write %s: host, or measure on a host (without --on k8s)", name, level, name)
		}
	}
	if why := claimsNot(d.Claims, p.storage); why != "" {
		return errors.New(why)
	}
	for i := range d.Rooms {
		if err := pod.CheckRoom(d.Rooms[i].Volume, d.Rooms[i].Bytes, d.Rooms[i].Options); err != nil {
			return err
		}
	}
	if err := errors.Join(p.checkLink(d.Link), p.checkFill(d)); err != nil {
		return err
	}
	if d.Cold > 0 && p.cold != nil {
		if err := p.cold.check(d.Image, d.Cold, p.at); err != nil {
			return err
		}
	}
	for _, tool := range d.Tools {
		if _, err := exec.LookPath(tool); err != nil && p.inside {
			return fmt.Errorf("tare's image has no %s; install it where you build the image, and push the image again (`tare image push tare REFERENCE`)", tool)
		}
	}
	for _, v := range d.Volumes {
		if v.Medium == volume.Image || v.Medium == volume.Device || v.Mode == volume.Block && v.Medium != volume.Disk {
			return fmt.Errorf("volume %s: a pod cannot use a device or a disk image that the study names; use a claim of a StorageClass (docs/cluster.md)", v.Name)
		}
	}
	return nil
}

// checkFill says why a node has no room for the fillers and the pods that start beside them. The observer is one more.
func (p place) checkFill(d trial.Demand) error {
	if d.Fill == 0 || p.fill == nil {
		return nil
	}
	for i := range p.at {
		node := p.at[i].Name
		room := p.fill.room[node]
		if many := fillersOf(room, d.Fill); room > 0 && many+d.Beside+1 > room {
			return fmt.Errorf("node-fill %d: node %s takes %d pods; %d fillers leave no room for %d that start at once, and one observer; give a smaller node-fill or burst", d.Fill, node, room, many, d.Beside)
		}
	}
	return nil
}

// Fill implements trial.Filler.
func (p place) Fill(ctx context.Context, trial, node string, percent int) (string, error) {
	n, err := p.fill.use(ctx, trial, node, percent)
	if err != nil || percent == 0 {
		return "", err
	}
	return fmt.Sprintf("%d of %d pods", n, p.fill.room[node]), nil
}

// Image implements trial.Place.
func (p place) Image(name string) (trial.Image, error) {
	img, known := p.images[name]
	switch {
	case !known:
		return img.Image, fmt.Errorf("image %s was not looked up; this is a bug in tare, please report it", name)
	case img.Missing != "":
		return img.Image, errors.New(img.Missing)
	}
	return img.Image, nil
}

// Prepare implements trial.Place.
func (p place) Prepare(ctx context.Context, want sandbox.Want) (sandbox.Spec, error) {
	return sandbox.Spec{Want: want}, p.claims.provide(ctx, &want)
}

// Apart implements trial.Place.
func (place) Apart(int) ([]string, error) {
	return nil, errors.New("on a cluster, the kubelet's CPU manager chooses processors")
}

// Retire implements trial.Place.
func (place) Retire(string) error { return nil }

// Release implements trial.Place. What a pod brought goes with it, except for claims.
func (p place) Release(ctx context.Context, trial string) []error {
	p.fill.leave(trial)
	return p.claims.remove(ctx, trial)
}

// Shape implements trial.Place. For pods on two nodes, their place is the link.
func (p place) Shape(l sandbox.Link, _ []sandbox.Network) error { return p.checkLink(l) }

// Probe implements trial.Place: from the coordinator's pod.
func (place) Probe(ctx context.Context, at netip.Addr, p workload.Probe) (time.Time, error) {
	return probe.Wait(ctx, func() (int, error) {
		return unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	}, at, p)
}

// Available implements trial.Place.
func (p place) Available(ctx context.Context, node string) (int64, error) {
	if p.nodes == nil {
		return 0, errors.New("only an observer can read a node's free memory; add --observe")
	}
	return p.nodes.Available(ctx, node)
}

// DropCaches implements trial.Place.
func (place) DropCaches() error { return errors.New("a node's caches cannot be dropped") }
