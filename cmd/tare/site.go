package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	collectall "tare/collect/all"
	collecthost "tare/collect/host"
	"tare/host"
	"tare/host/image"
	"tare/modelled"
	"tare/record"
	"tare/report/words"
	"tare/sandbox"
	"tare/site"
	"tare/study"
	"tare/trial"
)

// onModel is the one value of --on: what plays host and sandboxes.
const onModel = "model"

const onHelp = "model: rehearse on a simulated machine, without sandboxes; k8s: measure in pods of a Kubernetes cluster (default: this host)"

// dataFlag begins the flag of a site whose data is not where it is by default.
const dataFlag = "--data "

// dataAt is the flag of a site whose data is in this directory; "" for the usual one.
func dataAt(dir string) string {
	if dir == "" || dir == host.DefaultDirs().Data {
		return ""
	}
	return dataFlag + words.Shell(dir)
}

// siteOn returns the site that --on or --host names, and what ends it. data is where the disk
// to be measured is, "" for the site's own choice.
func (a *app) siteOn(ctx context.Context, on, host, data string, k clusterFlags) (site.Site, func(), error) {
	if on == onCluster && host == "" && data == "" {
		s, err := a.cluster(ctx, k)
		return s, func() {}, err
	}
	if on != "" && on != onCluster && on != onModel {
		return nil, nil, badOn(on)
	}
	if flag := k.given(); flag != "" && on != onCluster {
		return nil, nil, coded(exitUsage, "--%s goes with --on k8s; write both, or leave it out", flag)
	}
	if host == "" {
		s, err := a.siteHere(on, data)
		return s, func() {}, err
	}
	if on != "" || data != "" {
		return nil, nil, coded(exitUsage, "--host excludes --on and --data; leave one of them out")
	}
	m, err := a.machine(ctx, host)
	if err != nil {
		return nil, nil, err
	}
	return m, func() { _ = m.Close() }, nil
}

func (a *app) siteHere(on, data string) (site.Site, error) {
	switch on {
	case "":
		s := a.sandboxes()
		if data == "" {
			return s, nil
		}
		if i, err := os.Stat(data); err != nil || !i.IsDir() {
			return nil, coded(exitUsage, "--data %s is not a directory; name one on the disk to measure", data)
		}
		if err := mayBeWritten(data); err != nil {
			return nil, coded(exitUsage, "--data %w; give a directory that can be written", err)
		}
		var err error
		s.Dirs.Data, err = filepath.Abs(data)
		s.Flag = dataAt(s.Dirs.Data)
		return s, err
	case onCluster:
		return nil, coded(exitUsage, "--on k8s is for `tare run` and `tare plan`, without --host and --data")
	case onModel:
		if data != "" {
			return nil, coded(exitUsage, "--data names a disk to measure, and --on model measures no disk; leave one of them out")
		}
		return modelled.Site{Takes: expected}, nil
	}
	return nil, badOn(on)
}

// mayBeWritten says why nothing can be written in a directory. The kernel refuses root only on a read-only file system: access(2).
func mayBeWritten(dir string) error {
	switch err := unix.Access(dir, unix.W_OK); {
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%s is read-only", dir)
	case err != nil:
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

// badOn says that there is no such site.
func badOn(on string) error {
	return coded(exitUsage, "--on %s: write --on model for a rehearsal, --on k8s for a cluster, or leave it out to measure this host", on)
}

// sandboxes is host for a verb that starts sandboxes. An ordinary user's goes on in a user
// namespace, from its first line.
func (a *app) sandboxes() *host.Site {
	s := a.host()
	if a.enter != nil && s.Dirs.Own() == nil {
		a.enter(s.Dirs.Run)
	}
	return s
}

// host is this host as a site.
func (a *app) host() *host.Site {
	d := host.DefaultDirs()
	return &host.Site{
		Dirs: d, Say: a.say, Workloads: workloads(), Collectors: collectors, Counting: collectall.Counting(),
		Kinds: func(checks string, own []study.Sandbox) (map[string]sandbox.Kind, error) {
			machines, err := guestFiles(a.say)
			if err != nil {
				return nil, err
			}
			ks, _, err := kindsFrom(checks, own, machines)
			return ks, err
		},
		Images: func() (*image.Builder, error) { return a.builder(imageFlags{}) },
		Describe: func(ctx context.Context) record.Host {
			return proven(collecthost.Describe(ctx, "/", collecthost.Tools()), machineCache(), thisBoot())
		},
	}
}

// expected returns how long a trial of a cell takes on a host. Nothing is tried.
func expected(r site.Request) (func(record.Cell) time.Duration, error) {
	kinds, _, err := kindsFrom("", r.Study.Sandboxes, nil) // they tell how long they would take
	if err != nil {
		return nil, err
	}
	m := trial.Maker{Study: r.Study, Catalogue: r.Catalogue, Workloads: workloads(), Kinds: kinds}
	return m.Expected, nil
}
