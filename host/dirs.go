package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"tare/host/state"
	"tare/site"
)

// Dirs are the places on this host that tare writes to. Root uses the system's,
// so that `tare clean` finds everything; others use their own.
type Dirs struct {
	Run   string // sandboxes' own files, and the host's lock
	Cache string
	Data  string // on the disk to be measured
	Notes string // where links name data directories elsewhere: Data, whatever --data says
}

// DefaultDirs names the places. Own makes them and checks who owns them.
func DefaultDirs() Dirs {
	if root() {
		return Dirs{Run: state.RunDir, Cache: "/var/cache/tare", Data: state.LibDir, Notes: state.LibDir}
	}
	return userDirs(os.Getenv)
}

// userDirs names the places of a user without root, by the XDG Base Directory
// Specification 0.8. It ignores a variable that names another user's folder; sudo may pass
// one on. If no variable and no home is left, it uses a folder in the temporary directory.
// Anyone could have made that first: Own checks.
func userDirs(env func(string) string) Dirs {
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
	d := Dirs{Run: place("XDG_RUNTIME_DIR", ""), Cache: place("XDG_CACHE_HOME", ".cache")}
	own := place("XDG_STATE_HOME", ".local/state")
	if d.Run == last {
		d.Run = filepath.Join(own, "run")
	}
	if d.Cache == last {
		d.Cache = filepath.Join(own, "cache")
	}
	d.Data = filepath.Join(own, "data")
	d.Notes = d.Data
	return d
}

// Own makes a user's directories, for a verb that writes to them or removes what is in them.
// It refuses them with a *site.UnableError unless only the user controls them.
func (d Dirs) Own() error {
	if root() {
		return nil
	}
	for _, p := range []struct{ dir, variable string }{
		{filepath.Dir(d.Notes), "XDG_STATE_HOME"}, {d.Notes, "XDG_STATE_HOME"},
		{d.Run, "XDG_RUNTIME_DIR"}, {d.Cache, "XDG_CACHE_HOME"},
	} {
		if err := state.Own(p.dir); err != nil {
			return &site.UnableError{Err: fmt.Errorf("%w; or set %s to your own directory: "+
				"tare keeps its files where nobody else can change them", err, p.variable)}
		}
	}
	return nil
}
