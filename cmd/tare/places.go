package main

import (
	"os"

	"golang.org/x/sys/unix"

	"tare/internal/state"
)

// openMemory makes a place for data in memory, if this host has a memory file
// system. It is noted beside tare's own data, so that `tare clean` finds it.
func (h *harness) openMemory(id string) error {
	if os.Geteuid() != 0 {
		return nil // no sandbox that runs something works without root
	}
	base := memoryBase(memoryPlaces()...)
	if base == "" {
		return nil
	}
	dir, remove, err := state.MakeData(hostDirs().data, base, id+"-memory")
	if err != nil {
		return err
	}
	h.closes = append(h.closes, remove)
	h.engine.Dirs.Memory = dir
	return nil
}

// memoryPlaces are where memory file systems are mounted.
func memoryPlaces() []string { return []string{"/dev/shm", "/run"} }

// memoryBase returns the first of the directories that a tmpfs is mounted on or
// over, "" if none is.
func memoryBase(dirs ...string) string {
	for _, dir := range dirs {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err == nil && st.Type == unix.TMPFS_MAGIC {
			return dir
		}
	}
	return ""
}
