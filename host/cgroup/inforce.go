package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Bounds of Find: how deep the groups of pods are (a kubelet may itself be in a group), and how
// many directories are looked at.
const (
	findDepth = 8
	findMost  = 1 << 16
)

// Find returns the group nearest to the root whose directory's name is accepted.
func (h *Hierarchy) Find(accept func(name string) bool) (*Group, error) {
	seen := 0
	for _, t := range h.trees {
		level := []string{""}
		for range findDepth {
			var next []string
			for _, rel := range level {
				entries, err := os.ReadDir(h.dir(t, rel))
				if err != nil && ignoreGone(err) != nil {
					return nil, fmt.Errorf("cgroup: %w", err)
				}
				for _, e := range entries {
					if !e.IsDir() {
						continue
					}
					if seen++; seen > findMost {
						return nil, fmt.Errorf("cgroup: more than %d groups", findMost)
					}
					sub := path.Join(rel, e.Name())
					if accept(e.Name()) {
						return h.Open(sub), nil
					}
					next = append(next, sub)
				}
			}
			level = next
		}
	}
	return nil, fmt.Errorf("cgroup: no such group: %w", fs.ErrNotExist)
}

// Busiest returns the group with the most threads: g, or one below it. Of equal ones it is the
// first by path.
func (g *Group) Busiest() (*Group, error) {
	best, most := g, -1
	for _, t := range g.h.trees {
		err := g.h.walk(t, g.rel, func(dir string) error {
			file := "tasks"
			if t.v2 {
				file = "cgroup.threads"
			}
			text, err := os.ReadFile(filepath.Join(dir, file)) //nolint:gosec // below the cgroup mount
			if err != nil {
				return ignoreGone(err)
			}
			if n := bytes.Count(text, []byte("\n")); n > most {
				rel, err := filepath.Rel(g.h.dir(t, ""), dir)
				if err != nil {
					return err
				}
				best, most = g.h.Open(rel), n
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("cgroup: threads of %s: %w", g.rel, err)
		}
	}
	return best, nil
}

// InForce reads the limits that bound the group: the least of its own and of those above it, up
// to and with the group top. limited is the path of the innermost group with a CPU quota; "" if
// none has one. It reads cpu.max and memory.max (version 2), cpu.cfs_quota_us and
// memory.limit_in_bytes (version 1).
func (g *Group) InForce(top *Group) (l Limits, limited string, err error) {
	for rel := g.rel; ; rel = path.Dir(rel) {
		one := g.h.Open(rel)
		cpu, cerr := one.quota()
		mem, merr := one.memoryMax()
		if err := errors.Join(cerr, merr); err != nil {
			return Limits{}, "", fmt.Errorf("cgroup: limits of %s: %w", rel, err)
		}
		if cpu > 0 && limited == "" {
			limited = rel
		}
		l.CPU, l.Memory = least(l.CPU, cpu), least(l.Memory, mem)
		if rel == top.rel || !strings.Contains(rel, "/") {
			return l, limited, nil
		}
	}
}

// least is the smaller of two limits, of which 0 is none.
func least[T float64 | int64](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// quota is the group's own CPU limit in cores; 0 for none.
func (g *Group) quota() (float64, error) {
	dir, ok := g.h.Path("cpu", g.rel)
	if !ok {
		return 0, nil
	}
	words, err := readWords(filepath.Join(dir, "cpu.max"))
	if errors.Is(err, fs.ErrNotExist) {
		var period []string
		words, err = readWords(filepath.Join(dir, "cpu.cfs_quota_us"))
		if err == nil {
			period, err = readWords(filepath.Join(dir, "cpu.cfs_period_us"))
		}
		words = slices.Concat(words, period)
	}
	if err != nil {
		return 0, ignoreGone(err)
	}
	if len(words) != 2 {
		return 0, fmt.Errorf("a quota of %q", words)
	}
	if words[0] == "max" || words[0] == "-1" {
		return 0, nil
	}
	var n [2]uint64
	for i, w := range words {
		if n[i], err = strconv.ParseUint(w, 10, 63); err != nil || n[i] == 0 {
			return 0, fmt.Errorf("a quota of %q", words)
		}
	}
	return float64(n[0]) / float64(n[1]), nil
}

// memoryMax is the group's own memory limit in bytes; 0 for none. Version 1 has no word for none:
// it is the largest number of whole pages.
func (g *Group) memoryMax() (int64, error) {
	dir, ok := g.h.Path("memory", g.rel)
	if !ok {
		return 0, nil
	}
	words, err := readWords(filepath.Join(dir, "memory.max"))
	if errors.Is(err, fs.ErrNotExist) {
		words, err = readWords(filepath.Join(dir, "memory.limit_in_bytes"))
	}
	if err != nil {
		return 0, ignoreGone(err)
	}
	if len(words) != 1 {
		return 0, fmt.Errorf("a memory limit of %q", words)
	}
	if words[0] == "max" {
		return 0, nil
	}
	n, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("a memory limit of %q", words)
	}
	if n >= 1<<60 {
		return 0, nil
	}
	return n, nil
}
