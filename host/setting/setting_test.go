package setting

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"tare/record"
)

const (
	migration = debugfs + "/sched/migration_cost_ns"
	arp       = "/proc/sys/net/ipv4/neigh/default/gc_thresh"
	bootID    = "/proc/sys/kernel/random/boot_id"
)

// fake is a table with a kernel's files in a directory.
func fake(t *testing.T, files map[string]string) Table {
	t.Helper()
	root := t.TempDir()
	tab := Table{Root: root, Record: filepath.Join(root, "run", "tare", RecordName)}
	for file, text := range files {
		write(t, tab, file, text)
	}
	return tab
}

func write(t *testing.T, tab Table, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(tab.at(file)), 0o700), os.WriteFile(tab.at(file), []byte(text+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// kernel is what a kernel with both settings has.
func kernel() map[string]string {
	return map[string]string{migration: "500000", arp + "1": "128", arp + "2": "512", arp + "3": "1024", bootID: "a"}
}

func (t Table) now() map[string]string {
	out := map[string]string{}
	for file := range kernel() {
		if v, err := t.read(file); err == nil {
			out[file] = v
		}
	}
	return out
}

func set(t *testing.T, tab Table, migration, arp string) map[string]string {
	t.Helper()
	levels := map[string]string{record.SettingMigrationCost: migration, record.SettingARPLimit: arp}
	if migration == "" && arp == "" {
		levels = nil
	}
	facts, err := tab.Set(levels)
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

func gone(t *testing.T, tab Table) {
	t.Helper()
	if _, err := os.Stat(tab.Record); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the record is still there: %v", err)
	}
}

// TestSet: a level takes the place of another, the facts say what is in force, and in the end the
// host is as it was, with no record.
func TestSet(t *testing.T) {
	tab := fake(t, kernel())
	for _, step := range []struct{ migration, arp, wantMigration, wantARP string }{
		{"5ms", record.SettingHost, "migration_cost_ns 5000000", "gc_thresh1 128, gc_thresh2 512, gc_thresh3 1024"},
		{"0s", "64", "migration_cost_ns 0", "gc_thresh1 8, gc_thresh2 32, gc_thresh3 64"},
		{record.SettingHost, "4096", "migration_cost_ns 500000", "gc_thresh1 512, gc_thresh2 2048, gc_thresh3 4096"},
		{"500us", "1024", "migration_cost_ns 500000", "gc_thresh1 128, gc_thresh2 512, gc_thresh3 1024"},
	} {
		got := set(t, tab, step.migration, step.arp)
		want := map[string]string{record.SettingMigrationCost: step.wantMigration, record.SettingARPLimit: step.wantARP}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%+v: facts -want +got\n%s", step, d)
		}
	}
	set(t, tab, "", "")
	if d := cmp.Diff(kernel(), tab.now()); d != "" {
		t.Errorf("after all: -want +got\n%s", d)
	}
	gone(t, tab)
}

// TestNothingToDo: levels that the host has already make no record, and change nothing later.
func TestNothingToDo(t *testing.T) {
	tab := fake(t, kernel())
	set(t, tab, "500us", "1024")
	gone(t, tab)
}

// TestKilled: whenever a run is killed, another process finds what the host had. It is killed between the record and
// the change, between two files, and after a second level.
func TestKilled(t *testing.T) {
	for name, kill := range map[string]func(t *testing.T, tab Table) (left int){
		"before the change": func(t *testing.T, tab Table) int {
			set(t, tab, "", "64")
			for file, v := range kernel() {
				write(t, tab, file, v)
			}
			return 0
		},
		"between two files": func(t *testing.T, tab Table) int {
			set(t, tab, "", "64")
			write(t, tab, arp+"3", "1024")
			return 2
		},
		"after all": func(t *testing.T, tab Table) int { set(t, tab, "5ms", "64"); return 4 },
		"before the second change": func(t *testing.T, tab Table) int {
			set(t, tab, "5ms", "64")
			first := tab.now()
			set(t, tab, "7ms", "32")
			for file, v := range first {
				write(t, tab, file, v)
			}
			return 4
		},
	} {
		tab := fake(t, kernel())
		want := kill(t, tab)
		later := Table{Root: tab.Root, Record: tab.Record}
		left, err := later.Changes()
		if err != nil || len(left) != want {
			t.Errorf("killed %s: %+v, %v, want %d", name, left, err, want)
		}
		for _, c := range left {
			if err := errors.Join(c.Err, later.Undo(c.File)); err != nil {
				t.Error(err)
			}
		}
		if err := later.Forget(); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff(kernel(), later.now()); d != "" {
			t.Errorf("killed %s: -want +got\n%s", name, d)
		}
		gone(t, later)
	}
}

// TestSomebodyElse: what a person sets after a kill stays.
func TestSomebodyElse(t *testing.T) {
	tab := fake(t, kernel())
	set(t, tab, "5ms", "")
	write(t, tab, migration, "9")
	left, err := tab.Changes()
	if err != nil || len(left) != 1 || left[0].Err == nil || left[0].Name != migration+" = 9 (was 500000)" {
		t.Fatalf("%+v, %v", left, err)
	}
	if err := errors.Join(tab.Undo(migration), tab.Forget()); err != nil {
		t.Error(err)
	}
	if got, _ := tab.read(migration); got != "9" {
		t.Errorf("it is %s", got)
	}
	gone(t, tab)
}

// TestSomebodyElseMeanwhile: what a person sets while a study runs is the host's own from then on.
func TestSomebodyElseMeanwhile(t *testing.T) {
	tab := fake(t, kernel())
	set(t, tab, "5ms", "")
	write(t, tab, migration, "9")
	set(t, tab, "7ms", "")
	left, err := tab.Changes()
	if err != nil || len(left) != 1 || left[0].Err != nil || left[0].Name != migration+" = 7000000 (was 9)" {
		t.Fatalf("%+v, %v", left, err)
	}
	set(t, tab, "", "")
	if got, _ := tab.read(migration); got != "9" {
		t.Errorf("it is %s", got)
	}
	gone(t, tab)
}

// TestUnreadable: a file that is gone, as with a debugfs that is no longer mounted, stays in the record, and
// the others are given back.
func TestUnreadable(t *testing.T) {
	tab := fake(t, kernel())
	set(t, tab, "5ms", "64")
	if err := os.Remove(tab.at(migration)); err != nil {
		t.Fatal(err)
	}
	left, err := tab.Changes()
	if !errors.Is(err, fs.ErrNotExist) || len(left) != 3 {
		t.Fatalf("%+v, %v", left, err)
	}
	for _, c := range left {
		if err := tab.Undo(c.File); err != nil {
			t.Error(err)
		}
	}
	if err := tab.Forget(); err == nil {
		t.Error("it forgets a setting that it could not look at")
	}
	write(t, tab, migration, "5000000") // it is mounted again
	set(t, tab, "", "")
	if d := cmp.Diff(kernel(), tab.now()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	gone(t, tab)
}

// TestReboot: a setting ends with its boot, and a record that outlived it says nothing.
func TestReboot(t *testing.T) {
	tab := fake(t, kernel())
	set(t, tab, "5ms", "")
	write(t, tab, bootID, "b")
	write(t, tab, migration, "600000") // as a newer kernel has it
	if left, err := tab.Changes(); err != nil || len(left) != 0 {
		t.Errorf("%+v, %v", left, err)
	}
	set(t, tab, "5ms", "")
	set(t, tab, "", "")
	if got, _ := tab.read(migration); got != "600000" {
		t.Errorf("it is %s", got)
	}
}

// TestRecordComesFirst: if the record cannot be written, nothing is changed.
func TestRecordComesFirst(t *testing.T) {
	tab := fake(t, kernel())
	write(t, tab, "/run", "a file where a directory is needed")
	_, err := tab.Set(map[string]string{record.SettingARPLimit: "64"})
	if err == nil {
		t.Fatal("no error")
	}
	if d := cmp.Diff(kernel(), tab.now()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestCheck: a level that this host cannot have has a reason, the host's own level never has.
func TestCheck(t *testing.T) {
	old := kernel()
	delete(old, migration)
	old["/proc/sys/kernel/sched_migration_cost_ns"] = "500000"
	none := map[string]string{}
	for _, tt := range []struct {
		files       map[string]string
		factor, lvl string
		want        string
	}{
		{kernel(), record.SettingMigrationCost, "5ms", ""},
		{old, record.SettingMigrationCost, "5ms", ""},
		{none, record.SettingMigrationCost, record.SettingHost, ""},
		{none, record.SettingMigrationCost, "5ms", "sched-migration-cost 5ms: the kernel shows it in /sys/kernel/debug, where no debugfs is mounted; mount -t debugfs none /sys/kernel/debug, or leave the level out"},
		{none, record.SettingARPLimit, "64", "arp-limit 64: there is no net.ipv4.neigh.default.gc_thresh3; the kernel shows it in the host's own network namespace alone, or leave the level out"},
	} {
		err := fake(t, tt.files).Check(map[string]string{tt.factor: tt.lvl})
		if err == nil && tt.want != "" || err != nil && err.Error() != tt.want {
			t.Errorf("%s %s: %v, want %q", tt.factor, tt.lvl, err, tt.want)
		}
	}
}

// TestUnwritable: each refusal has what helps against it. Under lockdown, root does not.
func TestUnwritable(t *testing.T) {
	for errno, want := range map[error]string{unix.EPERM: "boot it without lockdown", unix.EACCES: "run as root", unix.EROFS: "outside of a container", unix.EIO: "open /x: input/output error"} {
		if got := unwritable("/x", &fs.PathError{Op: "open", Path: "/x", Err: errno}).Error(); !strings.HasSuffix(got, want) {
			t.Errorf("%v: %q, want %q", errno, got, want)
		}
	}
}

// TestFindings: what a study can change, and what it is now.
func TestFindings(t *testing.T) {
	files := kernel()
	delete(files, migration)
	got := fake(t, files).Findings()
	if len(got) != 2 || got[0].Err == nil || got[1].Err != nil || !strings.HasSuffix(got[1].Detail, "; now gc_thresh1 128, gc_thresh2 512, gc_thresh3 1024") {
		t.Errorf("%+v", got)
	}
}

// FuzzParse: a record that is accepted names only files that tare writes, and gives them numbers.
func FuzzParse(f *testing.F) {
	f.Add(`{"boot":"a","changed":[{"file":"` + arp + `3","was":"1024","ours":["64"]}]}`)
	f.Add(`{"boot":"a","changed":[{"file":"/etc/passwd","was":"1024","ours":[]}]}`)
	f.Add(`{"changed":[{"file":"` + arp + `3","was":"x"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parse(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, c := range r.Changed {
			if !strings.HasPrefix(c.File, arp) && c.File != migration && c.File != "/proc/sys/kernel/sched_migration_cost_ns" {
				t.Errorf("accepts the file %q", c.File)
			}
			if strings.Trim(c.Was, "-0123456789") != "" || c.Was == "" {
				t.Errorf("accepts the value %q", c.Was)
			}
		}
	})
}
