package setting

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tare/ordered"
)

// changes is the record: what is changed since the host booted, and what it was.
type changes struct {
	Boot    string   `json:"boot"` // boot_id; a setting does not outlive its boot
	Changed []change `json:"changed"`
}

// change is a file that has another value than the host gave it.
type change struct {
	File string `json:"file"`
	Was  string `json:"was"`
	// Ours are all values that tare wrote, and the one that it is about to write. Any other value
	// is somebody else's, and stays.
	Ours []string `json:"ours"`
}

// note adds what a file is about to be. What the host gave it stays as it was first noted, unless
// somebody has changed it since: then that is what the host has.
func (r *changes) note(file, now, next string) {
	i := slices.IndexFunc(r.Changed, func(c change) bool { return c.File == file })
	if i < 0 {
		r.Changed = append(r.Changed, change{File: file, Was: now})
		i = len(r.Changed) - 1
	}
	c := &r.Changed[i]
	if c.foreign(now) != nil {
		c.Was, c.Ours = now, nil
	}
	c.Ours = ordered.Add(c.Ours, next)
}

// mostRecord bounds the record: a study has few levels.
const mostRecord = 1 << 20

// parse reads a record. It accepts only files that Set writes, and whole numbers.
func parse(in io.Reader) (changes, error) {
	var r changes
	if err := json.NewDecoder(io.LimitReader(in, mostRecord)).Decode(&r); err != nil {
		return changes{}, err //nolint:wrapcheck // load names the file
	}
	var known []string
	for _, s := range all() {
		known = append(known, slices.Concat(s.files...)...)
	}
	seen := map[string]bool{}
	for _, c := range r.Changed {
		if !slices.Contains(known, c.File) || seen[c.File] {
			return changes{}, fmt.Errorf("%q is not a file that tare writes, or is there twice", c.File)
		}
		seen[c.File] = true
		for _, v := range append([]string{c.Was}, c.Ours...) {
			if _, err := strconv.ParseUint(strings.TrimPrefix(v, "-"), 10, 64); err != nil {
				return changes{}, fmt.Errorf("%s: %q is not a whole number", c.File, v)
			}
		}
	}
	return r, nil
}

// load reads the record; an empty one if there is none, or if it is of another boot.
func (t Table) load() (changes, error) {
	none := changes{Boot: t.boot()}
	f, err := os.Open(t.Record)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("cannot tell which settings of the host are changed: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	r, err := parse(f)
	switch {
	case err != nil:
		return none, fmt.Errorf("cannot tell which settings of the host are changed: %s: %w; look into the file, and remove it", t.Record, err)
	case r.Boot != none.Boot:
		return none, nil
	}
	return r, nil
}

func (t Table) boot() string {
	id, _ := t.read("/proc/sys/kernel/random/boot_id") // "" is as good as any where a kernel has none
	return id
}

// save replaces the record whole, so that a kill leaves the old one or the new one; or removes it if nothing is changed. It need not
// reach a disk: a crash of the host takes the settings back too.
func (t Table) save(r *changes) error {
	if len(r.Changed) == 0 {
		if err := os.Remove(t.Record); !errors.Is(err, fs.ErrNotExist) {
			return err //nolint:wrapcheck // it names the file
		}
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err //nolint:wrapcheck // it cannot happen
	}
	if err := os.MkdirAll(filepath.Dir(t.Record), 0o755); err != nil { //nolint:gosec // as the lock's directory; the file is private
		return err //nolint:wrapcheck // it names the file
	}
	next := t.Record + ".new"
	if err := os.WriteFile(next, append(text, '\n'), 0o600); err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	return os.Rename(next, t.Record) //nolint:wrapcheck // it names the files
}

// Change is a setting that is not as the host had it.
type Change struct {
	File string
	Name string // what it is and was, for users
	Err  error  // somebody else has changed it since, so it stays
}

// Changes are what the record has: what a killed run left, to whoever holds the host. A file that
// cannot be read does not hide the others.
func (t Table) Changes() ([]Change, error) {
	r, err := t.load()
	if err != nil {
		return nil, err
	}
	var out []Change
	var unread []error
	for _, c := range r.Changed {
		now, err := t.read(c.File)
		if err != nil {
			unread = append(unread, fmt.Errorf("cannot read the host's setting, which was %s: %w", c.Was, err))
			continue
		}
		if now == c.Was {
			continue // the kill came before the change, or after it was taken back
		}
		out = append(out, Change{File: c.File, Name: fmt.Sprintf("%s = %s (was %s)", c.File, now, c.Was), Err: c.foreign(now)})
	}
	return out, errors.Join(unread...)
}

// foreign says that a value is neither the host's first one nor tare's.
func (c *change) foreign(now string) error {
	if now == c.Was || slices.Contains(c.Ours, now) {
		return nil
	}
	return fmt.Errorf("somebody changed it after tare, which had found %s and written %s", c.Was, strings.Join(c.Ours, ", "))
}

// Undo gives a file the value that it had, and takes it out of the record. Somebody else's value stays.
func (t Table) Undo(file string) error {
	r, err := t.load()
	if err != nil {
		return err
	}
	return t.undo(&r, file)
}

func (t Table) undo(r *changes, file string) error {
	i := slices.IndexFunc(r.Changed, func(c change) bool { return c.File == file })
	if i < 0 {
		return nil
	}
	c := r.Changed[i]
	now, err := t.read(file)
	if err != nil {
		return fmt.Errorf("cannot read the host's setting: %w", err)
	}
	if c.foreign(now) == nil && now != c.Was {
		if err := t.put(file, c.Was); err != nil {
			return err
		}
	}
	r.Changed = slices.Delete(r.Changed, i, i+1)
	return t.save(r)
}

// Forget removes a record of which nothing is left to undo, and what a kill left of one that was being
// written.
func (t Table) Forget() error {
	if left, err := t.Changes(); err != nil || len(left) > 0 {
		return err
	}
	for _, file := range []string{t.Record, t.Record + ".new"} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err //nolint:wrapcheck // it names the file
		}
	}
	return nil
}
