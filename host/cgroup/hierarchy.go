// Package cgroup makes, reads and removes control groups, on hosts with version
// 1, version 2, or both side by side (hybrid).
//
// The data path: 1. Detect finds in the mount table where each controller is;
// 2. Hold makes the place for a run's groups: a scope that systemd delegates, or
// the tree itself; 3. Create makes one group by the same relative path in every
// tree that has a controller we use, and sets its limits; 4. Add moves a process
// in; Procs and OOMKills read; 5. Destroy kills the processes of the group in every
// tree that has it, and removes it; 6. Release undoes what Hold changed.
//
// Everything lies under the group "tare", so that a run that was killed can be
// cleaned up by name (docs/design/0002-names-not-ledger.md). For the place of that group
// see docs/design/0018-cgroup-placement.md.
//
// Sources: Documentation/admin-guide/cgroup-v2.rst and
// Documentation/admin-guide/cgroup-v1/{cgroups,cpusets,memory,pids,freezer-subsystem}.rst
// in the kernel tree.
package cgroup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"tare/internal/rootless"
)

// Versions of a Hierarchy.
const (
	V1     = "v1"     // every controller in a version 1 tree
	V2     = "v2"     // one unified tree
	Hybrid = "hybrid" // version 1 trees beside a version 2 tree
	None   = "none"   // none is this user's: package rootless. Groups have processes, by their marker, and nothing else
)

// tree is one mounted hierarchy.
type tree struct {
	point       string // where it is mounted
	v2          bool
	localEvents bool     // v2 mounted with memory_localevents: events are not summed over children
	controllers []string // v1 only; empty for a named hierarchy such as systemd's
}

// Hierarchy is where the host's control groups are mounted.
type Hierarchy struct {
	Version string

	trees   []tree
	root    string // precedes every mount point; "" except in tests
	scope   string // the group above Top in the version 2 tree: Scope, or "" for the tree itself
	systemd bool   // systemd runs the version 2 tree
	// The calls that change the tree. Tests replace them: on the real file system
	// mkdir creates the control files, rmdir removes them, and the kernel acts on
	// every write.
	mkdir func(string) error
	rmdir func(string) error
	write func(path, value string) error
	notes notes
}

// v1Controllers are the options of a v1 superblock that name a controller;
// others (rw, xattr, name=systemd, clone_children) do not.
func v1Controllers() []string {
	return []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "freezer", "devices", "blkio",
		"net_cls", "net_prio", "perf_event", "hugetlb", "rdma", "misc"}
}

// used are the controllers that a group is made in on version 1.
func used() []string {
	return []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "freezer"}
}

// Detect finds the control groups of this host in /proc/self/mountinfo.
func Detect() (*Hierarchy, error) {
	if rootless.Is() {
		return &Hierarchy{Version: None}, nil
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cgroup: reading the mount table: %w; is /proc mounted?", err)
	}
	defer func() { _ = f.Close() }()
	h, err := DetectFrom(f)
	if err != nil {
		return nil, err
	}
	h.systemd = h.Version == V2 && runBySystemd()
	if t, ok := h.unified(); ok && h.Version == V2 && isDir(filepath.Join(h.dir(t, ""), Scope)) {
		h.scope = Scope
	}
	return h, nil
}

// Everywhere returns the hierarchy once for each place where this program's groups may
// be: a killed run may have used another place.
func (h *Hierarchy) Everywhere() []*Hierarchy {
	if h.scope == "" {
		return []*Hierarchy{h}
	}
	return []*Hierarchy{h, h.outside()}
}

// outside is the hierarchy with our groups in the tree itself.
func (h *Hierarchy) outside() *Hierarchy {
	plain := *h
	plain.scope = ""
	return &plain
}

