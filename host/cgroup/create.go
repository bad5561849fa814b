package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Top is the group that everything of ours lies under.
const Top = "tare"

// Limits are a group's limits; a zero value means: no limit.
type Limits struct {
	CPU    float64 // cores: 0.5 is half of one CPU's time
	Memory int64   // bytes; swap is not given on top of it
	CPUs   string  // CPUs it may run on, as a list: 0-1,3
}

// Bounds of a group's name. The kernel allows 255 bytes a component; 128 leaves
// room for what a runtime puts around it.
const (
	maxComponent = 128
	maxDepth     = 8
)

// period is the length of a CPU quota's window in microseconds: the kernel's
// default, and what every OCI runtime uses.
const period = 100_000

// minQuota is the smallest quota in microseconds that the kernel takes.
const minQuota = 1000

// checkRel refuses a path that is not ours or that could leave its tree.
func checkRel(rel string) error {
	parts := strings.Split(rel, "/")
	if parts[0] != Top || len(parts) < 2 || len(parts) > maxDepth {
		return fmt.Errorf("cgroup: %q is not a path of 2 to %d names below %s/", rel, maxDepth, Top)
	}
	for _, p := range parts {
		if err := checkName(p); err != nil {
			return fmt.Errorf("cgroup: %q: %w", rel, err)
		}
	}
	return nil
}

func checkName(p string) error {
	if p == "" || len(p) > maxComponent {
		return fmt.Errorf("a name has 1 to %d characters", maxComponent)
	}
	for i, c := range []byte(p) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("_.-", rune(c))) {
			return fmt.Errorf("name %q may contain letters, digits and, after the first character, . _ -", p)
		}
	}
	return nil
}

func (l Limits) check() error {
	if l.CPU != 0 && !(l.CPU*period >= minQuota && l.CPU < 1<<20) {
		return fmt.Errorf("cgroup: a CPU limit of %g cores is outside %g to %d", l.CPU, float64(minQuota)/period, 1<<20)
	}
	if l.Memory < 0 {
		return fmt.Errorf("cgroup: a memory limit of %d bytes is negative", l.Memory)
	}
	for _, c := range []byte(l.CPUs) {
		if (c < '0' || c > '9') && c != ',' && c != '-' {
			return fmt.Errorf("cgroup: %q is not a list of CPUs such as 0-1,3", l.CPUs)
		}
	}
	return nil
}

// Create makes the group rel, which must begin with "tare/" and must not exist, and sets
// its limits. It makes parents as needed, and leaves nothing after an error. If the host
// cannot set a limit, the error names the controller.
func (h *Hierarchy) Create(rel string, l Limits) (*Group, error) {
	if err := errors.Join(checkRel(rel), h.Check(l)); err != nil {
		return nil, err
	}
	g := &Group{h: h, rel: rel}
	var made []tree
	for _, t := range h.mine() {
		err := h.makeDirs(t, rel, l)
		if err == nil {
			made = append(made, t)
			err = h.limit(t, rel, l)
		}
		if err != nil {
			for _, t := range made {
				_ = h.rmdir(h.dir(t, rel))
			}
			h.pruneParents(rel)
			return nil, err
		}
	}
	return g, nil
}

// Check returns an error for a limit that is invalid, or that this host cannot set because
// a controller is missing. Without the limit, results would be false.
func (h *Hierarchy) Check(l Limits) error {
	if err := l.check(); err != nil {
		return err
	}
	for controller, wanted := range l.controllers() {
		if wanted && h.Version == None {
			return fmt.Errorf("cgroup: without root a sandbox has no limits of CPU, memory or processors; leave them out of the study, or run tare with sudo")
		}
		if _, ok := h.Path(controller, ""); wanted && !ok {
			return fmt.Errorf("cgroup: the %s controller is not available on this host (cgroup %s), so that limit cannot be set; leave the limit out of the study, or see `tare doctor`", controller, h.Version)
		}
	}
	return nil
}

func (l Limits) controllers() map[string]bool {
	return map[string]bool{"cpu": l.CPU != 0, "memory": l.Memory != 0, "cpuset": l.CPUs != ""}
}

