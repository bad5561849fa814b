package cgroup

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// OOMKills counts the processes in the group and below that the kernel killed
// because a memory limit was reached: oom_kill of memory.oom_control (version 1)
// or of memory.events (version 2).
func (g *Group) OOMKills() (uint64, error) {
	return g.memory(func(dir string, v2 bool) (uint64, error) {
		file := "memory.oom_control"
		if v2 {
			file = "memory.events"
		}
		return readKey(filepath.Join(dir, file), "oom_kill")
	})
}

// LimitReached reports whether the group's memory, caches of files included, was at its limit
// at some time, so that the kernel had to take some back: max of memory.events (version
// 2), or the peak against the limit (version 1, whose memory.failcnt current kernels
// leave at zero). A program that needs more than its limit, and whose pages the kernel can
// take back, is not killed but becomes very slow.
func (g *Group) LimitReached() (bool, error) {
	n, err := g.memory(func(dir string, v2 bool) (uint64, error) {
		if v2 {
			return readKey(filepath.Join(dir, "memory.events"), "max")
		}
		limit, err := readNumber(filepath.Join(dir, "memory.limit_in_bytes"))
		if err != nil {
			return 0, err
		}
		peak, err := readNumber(filepath.Join(dir, "memory.max_usage_in_bytes"))
		if err != nil || peak < limit {
			return 0, err
		}
		return 1, nil
	})
	return n > 0, err
}

// memory sums a figure of the memory controller over the group and those below it.
func (g *Group) memory(read func(dir string, v2 bool) (uint64, error)) (uint64, error) {
	dir, ok := g.h.Path("memory", g.rel)
	if !ok {
		return 0, fmt.Errorf("cgroup: this host has no memory controller, so out-of-memory kills cannot be counted; see /proc/cgroups")
	}
	for _, t := range g.h.trees {
		if g.h.dir(t, g.rel) != dir {
			continue
		}
		if t.v2 && !t.localEvents {
			// The kernel has summed it over the children, removed ones included.
			return read(dir, true)
		}
		if _, err := os.Stat(dir); err != nil {
			return 0, fmt.Errorf("cgroup: %w", err)
		}
		var sum uint64
		err := g.h.walk(t, g.rel, func(dir string) error {
			n, err := read(dir, t.v2)
			sum += n
			return ignoreGone(err)
		})
		return sum, err
	}
	return 0, fmt.Errorf("cgroup: %s: %w", g.rel, fs.ErrNotExist)
}

// readNumber reads a control file that holds one number.
func readNumber(path string) (uint64, error) {
	words, err := readWords(path)
	if err != nil {
		return 0, fmt.Errorf("cgroup: %w", err)
	}
	if len(words) != 1 {
		return 0, fmt.Errorf("cgroup: %s has %d words; expected one number", path, len(words))
	}
	return strconv.ParseUint(words[0], 10, 64)
}