// DetectFrom is Detect over the text of a mountinfo file. It fails when no
// control groups are mounted.
func DetectFrom(r io.Reader) (*Hierarchy, error) {
	mounts, err := mountinfo.GetMountsFromReader(r, mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("cgroup: reading the mount table: %w", err)
	}
	h := &Hierarchy{
		mkdir: func(p string) error { return unix.Mkdir(p, 0o755) },
		rmdir: unix.Rmdir,
		write: write,
		notes: xattrs{},
	}
	var haveV1, haveV2 bool
	for _, m := range mounts {
		t := tree{point: m.Mountpoint, v2: m.FSType == "cgroup2"}
		options := strings.Split(m.VFSOptions, ",")
		if t.v2 {
			t.localEvents = slices.Contains(options, "memory_localevents")
		} else {
			for _, c := range v1Controllers() {
				if slices.Contains(options, c) {
					t.controllers = append(t.controllers, c)
				}
			}
		}
		if !h.place(t) {
			continue
		}
		haveV2 = haveV2 || t.v2
		haveV1 = haveV1 || len(t.controllers) > 0
	}
	switch {
	case haveV1 && haveV2:
		h.Version = Hybrid
	case haveV2:
		h.Version = V2
	case haveV1:
		h.Version = V1
	default:
		return nil, errors.New("cgroup: no control groups are mounted; mount them with: mount -t cgroup2 none /sys/fs/cgroup")
	}
	return h, nil
}

// place adds a tree and reports whether it is new. The same hierarchy can be
// mounted more than once (by containers, or by hand); the one under
// /sys/fs/cgroup is the host's own.
func (h *Hierarchy) place(t tree) bool {
	for i, o := range h.trees {
		same := o.v2 == t.v2 && slices.Equal(o.controllers, t.controllers) && (t.v2 || len(t.controllers) > 0)
		if !same && o.point != t.point {
			continue
		}
		const home = "/sys/fs/cgroup"
		if o.point == t.point || (!strings.HasPrefix(o.point, home) && strings.HasPrefix(t.point, home)) {
			h.trees[i] = t // mounted over, or the better of two
		}
		return o.point == t.point
	}
	h.trees = append(h.trees, t)
	return true
}

// Path returns the directory of the group rel in the tree of a controller, and
// whether this host has that controller; the directory need not exist. The
// controller "" means the unified (version 2) tree. cpuacct and freezer are
// controllers on version 1 only; version 2 has their files in every group.
func (h *Hierarchy) Path(controller, rel string) (string, bool) {
	for _, t := range h.trees {
		if (controller == "" && t.v2) || (!t.v2 && slices.Contains(t.controllers, controller)) {
			return h.dir(t, rel), true
		}
	}
	if controller == "" {
		return "", false
	}
	for _, t := range h.trees {
		if t.v2 && h.available(h.dir(t, ""), controller) {
			return h.dir(t, rel), true
		}
	}
	return "", false
}

// dir is the directory of rel in a tree. Our own groups are in the scope, if there is
// one.
func (h *Hierarchy) dir(t tree, rel string) string {
	if first, _, _ := strings.Cut(strings.TrimPrefix(rel, "/"), "/"); t.v2 && first == Top {
		return filepath.Join(h.root, t.point, h.scope, rel)
	}
	return filepath.Join(h.root, t.point, rel)
}

// Absolute is the path of the group rel from the root of the mounted tree, with a
// leading slash; "" without trees. OCI runtimes take it as cgroupsPath.
func (h *Hierarchy) Absolute(rel string) string {
	if h.Version == None {
		return ""
	}
	return "/" + filepath.Join(h.scope, rel)
}

// unified is the version 2 tree, if Create makes groups in it.
func (h *Hierarchy) unified() (tree, bool) {
	for _, t := range h.mine() {
		if t.v2 {
			return t, true
		}
	}
	return tree{}, false
}

// available reports whether a v2 directory's cgroup.controllers lists a controller.
func (h *Hierarchy) available(dir, controller string) bool {
	words, err := readWords(filepath.Join(dir, "cgroup.controllers"))
	return err == nil && slices.Contains(words, controller)
}

// mine are the trees that Create makes a group in: each v1 tree with a
// controller we use, and the v2 tree when it is the only one or has one of our
// controllers. A hybrid host's v2 tree without controllers is left out: being
// in it costs the pressure accounting of one more level and limits nothing.
func (h *Hierarchy) mine() []tree {
	var out []tree
	for _, t := range h.trees {
		has := t.v2 && h.Version == V2
		for _, c := range used() {
			has = has || slices.Contains(t.controllers, c) || (t.v2 && h.available(h.dir(t, ""), c))
		}
		if has {
			out = append(out, t)
		}
	}
	return out
}

// readWords reads a one-line control file of words.
func readWords(path string) ([]string, error) {
	b, err := os.ReadFile(path) //nolint:gosec // a control file below a mount point that the kernel named
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(b)), nil
}

// write writes a control file in one call, as the kernel wants it.
func write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0) //nolint:gosec // as in readWords
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
