package main

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"

	"tare/site"
	"tare/study"
)

// weighOnCluster is where to weigh on a cluster, and what.
func (a *app) weighOnCluster(ctx context.Context, args []string, f *weighFlags) (site.Site, *weighing, study.Catalogue, error) {
	fail := func(err error) (site.Site, *weighing, study.Catalogue, error) {
		return nil, nil, study.Catalogue{}, err
	}
	if err := f.fitsCluster(); err != nil {
		return fail(err)
	}
	where, err := a.cluster(ctx, f.cluster)
	if err != nil {
		return fail(err)
	}
	cat, err := a.offers()
	if err != nil {
		return fail(err)
	}
	w, err := f.weighing(args, slices.Sorted(maps.Keys(cat.Sandboxes)), cat, onNodes())
	return where, w, cat, err
}

// fitsCluster refuses what a cluster cannot do, and has it do the rest its own way.
func (f *weighFlags) fitsCluster() error {
	switch {
	case f.on != onCluster:
		return coded(exitUsage, "--on %s: write --on k8s for a cluster, or leave it out to weigh on this host", f.on)
	case f.host != "":
		return coded(exitUsage, "--host names a machine, and --on k8s a cluster; leave one of them out")
	case f.image == "":
		return coded(exitUsage, "--on k8s needs --image: the image with the program, as the cluster's nodes pull it")
	case f.cpuset != "" && f.cpuset != study.AnyCPU:
		return coded(exitUsage, "--cpuset %s: on a cluster, the kubelet's CPU manager chooses processors; leave it out", f.cpuset)
	case f.cacert != "":
		return coded(exitUsage, "--cacert names a file, which the client's pod does not have; give --insecure")
	}
	if f.server != "" {
		f.cpuset = study.AnyCPU // in place of apart
	}
	if f.load != "" {
		f.loadImage = cmp.Or(f.loadImage, f.image)
	}
	return nil
}

// onNodes are the surroundings of a cluster. Files and directories are the nodes'.
func onNodes() surroundings {
	abs := func(p string) (string, error) {
		if !path.IsAbs(p) {
			return "", coded(exitUsage, "%s: on a cluster, files and directories are the nodes'; write an absolute path", p)
		}
		return path.Clean(p), nil
	}
	return surroundings{name: "on the cluster", abs: abs, exists: func(string) error { return nil }, kvm: func() bool { return true }}
}
