package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Group is one control group, by the same path in all trees.
type Group struct {
	h   *Hierarchy
	rel string
}

// Open names a group that somebody else made or may have made, such as an OCI
// runtime. It need not exist.
func (h *Hierarchy) Open(rel string) *Group { return &Group{h: h, rel: rel} }

// Rel is the group's path relative to each tree's root.
func (g *Group) Rel() string { return g.rel }

// Add moves a process, with all its threads, into the group in every tree that
// has it.
func (g *Group) Add(pid int) error {
	joined := false
	for _, t := range g.h.trees {
		err := g.h.write(filepath.Join(g.h.dir(t, g.rel), "cgroup.procs"), strconv.Itoa(pid))
		switch {
		case err == nil:
			joined = true
		case errors.Is(err, fs.ErrNotExist):
			// Made in the trees with our controllers only.
		default:
			return fmt.Errorf("cgroup: moving process %d into %s of %s: %w%s", pid, g.rel, t.point, err, addHint(err))
		}
	}
	if !joined {
		return fmt.Errorf("cgroup: moving process %d into %s: %w", pid, g.rel, fs.ErrNotExist)
	}
	return nil
}

func addHint(err error) string {
	switch {
	case errors.Is(err, unix.ESRCH):
		return " (the process has ended)"
	case errors.Is(err, unix.ENOSPC):
		return "; its cpuset is empty"
	case errors.Is(err, unix.EBUSY):
		return "; on version 2 a group that passes controllers on to children takes no processes itself"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		return "; " + refusal(err)
	}
	return ""
}

// Procs lists the processes in the group and below, in every tree, each once
// and in rising order. A group that does not exist has no processes. Zombies can be in the
// list on version 1, not on version 2.
func (g *Group) Procs() ([]int, error) {
	if g.h.Version == None {
		return g.marked()
	}
	var out []int
	for _, t := range g.h.trees {
		err := g.h.walk(t, g.rel, func(dir string) error {
			pids, err := readProcs(dir)
			out = append(out, pids...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("cgroup: processes of %s: %w", g.rel, err)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func readProcs(dir string) ([]int, error) {
	pids, _, err := sitting(dir)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil // a threaded group: the domain above lists its processes
	}
	return pids, ignoreGone(err)
}

// maxProcs bounds one cgroup.procs: the kernel's PID_MAX_LIMIT on 64 bits.
const maxProcs = 4 << 20

// parseProcs reads process numbers, one a line. 0 stands for a process that
// this PID namespace cannot name: those are counted.
func parseProcs(r io.Reader) (pids []int, foreign int, err error) {
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		pid, err := strconv.Atoi(sc.Text())
		switch {
		case err != nil || pid < 0:
			return nil, 0, fmt.Errorf("cgroup.procs: %q is not a process number", sc.Text())
		case len(pids) == maxProcs:
			return nil, 0, fmt.Errorf("cgroup.procs: more than %d processes", maxProcs)
		case pid == 0:
			foreign++
		default:
			pids = append(pids, pid)
		}
	}
	return pids, foreign, sc.Err()
}

// readKey reads one value of a flat keyed file.
func readKey(path, key string) (uint64, error) {
	f, err := os.Open(path) //nolint:gosec // as in readWords
	if err != nil {
		return 0, fmt.Errorf("cgroup: %w", err)
	}
	defer func() { _ = f.Close() }()
	n, err := parseKey(f, key)
	if err != nil {
		return 0, fmt.Errorf("cgroup: %s: %w", path, err)
	}
	return n, nil
}

// parseKey finds "key N" in a flat keyed file.
func parseKey(r io.Reader, key string) (uint64, error) {
	sc := bufio.NewScanner(io.LimitReader(r, 64<<10))
	for sc.Scan() {
		if k, v, _ := strings.Cut(sc.Text(), " "); k == key {
			return strconv.ParseUint(v, 10, 64)
		}
	}
	if err := sc.Err(); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("it has no %s; the kernel is older than 4.13", key)
}

// walk visits rel's directory and those below it, parents first. Directories
// that vanish meanwhile are passed over.
func (h *Hierarchy) walk(t tree, rel string, visit func(dir string) error) error {
	return filepath.WalkDir(h.dir(t, rel), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return ignoreGone(err)
		}
		if !d.IsDir() {
			return nil
		}
		return visit(path)
	})
}

// ignoreGone drops the errors of a group that is removed while it is read.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// Children lists the paths of the groups right below, in any tree, sorted, and
// tells whether the group itself is there.
func (g *Group) Children() (rels []string, there bool) {
	for _, t := range g.h.trees {
		entries, err := os.ReadDir(g.h.dir(t, g.rel))
		there = there || err == nil
		for _, e := range entries {
			if e.IsDir() {
				rels = append(rels, filepath.Join(g.rel, e.Name()))
			}
		}
	}
	slices.Sort(rels)
	return slices.Compact(rels), there
}
