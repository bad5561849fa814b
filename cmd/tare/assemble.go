package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/catalogue"
	"tare/cluster"
	"tare/cluster/kubevirt"
	"tare/cluster/objects"
	"tare/cluster/pod"
	"tare/collect"
	collectall "tare/collect/all"
	"tare/host"
	"tare/host/image"
	"tare/param"
	"tare/sandbox"
	sandboxall "tare/sandbox/all"
	"tare/sandbox/vm/boot"
	"tare/study"
	"tare/workload"
	workloadall "tare/workload/all"
)

// workloads returns every workload by name.
func workloads() map[string]workload.Workload {
	out := map[string]workload.Workload{}
	for _, w := range workloadall.Workloads() {
		out[w.Name()] = w
	}
	return out
}

// kinds returns every sandbox by name, including the study's own. Their checks use the
// directory checks.
func kinds(checks string, defs []study.Sandbox) (map[string]sandbox.Kind, []string, error) {
	machines, err := guestFiles(nil)
	if err != nil {
		return nil, nil, err
	}
	return kindsFrom(checks, defs, machines)
}

// kindsFrom is kinds with machines that start from those files.
func kindsFrom(checks string, defs []study.Sandbox, machines boot.Source) (map[string]sandbox.Kind, []string, error) {
	list := sandboxall.Kinds(sandboxall.Env{StateDir: checks, CacheDir: host.DefaultDirs().Cache, Boot: machines})
	bases := append(sandboxall.Bases(list), clusterBases()...)
	for _, d := range defs {
		for _, b := range bases {
			if word, _ := b.Base(); word == d.Kind {
				k, err := b.Define(d.Name, d.Values)
				if err != nil {
					return nil, nil, fmt.Errorf("sandbox %s: %w", d.Name, err)
				}
				list = append(list, k)
			}
		}
	}
	out := map[string]sandbox.Kind{}
	var names []string
	for _, k := range list {
		out[k.Name()] = k
		names = append(names, k.Name())
	}
	return out, names, nil
}

// guestFiles is where virtual machines have their kernel and this program from. A
// kernel that is built is told to say, which may be nil.
func guestFiles(say func(string, ...any)) (*boot.Cache, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find tare's own binary: %w", err)
	}
	return &boot.Cache{
		Images: &image.Builder{Cache: filepath.Join(host.DefaultDirs().Cache, "images"), Say: say}, Dir: filepath.Join(machineCache(), "boot"),
		Self: self, Kernel: os.Getenv(boot.KernelVariable),
	}, nil
}

// collectors returns the named ones.
func collectors(names []string) []collect.Collector {
	var out []collect.Collector
	for _, c := range collectall.Collectors() {
		if slices.Contains(names, c.Name()) {
			out = append(out, c)
		}
	}
	return out
}

// offered is what a study can be made of, as data.
func offered() (study.Catalogue, error) {
	machines, err := guestFiles(nil)
	if err != nil {
		return study.Catalogue{}, err
	}
	list := sandboxall.Kinds(sandboxall.Env{CacheDir: host.DefaultDirs().Cache, Boot: machines})
	cat := catalogue.Of(workloadall.Workloads(), list, collectall.Collectors())
	for _, b := range clusterBases() {
		cat.Bases = append(cat.Bases, catalogue.Base(b))
	}
	return cat, nil
}

// clusterBases are what a study defines a cluster's sandboxes like where there is no cluster: they are
// known, and start nowhere.
func clusterBases() []sandbox.Definable {
	return []sandbox.Definable{pod.New(pod.Class{Name: sandbox.Native}, nil, nil, nil), kubevirt.New(nil, nil, nil, nil)}
}

// readStudyOf reads a study file and checks it against what a study can be made of, and against the cluster that its loads are for; nil:
// that is not known.
func readStudyOf(offers func() (study.Catalogue, error), on *objects.Cluster, file string, sets []string) (*study.Study, study.Catalogue, error) {
	cat, err := offers()
	if err != nil {
		return nil, cat, err
	}
	src, err := readSource(file, studyPatience)
	if err != nil {
		return nil, cat, coded(exitUsage, "%w", err)
	}
	if err := refuseImported(src, file); err != nil {
		return nil, cat, err
	}
	routes := cat.ReadFile // of a cluster
	cat.ReadFile = func(path string) ([]byte, error) {
		switch from, is := strings.CutPrefix(path, cluster.RoutesOf); {
		case !is:
			return readBeside(file, path)
		case routes == nil:
			return nil, fmt.Errorf("%s: tare reads routes from a cluster only with --on k8s, without --manifests and --no-check; write the path of a file", path)
		default:
			return routes(from)
		}
	}
	for _, name := range []string{"objects", "claims"} {
		load := cat.Workloads[name]
		load.Check = objects.Checked(load.Check, on)
		cat.Workloads[name] = load
	}
	st, err := study.Parse(file, src, cat, sets)
	return st, cat, err
}

