package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"tare/cluster/observer"
	"tare/host/probe"
	"tare/sandbox"
	"tare/trial"
	"tare/volume"
	"tare/workload"
)

// place is a cluster as a trial.Place: a pod brings its directories and its network.
type place struct {
	nodes  observer.Nodes
	images map[string]Image // by name
}

// Check is of trial.Place.
func (p place) Check(d trial.Demand) error {
	img, err := p.Image(d.Image)
	switch {
	case d.Image != "" && err != nil:
		return err
	case d.Own && img.Problem != "":
		return fmt.Errorf("image %s: %s", d.Image, img.Problem)
	case d.CPUs != "":
		return fmt.Errorf("cpus %s: on a cluster, the kubelet's CPU manager chooses processors", d.CPUs)
	case d.Link != sandbox.Link{}:
		return errors.New("the link between pods cannot be shaped")
	}
	for _, v := range d.Volumes {
		if v.Mode == volume.Block || v.Medium != volume.Disk && v.Medium != volume.Memory {
			return fmt.Errorf("volume %s: on a cluster, a volume is a directory of the node's disk or memory (emptyDir)", v.Name)
		}
	}
	return nil
}

// Image is of trial.Place.
func (p place) Image(name string) (trial.Image, error) {
	img, known := p.images[name]
	switch {
	case !known:
		return img.Image, fmt.Errorf("image %s was not looked up; report this as an error of tare", name)
	case img.Missing != "":
		return img.Image, fmt.Errorf("image %s: %s", name, img.Missing)
	}
	return img.Image, nil
}

// Prepare is of trial.Place.
func (place) Prepare(_ context.Context, want sandbox.Want) (sandbox.Spec, error) {
	return sandbox.Spec{Want: want}, nil
}

// Apart is of trial.Place.
func (place) Apart(int) ([]string, error) {
	return nil, errors.New("on a cluster, the kubelet's CPU manager chooses processors")
}

// Retire is of trial.Place.
func (place) Retire(string) error { return nil }

// Release is of trial.Place. A pod takes with it what it brought.
func (place) Release(context.Context, string) []error { return nil }

// Shape is of trial.Place.
func (place) Shape(l sandbox.Link, _ []sandbox.Network) error {
	if l != (sandbox.Link{}) {
		return errors.New("the link between pods cannot be shaped")
	}
	return nil
}

// Probe is of trial.Place: from the coordinator's pod.
func (place) Probe(ctx context.Context, at netip.Addr, p workload.Probe) (time.Time, error) {
	return probe.Wait(ctx, func() (int, error) {
		return unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	}, at, p)
}

// Available is of trial.Place.
func (p place) Available(ctx context.Context, node string) (int64, error) {
	if p.nodes == nil {
		return 0, errors.New("only an observer can read the free memory of a node; add --observe")
	}
	return p.nodes.Available(ctx, node)
}

// DropCaches is of trial.Place.
func (place) DropCaches() error { return errors.New("the caches of a node cannot be dropped") }
