package cgroup

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// notes records which controllers a group passed on before this program changed that.
// The record is on the group itself, so it disappears with the group, also at a reboot.
type notes interface {
	get(dir string) (text string, ok bool)
	set(dir, text string)
	remove(dir string)
}

// noteName is the extended attribute of a note. systemd stores its own notes about groups
// in the same way (trusted.delegate). Only root can write it.
const noteName = "trusted.tare.before"

// xattrs stores notes as extended attributes. Without extended attributes, nothing is
// noted and nothing is undone.
type xattrs struct{}

func (xattrs) get(dir string) (string, bool) {
	buf := make([]byte, 4096)
	n, err := unix.Getxattr(dir, noteName, buf)
	if err != nil || n > len(buf) {
		return "", false
	}
	return string(buf[:n]), true
}

func (xattrs) set(dir, text string) { _ = unix.Setxattr(dir, noteName, []byte(text), 0) }

func (xattrs) remove(dir string) { _ = unix.Removexattr(dir, noteName) }

// remember notes which controllers a directory passes on. An older note stays: the run
// that made it was killed, and the state that it found is the original one.
func (h *Hierarchy) remember(dir string) {
	if _, ok := h.notes.get(dir); ok {
		return
	}
	if on, err := readWords(filepath.Join(dir, subtreeControl)); err == nil {
		h.notes.set(dir, strings.Join(on, " ")+"\n") // never empty: some file systems do not keep an empty value
	}
}

// added lists the controllers to disable in a directory: it passes them on now, did not
// when the note was made, and they are not systemd's. systemd disables its own when the
// last unit that needs them ends. It would not notice if another program disabled them,
// and the next unit would lack them.
func (h *Hierarchy) added(dir string) []string {
	text, ok := h.notes.get(dir)
	on, err := readWords(filepath.Join(dir, subtreeControl))
	if !ok || err != nil {
		return nil
	}
	before := strings.Fields(text)
	return slices.DeleteFunc(on, func(c string) bool {
		return slices.Contains(before, c) || h.systemd && slices.Contains(systemdsOwn(), c)
	})
}

// systemdsOwn are the controllers that systemd enables and disables itself
// (systemd.resource-control(5), Delegate=).
func systemdsOwn() []string { return []string{"cpu", "cpuset", "io", "memory", "pids"} }

// passNoMore stops passing controllers on, except those in use. The kernel refuses if a
// child passes a controller on (EBUSY). If a child has a setting of a controller, the
// setting would be lost. Another program now uses the controllers that stay.
func (h *Hierarchy) passNoMore(dir string, controllers []string) error {
	var all error
	for _, c := range controllers {
		if h.isSet(dir, c) {
			continue
		}
		if err := h.write(filepath.Join(dir, subtreeControl), "-"+c); err != nil && !errors.Is(err, unix.EBUSY) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// isSet reports whether a child of the directory has a setting of a controller that is
// not the kernel's default.
func (h *Hierarchy) isSet(dir, controller string) bool {
	for name, usual := range defaults() {
		if !strings.HasPrefix(name, controller+".") {
			continue
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*", name)) // the pattern is well formed
		for _, f := range files {
			if own := filepath.Base(filepath.Dir(f)); own == Top || own == Aside {
				continue
			}
			if words, err := readWords(f); err == nil && strings.Join(words, " ") != usual {
				return true
			}
		}
	}
	return false
}

// defaults are the contents of the files of a new group: cgroup-v2.rst, "Controllers".
func defaults() map[string]string {
	return map[string]string{
		"cpu.max": "max 100000", "cpu.weight": "100", "cpu.idle": "0", "cpuset.cpus": "", "cpuset.mems": "",
		"io.max": "", "io.weight": "default 100", "io.latency": "", "pids.max": "max",
		"memory.min": "0", "memory.low": "0", "memory.high": "max", "memory.max": "max", "memory.swap.max": "max",
	}
}
