package files

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload/workloadtest"
)

// cases were captured on a two-core virtual machine, Linux 6.18, ext4: 200 files, two threads.
func cases() []workloadtest.Case {
	one := func(name string, params param.Values) workloadtest.Case {
		return workloadtest.Case{Name: name, Params: params, Outputs: map[string]string{"main": "testdata/" + name + ".json"}}
	}
	refused := func(name string, params param.Values) workloadtest.Case {
		return workloadtest.Case{Name: name, Params: params, Refused: true}
	}
	return []workloadtest.Case{
		one("metadata", param.Values{"threads": "2"}),
		one("rename", param.Values{"operations": "rename"}),
		one("untar", param.Values{"load": "untar"}),
		one("git-status", param.Values{"load": "git-status"}),
		refused("unknown operation", param.Values{"operations": "stat,link"}),
		refused("an operation twice", param.Values{"operations": "stat, stat"}),
		refused("operations of a program", param.Values{"load": "untar", "operations": "stat"}),
		refused("threads of a program", param.Values{"load": "git-status", "threads": "2"}),
		refused("more compilers than sources", param.Values{"load": "compile", "threads": "10"}),
		refused("headers without a function", param.Values{"load": "compile", "file-size": "64"}),
		refused("empty directories", param.Values{"depth": "4", "width": "10"}),
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }

func FuzzParse(f *testing.F) { workloadtest.Fuzz(f, New(), cases()...) }

// small is a load that takes a moment.
func small(t *testing.T, name string) config {
	t.Helper()
	return config{Load: name, Operations: "all", Dir: t.TempDir(), Files: 50, Depth: 2, Width: 3, Size: 200, Threads: 2, Duration: 50 * time.Millisecond}
}

func call(t *testing.T, c config, more ...string) (code int, out, errs string) {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	code = Main(append([]string{"--config", string(b)}, more...), &o, &e)
	return code, o.String(), e.String()
}

// reading lays the files out, runs the load and parses what it printed.
func reading(t *testing.T, c config, v param.Values) record.Reading {
	t.Helper()
	if code, _, errs := call(t, c, "--layout"); code != 0 {
		t.Fatalf("laying out: exit code %d: %s", code, errs)
	}
	code, out, errs := call(t, c)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	filled, err := param.Fill(New().Params(), v)
	if err != nil {
		t.Fatal(err)
	}
	rd, err := New().Parse("main", filled, strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	return rd
}

// TestMetadata: every selection of operations finds the files that it needs, warm and cold.
func TestMetadata(t *testing.T) {
	selections := append(nameAll(operations()), "all", "create,unlink", "create,rename", "stat,rename", "rename,unlink")
	for _, ops := range selections {
		for _, cold := range []bool{false, true} {
			c := small(t, metadataLoad)
			c.Operations, c.Cold = ops, cold
			m, err := newMetadata(c)
			if err != nil {
				t.Fatal(err)
			}
			rec := &recorder{base: time.Now(), measured: true, phases: map[string]*recorded{}}
			if err := m.layout(); err != nil {
				t.Fatal(err)
			}
			rounds := 3
			if cold {
				rounds = 1
			}
			for range rounds {
				if err := m.round(rec); err != nil {
					t.Fatalf("%s, cold %v: %v", ops, cold, err)
				}
			}
			if err := m.check(); err != nil {
				t.Errorf("%s, cold %v: %v", ops, cold, err)
			}
			for _, op := range m.ops {
				want := int64(rounds * c.Files)
				if op.dirs {
					want = int64(rounds * 13) // 1, 3 and 9 of them
				}
				if got := rec.phases[op.name].Operations; got != want {
					t.Errorf("%s, cold %v: %d of %s, want %d", ops, cold, got, op.name, want)
				}
			}
		}
	}
}

// TestWrong: what is not as it was made fails the operation that meets it, and the check.
func TestWrong(t *testing.T) {
	for _, x := range []struct {
		name, ops string
		damage    func(m *metadata) error
		want      string
	}{
		{"removed", "open", func(m *metadata) error { return os.Remove(m.trees[0].path("f", 7)) }, "no such file"},
		{"shorter", "stat", func(m *metadata) error { return os.Truncate(m.trees[0].path("f", 7), 3) }, "has 3 bytes"},
		{"other", "mmap", func(m *metadata) error {
			return os.WriteFile(m.trees[0].path("f", 7), make([]byte, m.Size), 0o600)
		}, "is not what was written"},
		{"more", "readdir", func(m *metadata) error { return os.WriteFile(m.trees[0].path("x", 7), nil, 0o600) }, "has 6 entries, but 5 were made"},
		{"exists", "missing", func(m *metadata) error { return os.WriteFile(m.trees[0].path("r", 7), nil, 0o600) }, "was not made"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := small(t, metadataLoad)
			c.Operations = x.ops
			m, err := newMetadata(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.layout(); err != nil {
				t.Fatal(err)
			}
			if err := x.damage(m); err != nil {
				t.Fatal(err)
			}
			rec := &recorder{base: time.Now(), phases: map[string]*recorded{}}
			if err := m.round(rec); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("the round says %v", err)
			}
			if err := m.check(); err == nil {
				t.Error("the check finds nothing")
			}
		})
	}
}

// TestPrograms runs each real program that the host has, on trees that are checked.
func TestPrograms(t *testing.T) {
	for name, program := range map[string]string{untar: "tar", compile: "gcc", status: "git", install: "npm"} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(err)
			}
			if testing.Short() && name == install {
				t.Skip("npm takes seconds; run without -short")
			}
			c := small(t, name)
			rd := reading(t, c, param.Values{"load": name})
			if got := rd.Samples[0]; got.Name != "time" || got.Value <= 0 {
				t.Errorf("first sample %+v", got)
			}
			made := map[string]string{untar: "out", compile: "tree", status: "tree", install: "project/node_modules/tare-3"}[name]
			if err := os.RemoveAll(filepath.Join(c.Dir, made, "d0")); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(c.Dir, made, "lib")); err != nil {
				t.Fatal(err)
			}
			l, err := c.load()
			if err != nil {
				t.Fatal(err)
			}
			if err := l.check(); err == nil || !strings.Contains(err.Error(), "were made") {
				t.Errorf("after a part was removed, the check says %v", err)
			}
		})
	}
}

func TestWrongArguments(t *testing.T) {
	for _, x := range []config{{Load: "link"}, {Load: metadataLoad, Operations: "link"}} {
		if code, _, _ := call(t, x); code != 2 {
			t.Errorf("%+v: exit code %d, want 2", x, code)
		}
	}
}

// TestChosenNone: an empty list is called that, not shown as a name.
func TestChosenNone(t *testing.T) {
	if _, err := chosen(" "); err == nil || !strings.HasPrefix(err.Error(), "operations is empty; write all, or some of ") {
		t.Error(err)
	}
}
