package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// Aside is the group where the processes of a container wait while sandboxes run
// beside it. It is not one of our groups: its processes are never killed.
const Aside = "tare.aside"

// vacate moves the processes of a directory itself into its child Aside, so that the
// directory can pass controllers on: cgroup-v2.rst, "No Internal Process Constraint".
// The real root of a tree may hold processes; the root of a container's cgroup
// namespace may not.
func (h *Hierarchy) vacate(dir string) error {
	if !files.Exists(filepath.Join(dir, groupType)) {
		return nil
	}
	missing, err := notPassedOn(dir)
	if err != nil || len(missing) == 0 {
		return err
	}
	pids, foreign, err := sitting(dir)
	switch {
	case err != nil:
		return fmt.Errorf("cgroup: %w", err)
	case foreign > 0:
		return fmt.Errorf("cgroup: %d processes from outside this PID namespace are in %s itself, so it cannot pass controllers on and no sandbox can have limits; run tare on the host, or start the container with its own control group and PID namespaces",
			foreign, dir)
	case len(pids) == 0:
		return nil
	}
	aside := filepath.Join(dir, Aside)
	if err := h.mkdir(aside); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("cgroup: making %s: %w; %s", aside, err, refusal(err))
	}
	if err := h.moveAll(dir, aside); err != nil {
		return errors.Join(fmt.Errorf("cgroup: emptying %s: %w", dir, err), h.comeBack(dir))
	}
	return nil
}

// unthread turns a "domain threaded" directory into a domain again. It became threaded
// when cpu or pids were passed on while it held processes. If groups below hold
// threads of others, unthread fails and changes nothing.
func (h *Hierarchy) unthread(dir string) error {
	kind, _ := readWords(filepath.Join(dir, groupType)) // the real root has none
	if len(kind) == 0 || slices.Equal(kind, []string{"domain"}) {
		return nil
	}
	on, err := readWords(filepath.Join(dir, subtreeControl))
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	if slices.Equal(kind, []string{"domain", "threaded"}) {
		for _, c := range on {
			_ = h.write(filepath.Join(dir, subtreeControl), "-"+c) // the check below shows whether this was enough
		}
		if now, _ := readWords(filepath.Join(dir, groupType)); slices.Equal(now, []string{"domain"}) {
			return nil
		}
		_ = h.passOn(dir, on)
	}
	return fmt.Errorf("cgroup: %s has the type %q, in which no sandbox can have limits; restart the container, or run tare on the host", dir, strings.Join(kind, " "))
}

// sitting lists the processes in a directory itself, not in groups below it. It counts
// those that have no number in this PID namespace.
func sitting(dir string) (pids []int, foreign int, err error) {
	f, err := os.Open(filepath.Join(dir, groupProcs)) //nolint:gosec // a control file
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	return parseProcs(f)
}

// moveAll moves the processes of one directory to another. It repeats this while new
// processes appear: a process that forks meanwhile leaves its child behind.
func (h *Hierarchy) moveAll(from, to string) error {
	var last error
	for range 100 {
		pids, _, err := sitting(from)
		if err != nil || len(pids) == 0 {
			return ignoreGone(err)
		}
		for _, pid := range pids {
			err := h.write(filepath.Join(to, groupProcs), strconv.Itoa(pid))
			if err != nil && !errors.Is(err, unix.ESRCH) {
				last = fmt.Errorf("moving process %d to %s: %w", pid, to, err)
			}
		}
		if last != nil {
			return last
		}
	}
	return fmt.Errorf("processes keep starting in %s; stop the program that forks there", from)
}

// comeBack moves the processes in Aside back and removes it.
func (h *Hierarchy) comeBack(dir string) error {
	aside := filepath.Join(dir, Aside)
	if !isDir(aside) {
		return nil
	}
	if err := h.moveAll(aside, dir); err != nil {
		hint := "; they stay there and keep running"
		if on, rerr := readWords(filepath.Join(dir, subtreeControl)); rerr == nil && len(on) > 0 {
			hint = fmt.Sprintf("; other groups in %s use the controllers %s; the processes stay there until those groups are gone", dir, strings.Join(on, " "))
		}
		return fmt.Errorf("cgroup: %w%s", err, hint)
	}
	return ignoreGone(h.rmdir(aside))
}
