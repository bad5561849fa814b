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
)

// Aside is the group that the processes of a container wait in while sandboxes
// are beside it. It is none of ours: what is in it is never killed.
const Aside = "tare.aside"

// vacate moves the processes that sit in a directory into its child Aside, so that
// it can pass controllers on: cgroup-v2.rst, "No Internal Process Constraint". The
// true root of a tree may hold processes; the root of a cgroup namespace, as a
// container has, may not.
func (h *Hierarchy) vacate(dir string) error {
	if !exists(filepath.Join(dir, groupType)) {
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
		return fmt.Errorf("cgroup: %d processes from outside of this PID namespace sit in %s itself, so that it cannot pass controllers on and no sandbox can be limited; run tare on the host, or start the container with a control group and a PID namespace of its own",
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

// unthread makes a "domain threaded" directory a domain again, which it became when
// cpu or pids were passed on while processes sat in it. Where threads of others
// are in groups below, that fails, and nothing is changed.
func (h *Hierarchy) unthread(dir string) error {
	kind, _ := readWords(filepath.Join(dir, groupType)) // none at the true root
	if len(kind) == 0 || slices.Equal(kind, []string{"domain"}) {
		return nil
	}
	on, err := readWords(filepath.Join(dir, subtreeControl))
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	if slices.Equal(kind, []string{"domain", "threaded"}) {
		for _, c := range on {
			_ = h.write(filepath.Join(dir, subtreeControl), "-"+c) // what follows tells whether it was enough
		}
		if now, _ := readWords(filepath.Join(dir, groupType)); slices.Equal(now, []string{"domain"}) {
			return nil
		}
		_ = h.passOn(dir, on)
	}
	return fmt.Errorf("cgroup: %s is of the type %q, in which no sandbox can be limited; restart the container, or run tare on the host", dir, strings.Join(kind, " "))
}

// sitting lists the processes right in a directory, and counts those that this PID
// namespace has no number for.
func sitting(dir string) (pids []int, foreign int, err error) {
	f, err := os.Open(filepath.Join(dir, groupProcs)) //nolint:gosec // a control file
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	return parseProcs(f)
}

// moveAll moves the processes of one directory to another, again and again while
// new ones come: a process that forks meanwhile leaves its child behind.
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
	return fmt.Errorf("processes keep starting in %s; end what forks there", from)
}

// comeBack moves the processes in Aside back and removes it.
func (h *Hierarchy) comeBack(dir string) error {
	aside := filepath.Join(dir, Aside)
	if !isDir(aside) {
		return nil
	}
	if err := h.moveAll(aside, dir); err != nil {
		hint := "; they stay there, where they run as well"
		if on, rerr := readWords(filepath.Join(dir, subtreeControl)); rerr == nil && len(on) > 0 {
			hint = fmt.Sprintf("; other groups in %s use the controllers %s; they stay there until those groups are gone", dir, strings.Join(on, " "))
		}
		return fmt.Errorf("cgroup: %w%s", err, hint)
	}
	return ignoreGone(h.rmdir(aside))
}
