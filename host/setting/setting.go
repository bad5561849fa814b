// Package setting changes settings of this host's kernel for a trial, and puts them back, also after
// a kill.
//
// The data path: 1. Check says why the host cannot have a level; 2. Set notes in a record what the host
// has, and then writes the level; 3. Set without levels, at the end of a trial, or Changes and Undo,
// in `tare clean`, write what the record has and remove it. docs/design/0040-host-settings.md says why there is a record.
package setting

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/param"
	"tare/record"
)

// Table is the settings of a kernel that levels of a study can change.
type Table struct {
	Root   string // "/", except in tests
	Record string // file that notes what was changed; it need not outlive a boot
}

// RecordName is the name of the record, in the directory of the host's lock.
const RecordName = "settings.json"

// one is a setting by its factor. A kernel has one list of files, with a value in each.
type one struct {
	factor string
	about  string
	files  [][]string // of kernels of different age; the first that is there counts
	values func(level string) []string
	absent func(t Table) error
}

// debugfs is where kernels have it if they have it at all.
const debugfs = "/sys/kernel/debug"

func all() []one {
	const neigh = "/proc/sys/net/ipv4/neigh/default/gc_thresh"
	return []one{{
		factor: record.SettingMigrationCost,
		about:  "how long after it ran a thread counts as cache-hot, so that it stays on its processor",
		files:  [][]string{{debugfs + "/sched/migration_cost_ns"}, {"/proc/sys/kernel/sched_migration_cost_ns"}}, // since, until Linux 5.13
		values: func(level string) []string {
			return []string{strconv.FormatInt(param.Values{"": level}.Duration("").Nanoseconds(), 10)}
		},
		absent: func(t Table) error {
			if !t.hasDebugfs() {
				return fmt.Errorf("the kernel shows it in %s, where no debugfs is mounted; mount -t debugfs none %s", debugfs, debugfs)
			}
			return errors.New("this kernel shows no migration_cost_ns")
		},
	}, {
		// arp(7). The kernel's own values have the same ratios: 128, 512, 1024.
		factor: record.SettingARPLimit,
		about:  "entries of the ARP table of all network namespaces together",
		files:  [][]string{{neigh + "1", neigh + "2", neigh + "3"}},
		values: func(level string) []string {
			n := param.Values{"": level}.Int("")
			return []string{strconv.Itoa(n / 8), strconv.Itoa(n / 2), strconv.Itoa(n)}
		},
		absent: func(Table) error {
			return errors.New("there is no net.ipv4.neigh.default.gc_thresh3; the kernel shows it in the host's own network namespace alone")
		},
	}}
}

func (t Table) at(file string) string { return filepath.Join(t.Root, file) }

func (t Table) hasDebugfs() bool {
	var st unix.Statfs_t
	return unix.Statfs(t.at(debugfs), &st) == nil && st.Type == unix.DEBUGFS_MAGIC
}

// filesOf are those that this kernel has.
func (t Table) filesOf(s *one) ([]string, error) {
	for _, files := range s.files {
		if _, err := os.Stat(t.at(files[0])); err == nil || errors.Is(err, fs.ErrPermission) { // debugfs is root's alone
			return files, nil
		}
	}
	return nil, s.absent(t)
}

// Check says why this host cannot have the levels, by factor; nil if it can. It changes nothing.
func (t Table) Check(levels map[string]string) error {
	for _, s := range all() {
		level := levels[s.factor]
		if level == "" || level == record.SettingHost {
			continue
		}
		if err := t.writable(&s); err != nil {
			return fmt.Errorf("%s %s: %w, or leave the level out", s.factor, level, err)
		}
	}
	return nil
}

// writable opens the files as Set does, and writes nothing.
func (t Table) writable(s *one) error {
	files, err := t.filesOf(s)
	if err != nil {
		return err
	}
	for _, file := range files {
		f, err := os.OpenFile(t.at(file), os.O_WRONLY, 0)
		if err != nil {
			return unwritable(file, err)
		}
		if err := f.Close(); err != nil {
			return err //nolint:wrapcheck // as above
		}
	}
	return nil
}

