package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// Control files of version 2 that are used in several places.
const (
	subtreeControl = "cgroup.subtree_control"
	groupProcs     = "cgroup.procs"
	groupType      = "cgroup.type"
)

// enable passes all controllers of a version 2 directory on to its children. It writes
// only those that are missing: OCI runtimes do the same, and the baseline must have
// what they have. It returns an error if it cannot enable a controller that the limits
// need; the host can do without the others.
//
// It writes nothing while the directory itself holds processes. The kernel would still
// accept cpu and pids there, but make the group "domain threaded", and no process could
// enter its children any more. At the place of our groups this is an error, because the
// next runtime would write the controllers itself.
func (h *Hierarchy) enable(dir string, place bool, l Limits) error {
	missing, err := notPassedOn(dir)
	if err != nil {
		return err
	}
	needed := l.controllers()
	offered, err := readWords(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	for c, wanted := range needed {
		if wanted && !h.hasV1(c) && !slices.Contains(offered, c) {
			return fmt.Errorf("cgroup: the %s controller is not available in %s (it has: %s), so that limit cannot be set; on a systemd host give the unit Delegate=yes, or check the kernel's cgroup_disable=",
				c, dir, strings.Join(offered, " "))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	occupied, err := occupied(dir)
	if err != nil {
		return err
	}
	if !occupied {
		if place && h.scope == "" {
			h.remember(dir)
		}
		err = h.passOn(dir, missing)
	} else {
		err = fmt.Errorf("processes are in %s itself, and version 2 lets only an empty group pass controllers on; move them into a child group first", dir)
		if place {
			return fmt.Errorf("cgroup: %w", err)
		}
	}
	for _, c := range missing {
		if err != nil && needed[c] {
			return fmt.Errorf("cgroup: enabling %s below %s: %w", c, dir, err)
		}
	}
	return nil
}

// notPassedOn lists the controllers that a directory has but its children do not.
func notPassedOn(dir string) ([]string, error) {
	offered, err := readWords(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	on, err := readWords(filepath.Join(dir, subtreeControl))
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	return slices.DeleteFunc(offered, func(c string) bool { return slices.Contains(on, c) }), nil
}

// passOn writes controllers to subtree_control. It writes all at once, which takes the
// kernel's lock once; if the kernel refuses, it writes them one by one. The error names
// those that were refused.
func (h *Hierarchy) passOn(dir string, controllers []string) error {
	path := filepath.Join(dir, subtreeControl)
	if h.write(path, "+"+strings.Join(controllers, " +")) == nil {
		return nil
	}
	var failed []error
	for _, c := range controllers {
		if err := h.write(path, "+"+c); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", c, err))
		}
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("%w; %s", err, refusal(err))
	}
	return nil
}

// occupied reports whether a directory that must be empty to pass controllers on holds
// processes. The real root of the tree, which has no cgroup.type, need not be empty.
func occupied(dir string) (bool, error) {
	if !files.Exists(filepath.Join(dir, groupType)) {
		return false, nil
	}
	b, err := os.ReadFile(filepath.Join(dir, groupProcs)) //nolint:gosec // a control file
	if errors.Is(err, unix.EOPNOTSUPP) {
		return true, nil // a threaded group
	}
	if err = ignoreGone(err); err != nil {
		return false, fmt.Errorf("cgroup: %w", err)
	}
	return len(b) > 0, nil
}

// refusal says what to do when the kernel forbids a change of control groups.
func refusal(err error) string {
	switch {
	case errors.Is(err, unix.EROFS):
		return "the control groups are mounted read-only: set ProtectControlGroups=no in the systemd unit that runs tare, or start the container with --privileged"
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() == 0:
		return "root may not change control groups here: start the container with --privileged, or run tare on the host"
	case errors.Is(err, fs.ErrPermission):
		return "run as root"
	}
	return "look for a process with real-time priority or a group of another program: either can be the cause"
}

func isDir(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.IsDir()
}

// Lacks lists what this host's control groups and pressure figures cannot do, each with
// the consequence and what to do.
func (h *Hierarchy) Lacks() []Lack {
	var out []Lack
	for _, c := range []struct{ v2, v1, lost string }{
		{"cpu", "cpu", "CPU limits cannot be set, and throttling is not read"},
		{"memory", "memory", "memory limits cannot be set, and memory use and out-of-memory kills of sandboxes are not read"},
		{"io", "blkio", "cgroup_io_read and cgroup_io_written are not read"},
		{"pids", "pids", "cgroup_tasks is not read"},
		{"cpuset", "cpuset", "sandboxes cannot be bound to CPUs"},
	} {
		if _, ok := h.Path(c.v1, ""); ok || h.Version == None { // all are missing, which is told once
			continue
		}
		if _, ok := h.Path(c.v2, ""); !ok {
			out = append(out, Lack{c.v2, fmt.Sprintf("the control groups have no %s controller: %s; remove cgroup_disable=%s from the kernel's command line (/proc/cmdline), or have whoever started this container pass it on",
				c.v2, c.lost, c.v2)})
		}
	}
	// With psi=0 the file is missing, or it cannot be read: EOPNOTSUPP.
	if _, err := os.ReadFile(filepath.Join(h.root, "/proc/pressure/cpu")); err != nil {
		out = append(out, Lack{"pressure", "the kernel does not account pressure stalls (PSI): system_pressure and cgroup_*_pressure are not read, and only run-queue waits show how busy the machine was; boot with psi=1"})
	}
	return out
}

// Lack is one thing that a host cannot do.
type Lack struct{ Name, Text string }
