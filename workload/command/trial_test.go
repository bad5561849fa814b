package command

import (
	"os"
	"path/filepath"
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
	for name, v := range map[string]param.Values{
		"true":    {"repeats": "3", "warmup": "2"},
		"gcc":     {"command": "gcc -O1 -o /tmp/one one.c", "cwd": dir},
		"python3": {"command": `/usr/bin/python3 -c "import json, sys; sys.exit(json.loads('3'))"`, "exit": "3"},
		"git":     sh("git init -q /tmp/r && cd /tmp/r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && test \"$(git log --oneline | wc -l)\" = 1 && rm -r /tmp/r"),
		"input":   {"command": "grep -q main", "input": source, "prepare": "rm -f /tmp/nothing"},
		"write":   {"command": "touch /there/is", "mounts": dir + ":/there"},
	} {
		t.Run(name, func(t *testing.T) {
			kinds := []string{trialtest.GVisor}
			if name == "gcc" {
				kinds = trialtest.Kinds()
			}
			trialtest.New(t, New(), v).In(t, kinds, v, "", func(t *testing.T, tr *record.Trial) {
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
				if name == "write" {
					if err := os.Remove(filepath.Join(dir, "is")); err != nil {
						t.Errorf("the program has not written to the directory of the host: %v", err)
					}
				}
			})
		})
	}
}

// TestFailures: how a program failed is told with its own last words.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		v    param.Values
		says string
	}{
		"exit":    {param.Values{"shell": "true", "command": "echo the reason >&2; exit 3"}, "exit code 3: the reason"},
		"signal":  {param.Values{"shell": "true", "command": "kill -SEGV $$"}, "SIGSEGV"},
		"missing": {param.Values{"command": "no-such-program"}, "no-such-program"},
		"hang":    {param.Values{"command": "sleep 1000", "timeout": "300ms"}, "did not end within 300ms"},
		"write":   {param.Values{"command": "touch /usr/tare-was-here"}, "Read-only file system"},
	} {
		t.Run(name, func(t *testing.T) {
			b := trialtest.New(t, New(), c.v)
			for _, kind := range []string{"process", "runc", "runsc-systrap"} {
				tr := b.Trial(t, c.v, kind, "")
				if tr.Failure == nil || !strings.Contains(tr.Failure.Reason, c.says) {
					t.Errorf("%s: %+v, want %q", kind, tr.Failure, c.says)
				}
			}
		})
	}
}
