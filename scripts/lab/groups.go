package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"tare/host/cgroup"
)

// groups are the lab's control groups: one tree below the group top, by the same path in every
// mounted hierarchy. Everything that the lab starts is in them, pods too, and so down finds it.
type groups struct {
	trees   []string // mount points
	unified bool     // version 2 alone
	systemd bool     // systemd runs the version 2 tree
	top     string
}

// scopeName is the systemd unit, and its group, where systemd runs the version 2 tree.
const scopeName = groupName + ".scope"

// findGroups finds where control groups are mounted.
func findGroups() (*groups, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, err
	}
	_, err = os.Stat("/run/systemd/system")
	return groupsFrom(mounts, err == nil)
}

func groupsFrom(mounts []*mountinfo.Info, systemd bool) (*groups, error) {
	g := &groups{unified: true, top: groupName}
	for _, m := range mounts {
		if !below(m.Mountpoint, "/sys/fs/cgroup") || slices.Contains(g.trees, m.Mountpoint) {
			continue // mounted elsewhere too, by a container or by hand
		}
		g.trees = append(g.trees, m.Mountpoint)
		g.unified = g.unified && m.FSType == "cgroup2"
	}
	if len(g.trees) == 0 {
		return nil, errors.New("no control groups are mounted below /sys/fs/cgroup; the kubelet needs them")
	}
	if g.systemd = g.unified && systemd; g.systemd {
		g.top = scopeName
	}
	return g, nil
}

// kubeletRoot is a node's group as its kubelet sees it: on version 2 it sees nothing above.
func (g *groups) kubeletRoot(name string) string {
	if g.unified {
		return "/"
	}
	return "/" + g.top + "/" + name
}

// daemons is the group of the daemons of a node, or of the control plane. On version 2 a group
// with processes cannot have children with limits, so it is one below the node's.
func daemons(name string) string {
	if name == control {
		return name
	}
	return name + "/daemons"
}

// procs are the files of a group that take a process, one for each tree.
func (g *groups) procs(name string) []string {
	var out []string
	for _, t := range g.trees {
		out = append(out, filepath.Join(t, g.top, name, "cgroup.procs"))
	}
	return out
}

// make makes the lab's groups. It changes none that is there already. The function that it
// returns must be called when the groups have processes.
func (g *groups) make(ctx context.Context) (release func(), err error) {
	release = func() {}
	if g.systemd {
		if release, err = g.scope(ctx); err != nil {
			return nil, err
		}
	}
	names := []string{"", control}
	for _, n := range nodes() {
		names = append(names, n.name, daemons(n.name))
	}
	for _, t := range g.trees {
		for _, name := range names {
			dir := filepath.Join(t, g.top, name)
			if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as every group
				return release, fmt.Errorf("cannot make a control group: %w; run as root", err)
			}
			if err := inherit(dir); err != nil {
				return release, err
			}
		}
	}
	if g.unified {
		return release, g.passOn()
	}
	return release, nil
}

// inherit gives a new group of cpuset, version 1, what its parent has: it takes no process
// before that.
func inherit(dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		above, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file)) //nolint:gosec // of the kernel
		if err != nil {
			continue // another tree
		}
		at := filepath.Join(dir, file)
		if own, err := os.ReadFile(at); err != nil || len(strings.TrimSpace(string(own))) > 0 { //nolint:gosec // as above
			continue // version 2 needs none
		}
		if err := os.WriteFile(at, above, 0o600); err != nil { //nolint:gosec // of the kernel
			return err
		}
	}
	return nil
}

// passOn enables, in the lab's own group of version 2, the controllers for its children.
func (g *groups) passOn() error {
	top := filepath.Join(g.trees[0], g.top)
	offered, err := os.ReadFile(filepath.Join(top, "cgroup.controllers")) //nolint:gosec // of the kernel
	if err != nil {
		return err
	}
	have := strings.Fields(string(offered))
	for _, c := range []string{"cpu", "cpuset", "memory", "pids"} {
		if !slices.Contains(have, c) {
			return fmt.Errorf("the control groups have no controller %s; enable it: echo +%s > %s/cgroup.subtree_control", c, c, g.trees[0])
		}
	}
	for _, c := range have {
		if err := os.WriteFile(filepath.Join(top, "cgroup.subtree_control"), []byte("+"+c), 0o600); err != nil { //nolint:gosec // of the kernel
			return fmt.Errorf("cannot pass on the controller %s: %w", c, err)
		}
	}
	return nil
}

// scope asks systemd for a unit that it delegates: then systemd enables the controllers, and
// touches nothing below. The unit lives as long as it has processes: cat, until release.
func (g *groups) scope(ctx context.Context) (release func(), err error) {
	cmd := exec.CommandContext(ctx, "systemd-run", "--scope", "--quiet", "--collect", "--slice=-.slice",
		"--unit="+scopeName, "-p", "Delegate=yes", "--", "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot ask systemd for a scope: %w", err)
	}
	release = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	top := filepath.Join(g.trees[0], g.top)
	err = until(ctx, 10*time.Second, nil, func(context.Context) error {
		b, err := os.ReadFile(filepath.Join(top, "cgroup.procs")) //nolint:gosec // of the kernel
		if err == nil && len(b) == 0 {
			err = fmt.Errorf("systemd-run has not entered %s", top)
		}
		return err
	})
	if err == nil {
		err = os.MkdirAll(filepath.Join(top, control), 0o755) //nolint:gosec // as every group
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(top, control, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
	}
	if err != nil {
		release()
	}
	return release, err
}

// exist says whether the lab's groups are there.
func (g *groups) exist() bool {
	return slices.ContainsFunc(g.trees, func(t string) bool {
		_, err := os.Stat(filepath.Join(t, g.top))
		return err == nil
	})
}

// destroy kills every process in the groups, and removes them.
func (g *groups) destroy(ctx context.Context) error {
	h, err := cgroup.Detect()
	if err != nil {
		return err
	}
	all := h.Open(g.top)
	for {
		pids, err := all.Procs()
		if err != nil {
			return err
		}
		if slices.Contains(pids, os.Getpid()) {
			return fmt.Errorf("this process is in the lab's control group %s; run down outside of it", g.top)
		}
		all.Thaw()
		for _, pid := range pids {
			g.kill(pid)
		}
		if err = g.remove(); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; its processes: %v", err, pids)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// kill kills a process by a descriptor, after a check that the process behind it is in the
// group: the number may belong to another one by now.
func (g *groups) kill(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err == nil && g.holds(string(b)) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// holds says whether a process with this /proc/PID/cgroup is in the lab's groups.
func (g *groups) holds(text string) bool {
	for line := range strings.Lines(text) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) == 3 && below(part[2], "/"+g.top) {
			return true
		}
	}
	return false
}

// remove removes the groups, which must be empty.
func (g *groups) remove() error {
	var failed error
	for _, t := range g.trees {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(t, g.top), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil // groups vanish while they are read
		})
		for _, d := range slices.Backward(dirs) {
			if err := unix.Rmdir(d); err != nil && !errors.Is(err, fs.ErrNotExist) && failed == nil {
				failed = fmt.Errorf("cannot remove the control group %s: %w", d, err)
			}
		}
	}
	return failed
}
