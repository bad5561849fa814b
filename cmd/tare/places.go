package main

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"tare/host/state"
)

// dirs are the places on this host that tare writes to. Root uses the system's,
// so that `tare clean` finds everything; others use their own.
type dirs struct {
	run, cache, data string
	notes            string // where links name data directories elsewhere: data, whatever --data says
}

// hostDirs names the places; ownDirs makes them and checks who owns them.
func hostDirs() dirs {
	if os.Geteuid() == 0 {
		return dirs{run: state.RunDir, cache: "/var/cache/tare", data: state.LibDir, notes: state.LibDir}
	}
	return userDirs(os.Getenv)
}

// userDirs names the places of a user without root, by the XDG Base Directory
// Specification 0.8. It ignores a variable that names another user's folder; sudo may pass
// one on. If no variable and no home is left, it uses a folder in the temporary directory.
// Anyone could have made that first: ownDirs checks.
func userDirs(env func(string) string) dirs {
	last := filepath.Join(os.TempDir(), "tare-"+strconv.Itoa(os.Geteuid()))
	place := func(variable, inHome string) string {
		candidates := []string{env(variable)}
		if home := env("HOME"); inHome != "" && filepath.IsAbs(home) {
			candidates = append(candidates, filepath.Join(home, inHome))
		}
		for _, dir := range candidates {
			if filepath.IsAbs(dir) && state.Usable(dir) {
				return filepath.Join(dir, "tare")
			}
		}
		return last
	}
	d := dirs{run: place("XDG_RUNTIME_DIR", ""), cache: place("XDG_CACHE_HOME", ".cache")}
	own := place("XDG_STATE_HOME", ".local/state")
	if d.run == last {
		d.run = filepath.Join(own, "run")
	}
	if d.cache == last {
		d.cache = filepath.Join(own, "cache")
	}
	d.data = filepath.Join(own, "data")
	d.notes = d.data
	return d
}

// ownDirs are the host's directories for a verb that writes to them or removes what is in
// them. It makes a user's directories, and refuses them unless only the user controls them.
func ownDirs() (dirs, error) {
	d := hostDirs()
	if os.Geteuid() == 0 {
		return d, nil
	}
	for _, p := range []struct{ dir, variable string }{
		{filepath.Dir(d.data), "XDG_STATE_HOME"}, {d.data, "XDG_STATE_HOME"},
		{d.run, "XDG_RUNTIME_DIR"}, {d.cache, "XDG_CACHE_HOME"},
	} {
		if err := state.Own(p.dir); err != nil {
			return d, coded(exitHost, "%w; or set %s to a directory of your own: "+
				"tare keeps its files where nobody else can change them", err, p.variable)
		}
	}
	return d, nil
}

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
	dir, remove, err := state.MakeData(hostDirs().notes, base, id+"-memory")
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
