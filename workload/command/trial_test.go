package command

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/param"
	"tare/record"
	"tare/trial/trialtest"
	httpload "tare/workload/http"
	"tare/workload/timed"
)

func TestMain(m *testing.M) {
	os.Exit(trialtest.Main(m.Run, map[string]trialtest.Program{"timed": timed.Main, "http": httpload.Main}))
}

// TestTrials runs programs of the host that need much of its files, in each sandbox.
func TestTrials(t *testing.T) {
	dir := t.TempDir() // below /tmp, which a sandbox has for itself
	source := filepath.Join(dir, "one.c")
	if err := os.WriteFile(source, []byte("#include <stdio.h>\nint main(void) { puts(\"x\"); }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sh := func(text string) param.Values { return param.Values{"shell": "true", "command": text} }
	programs := map[string]param.Values{
		"true":                   {"repeats": "3", "warmup": "2"},
		"gcc":                    {"command": "gcc -O1 -o /tmp/one one.c", "cwd": dir},
		"python3":                {"command": `/usr/bin/python3 -c "import json, sys; sys.exit(json.loads('3'))"`, "exit": "3"},
		"git":                    sh("git init -q /tmp/r && cd /tmp/r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && test \"$(git log --oneline | wc -l)\" = 1 && rm -r /tmp/r"),
		"busybox":                {"command": "busybox seq 1 3", "figures": "last=([0-9]+)"}, // linked statically
		"a file as input":        {"command": "grep -q main", "input": source, "prepare": "rm -f /tmp/nothing"},
		"a file that is written": {"command": "touch /there/is", "mounts": dir + ":/there"},
	}
	b := trialtest.New(t, New(), slices.Collect(maps.Values(programs))...)
	for name, v := range programs {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil && !strings.HasPrefix(name, "a file") {
				t.Skipf("%s is not installed", name)
			}
			kinds := []string{trialtest.GVisor}
			if name == "gcc" {
				kinds = trialtest.Kinds()
			}
			b.In(t, kinds, v, "", func(t *testing.T, tr *record.Trial) {
				wall, _ := tr.Sample("wall")
				memory, _ := tr.Sample("peak_memory")
				user, _ := tr.Sample("user")
				t.Logf("%s: wall %.4f s, user %.4f s, peak %.1f MiB", name, wall, user, memory/(1<<20))
				if wall <= 0 || wall > 60 {
					t.Errorf("wall = %g s", wall)
				}
				if memory < 100<<10 || memory > 8<<20 && name == "true" {
					t.Errorf("peak_memory = %g B", memory)
				}
				if name == "a file that is written" {
					if err := os.Remove(filepath.Join(dir, "is")); err != nil {
						t.Errorf("the program has not written to the directory of the host: %v", err)
					}
				}
			})
		})
	}
}

// TestBadLuck: programs that leave daemons, or write without end, are measured all the same, and
// one that fails in one sandbox only says there why.
func TestBadLuck(t *testing.T) {
	b := trialtest.New(t, New(), nil)
	for name, c := range map[string]struct {
		kinds []string
		v     param.Values
		says  map[string]string // failure by kind
	}{
		"daemons":     {kinds: trialtest.Kinds(), v: param.Values{"shell": "true", "command": "setsid sleep 1000 & sleep 1000 & setsid -f sleep 1000", "repeats": "3", "timeout": "20s"}},
		"flood":       {kinds: []string{trialtest.GVisor}, v: param.Values{"shell": "true", "command": "head -c 50000000 /dev/zero | tr '\\0' x | tee /dev/stderr; echo; echo 7", "figures": "end='\\s([0-9]+)\\s*$'"}},
		"gVisor":      {kinds: trialtest.Kinds(), v: param.Values{"shell": "true", "command": "if dmesg 2>/dev/null | grep -qi gvisor; then echo no such call here >&2; exit 1; fi"}, says: map[string]string{"runsc-systrap": "exit code 1: no such call here"}},
		"no terminal": {kinds: trialtest.Kinds(), v: param.Values{"shell": "true", "command": "test -t 0 || test -t 2 || exit 5"}, says: map[string]string{"process": "exit code 5, and printed nothing", "runc": "exit code 5", "runsc-systrap": "exit code 5"}},
		"hangs there": {kinds: trialtest.Kinds(), v: param.Values{"shell": "true", "timeout": "2s", "command": "if dmesg 2>/dev/null | grep -qi gvisor; then echo waiting for a lock; sleep 1000; fi"},
			says: map[string]string{"runsc-systrap": "did not end within 2 s; give more with timeout\nwaiting for a lock"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range c.kinds {
				tr := b.Trial(t, c.v, kind, "")
				switch want := c.says[kind]; {
				case (tr.Failure == nil) != (want == ""):
					t.Errorf("%s: %+v, want %q", kind, tr.Failure, want)
				case want != "" && !strings.Contains(tr.Failure.Reason+tr.Failure.Tail, want):
					t.Errorf("%s: %+v, want %q", kind, tr.Failure, want)
				}
			}
		})
	}
}

// TestFailures: how a program failed is told with its own last words, one of them in each sandbox.
func TestFailures(t *testing.T) {
	b := trialtest.New(t, New(), nil)
	for name, c := range map[string]struct {
		v    param.Values
		says string
	}{
		"exit":    {param.Values{"shell": "true", "command": "echo the reason >&2; exit 3"}, "exit code 3: the reason"},
		"signal":  {param.Values{"shell": "true", "command": "kill -SEGV $$"}, "SIGSEGV"},
		"missing": {param.Values{"command": "no-such-program"}, "no-such-program"},
		"hang":    {param.Values{"command": "sleep 1000", "timeout": "300ms"}, "did not end within 0.3 s"},
		"write":   {param.Values{"command": "touch /usr/tare-was-here"}, "Read-only file system"},
	} {
		t.Run(name, func(t *testing.T) {
			kinds := []string{trialtest.GVisor}
			if name == "exit" {
				kinds = trialtest.Kinds()
			}
			for _, kind := range kinds {
				tr := b.Trial(t, c.v, kind, "")
				if tr.Failure == nil || !strings.Contains(tr.Failure.Reason, c.says) {
					t.Errorf("%s: %+v, want %q", kind, tr.Failure, c.says)
				}
			}
		})
	}
}
