package cgroup

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// notes keeps what a group passed on to its children before this program changed
// that: on the group itself, so that it goes with it, and a reboot takes both.
type notes interface {
	get(dir string) (text string, ok bool)
	set(dir, text string)
	remove(dir string)
}

// noteName is the extended attribute of a note. systemd keeps its own notes about
// groups so (trusted.delegate). Only root can write it.
const noteName = "trusted.tare.before"

// xattrs keeps notes as extended attributes. Where there are none, nothing is
// noted, and nothing is taken back.
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

// remember notes which controllers a directory passes on. An older note stays: the
// run that made it was killed, and what it found counts.
func (h *Hierarchy) remember(dir string) {
	if _, ok := h.notes.get(dir); ok {
		return
	}
	if on, err := readWords(filepath.Join(dir, subtreeControl)); err == nil {
		h.notes.set(dir, strings.Join(on, " ")+"\n") // not empty, which some file systems do not keep
	}
}

// added lists the controllers that are to be taken back from a directory: those
// that it passes on now, did not when it was noted, and that are not systemd's.
// systemd takes its own back when the last unit that needs them ends. It would
// not notice if somebody else did, and would leave the next unit without.
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

// systemdsOwn are the controllers that systemd passes on and takes back
// (systemd.resource-control(5), Delegate=).
func systemdsOwn() []string { return []string{"cpu", "cpuset", "io", "memory", "pids"} }

// passNoMore stops passing controllers on, all but those in use: the kernel
// refuses where a child passes them on (EBUSY), and where a child has a setting of
// theirs it would be lost. What stays is somebody else's by now.
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

// isSet tells whether a child of the directory has a setting of a controller that
// is not the kernel's default.
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

// defaults are what the files of a new group say: cgroup-v2.rst, "Controllers".
func defaults() map[string]string {
	return map[string]string{
		"cpu.max": "max 100000", "cpu.weight": "100", "cpu.idle": "0", "cpuset.cpus": "", "cpuset.mems": "",
		"io.max": "", "io.weight": "default 100", "io.latency": "", "pids.max": "max",
		"memory.min": "0", "memory.low": "0", "memory.high": "max", "memory.max": "max", "memory.swap.max": "max",
	}
}