// unwritable says why a file cannot be opened to be written, and what helps.
func unwritable(file string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM): // not EACCES: root, too
		return fmt.Errorf("the kernel lets nobody write %s, as when it is locked down (kernel_lockdown(7)); boot it without lockdown", file)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("this user may not write %s; run as root", file)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%s is read-only; run outside of a container", file)
	}
	return err
}

// Finding is what `tare doctor` says of a setting.
type Finding struct {
	Name, Detail string
	Err          error // why no study can change it here
}

// Findings says which settings a study can change on this host, and what they are.
func (t Table) Findings() []Finding {
	var out []Finding
	for _, s := range all() {
		f := Finding{Name: s.factor, Detail: s.about, Err: t.writable(&s)}
		if now := t.inForce(&s); now != "" {
			f.Detail += "; now " + now
		}
		out = append(out, f)
	}
	return out
}

// inForce is what the kernel has, such as "gc_thresh1 128, gc_thresh2 512, gc_thresh3 1024"; "" if
// it does not say.
func (t Table) inForce(s *one) string {
	files, err := t.filesOf(s)
	if err != nil {
		return ""
	}
	parts := make([]string, len(files))
	for i, file := range files {
		v, err := t.read(file)
		if err != nil {
			return ""
		}
		parts[i] = path.Base(file) + " " + v
	}
	return strings.Join(parts, ", ")
}

// Set puts the levels in force, by factor, and the host's own values of all other settings. It returns
// what is in force, by factor, for each factor in levels. Nothing is changed before the record says
// what it was.
func (t Table) Set(levels map[string]string) (map[string]string, error) {
	r, err := t.load()
	if err != nil {
		return nil, err
	}
	want := map[string]string{} // by file
	for _, s := range all() {
		level := levels[s.factor]
		if level == "" || level == record.SettingHost {
			continue
		}
		files, err := t.filesOf(&s)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", s.factor, level, err)
		}
		for i, v := range s.values(level) {
			want[files[i]] = v
		}
	}
	var back []error
	for _, c := range slices.Clone(r.Changed) {
		if _, still := want[c.File]; !still {
			back = append(back, t.undo(&r, c.File))
		}
	}
	if err := errors.Join(back...); err != nil {
		return nil, err
	}
	if err := t.write(&r, want); err != nil {
		return nil, err
	}
	facts := map[string]string{}
	for _, s := range all() {
		if now := t.inForce(&s); now != "" && levels[s.factor] != "" {
			facts[s.factor] = now
		}
	}
	return facts, nil
}

// write makes the files have the wanted values, and the record first.
func (t Table) write(r *changes, want map[string]string) error {
	var differ []string
	for _, file := range slices.Sorted(maps.Keys(want)) {
		now, err := t.read(file)
		if err != nil {
			return fmt.Errorf("cannot read the host's setting: %w", err)
		}
		if now != want[file] {
			differ = append(differ, file)
			r.note(file, now, want[file])
		}
	}
	if len(differ) == 0 {
		return nil
	}
	if err := t.save(r); err != nil {
		return fmt.Errorf("cannot note the host's settings, so they stay as they are: %w", err)
	}
	for _, file := range differ {
		if err := t.put(file, want[file]); err != nil {
			return err
		}
	}
	return nil
}

// put writes a value and reads it again: a kernel may take another one than was written.
func (t Table) put(file, value string) error {
	f, err := os.OpenFile(t.at(file), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("cannot change the host's setting: %w", err)
	}
	_, err = f.WriteString(value)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot change the host's setting: %w", err)
	}
	switch now, err := t.read(file); {
	case err != nil:
		return fmt.Errorf("cannot read the host's setting: %w", err)
	case now != value:
		return fmt.Errorf("%s is %s after tare wrote %s; the kernel does not take it, so leave the level out", file, now, value)
	}
	return nil
}

func (t Table) read(file string) (string, error) {
	b, err := os.ReadFile(t.at(file))
	return strings.TrimSpace(string(b)), err //nolint:wrapcheck // it names the file
}