// makeDirs makes the directory of rel in one tree, and what is missing above.
func (h *Hierarchy) makeDirs(t tree, rel string, l Limits) error {
	var err error
	// The Destroy of another group may remove the empty parent between our two
	// steps: start again.
	for range 10 {
		if err = h.tryMakeDirs(t, rel, l); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

func (h *Hierarchy) tryMakeDirs(t tree, rel string, l Limits) error {
	parts := strings.Split(rel, "/")
	parent := filepath.Dir(h.dir(t, Top))
	for i, p := range parts {
		if t.v2 {
			if err := h.enable(parent, i == 0, l); err != nil {
				return err
			}
		}
		dir := filepath.Join(parent, p)
		err := h.mkdir(dir)
		last := i == len(parts)-1
		switch {
		case errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS):
			return fmt.Errorf("cgroup: making %s: %w; %s", dir, err, refusal(err))
		case errors.Is(err, fs.ErrExist) && last:
			return fmt.Errorf("cgroup: %s exists already: %w; a killed run leaves such groups, and tare clean removes them", dir, err)
		case err != nil && !errors.Is(err, fs.ErrExist):
			return fmt.Errorf("cgroup: making %s: %w", dir, err)
		}
		if slices.Contains(t.controllers, "cpuset") {
			if err := h.inheritCpuset(parent, dir); err != nil {
				if last {
					_ = h.rmdir(dir)
				}
				return err
			}
		}
		parent = dir
	}
	return nil
}

// inheritCpuset fills an empty cpuset from its parent: on version 1 a new
// group has neither CPUs nor memory nodes, and no process can join it (ENOSPC).
func (h *Hierarchy) inheritCpuset(parent, dir string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		have, err := readWords(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		if len(have) > 0 {
			continue
		}
		from, err := readWords(filepath.Join(parent, name))
		if err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		if len(from) == 0 {
			continue // the parent is unusable: adding a process reports it
		}
		if err := h.write(filepath.Join(dir, name), from[0]); err != nil {
			return fmt.Errorf("cgroup: giving %s to %s: %w", name, dir, err)
		}
	}
	return nil
}

func (h *Hierarchy) hasV1(controller string) bool {
	return slices.ContainsFunc(h.trees, func(t tree) bool { return slices.Contains(t.controllers, controller) })
}

// setting is one control file and the value for it.
type setting struct {
	file, value string
	optional    bool // the file may be missing (swap accounting off)
}

// limit writes the limits that this tree's controllers hold.
func (h *Hierarchy) limit(t tree, rel string, l Limits) error {
	quota := strconv.FormatInt(int64(l.CPU*period+0.5), 10)
	memory := strconv.FormatInt(l.Memory, 10)
	var todo []setting
	here := func(c string) bool {
		if !t.v2 {
			return slices.Contains(t.controllers, c)
		}
		return !h.hasV1(c)
	}
	if l.CPU != 0 && here("cpu") {
		if t.v2 {
			todo = append(todo, setting{file: "cpu.max", value: quota + " " + strconv.Itoa(period)})
		} else {
			todo = append(todo, setting{file: "cpu.cfs_period_us", value: strconv.Itoa(period)},
				setting{file: "cpu.cfs_quota_us", value: quota})
		}
	}
	if l.Memory != 0 && here("memory") {
		if t.v2 {
			todo = append(todo, setting{file: "memory.max", value: memory},
				setting{file: "memory.swap.max", value: "0", optional: true})
		} else {
			// memsw counts memory and swap together and must not be smaller than memory.
			todo = append(todo, setting{file: "memory.limit_in_bytes", value: memory},
				setting{file: "memory.memsw.limit_in_bytes", value: memory, optional: true})
		}
	}
	if l.CPUs != "" && here("cpuset") {
		todo = append(todo, setting{file: "cpuset.cpus", value: l.CPUs})
	}
	for _, s := range todo {
		err := h.write(filepath.Join(h.dir(t, rel), s.file), s.value)
		if err != nil && (!s.optional || !errors.Is(err, os.ErrNotExist)) {
			return fmt.Errorf("cgroup: setting %s of %s to %q: %w; is it within what this host and the groups above allow?", s.file, rel, s.value, err)
		}
	}
	return nil
}

// pruneParents removes the groups above rel that are empty, Top included.
func (h *Hierarchy) pruneParents(rel string) {
	for dir := filepath.Dir(rel); dir != "." && dir != "/"; dir = filepath.Dir(dir) {
		for _, t := range h.trees {
			// In use by others, or gone: both are fine.
			_ = h.rmdir(h.dir(t, dir))
		}
	}
}