// studiesIn says what to give instead of a directory: its study files, if it has some.
func studiesIn(dir string) string {
	some, _ := filepath.Glob(filepath.Join(dir, "*.yaml")) // the pattern is good; a directory that cannot be read has none
	if len(some) == 0 {
		return "a study file, such as studies/first.yaml, or a results folder to go on with"
	}
	more := ""
	if len(some) > 3 {
		more = fmt.Sprintf(" or one of %d more", len(some)-3)
	}
	return "a study file, such as " + strings.Join(some[:min(len(some), 3)], ", ") + more
}

// studyPatience is how long the writer of a pipe may take to write a study.
const studyPatience = 30 * time.Second

// readSource reads the text of a study, up to the size that a study may have. It reads a
// file, or a pipe such as <(generate), whose writer must end within patience.
func readSource(file string, patience time.Duration) ([]byte, error) {
	at, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("the study file %s does not exist; check the path", file)
	case err != nil:
		return nil, err //nolint:wrapcheck // it names the file
	case at.IsDir():
		return nil, fmt.Errorf("cannot read %s: it is a directory without results; give %s", file, studiesIn(file))
	case !at.Mode().IsRegular() && at.Mode()&os.ModeNamedPipe == 0:
		return nil, fmt.Errorf("cannot read %s: it is a device; give a study file", file)
	}
	// Without O_NONBLOCK, a pipe without a writer would never open.
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	defer func() { _ = f.Close() }()
	if !at.Mode().IsRegular() {
		deadline := time.Now().Add(patience)
		if err := f.SetReadDeadline(deadline); err != nil {
			return nil, fmt.Errorf("cannot set a time limit for reading %s: %w; give a study file", file, err)
		}
		if err := writerOf(f, deadline); errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, fmt.Errorf("cannot read %s: nothing was written to it within %v; give a study file", file, patience)
		} else if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w; give a study file", file, err)
		}
	}
	src, err := io.ReadAll(io.LimitReader(f, study.MaxSource+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("cannot read %s: the program that writes to it did not finish within %v; give a study file", file, patience)
	case err != nil:
		return nil, err //nolint:wrapcheck // it names the file
	case len(src) > study.MaxSource:
		return nil, fmt.Errorf("%s is larger than %s, the limit for a study; give a study file", file, strings.TrimSpace(param.FormatSize(study.MaxSource)))
	case len(src) == 0 && !at.Mode().IsRegular():
		return nil, fmt.Errorf("cannot read %s: it is empty; give a study file", file)
	}
	return src, nil
}

// writerOf waits until a pipe has data, or a writer that has closed it: a pipe that nobody
// has opened for writing yet reads as if it had ended.
func writerOf(f *os.File, deadline time.Time) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	var perr error
	err = c.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // a descriptor is small
		for {
			n, err := unix.Poll(p, int(max(0, time.Until(deadline).Milliseconds())))
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case err == nil && n == 0:
				err = os.ErrDeadlineExceeded
			}
			perr = err
			return
		}
	})
	return errors.Join(err, perr)
}

// readBeside reads a file that a study names, from the study's own directory.
func readBeside(studyFile, path string) ([]byte, error) {
	name := path
	if !filepath.IsAbs(path) {
		name = filepath.Join(filepath.Dir(studyFile), path)
	}
	// A pipe would wait for who writes to it, a device may have no end.
	switch at, err := os.Stat(name); {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s; write a path relative to the study file", name)
	case err != nil:
		return nil, err //nolint:wrapcheck // it names the file
	case !at.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file; name one", name)
	}
	f, err := os.Open(name) //nolint:gosec // the study's author names the file
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, study.MaxFile+1)) //nolint:wrapcheck // it names the file
}
