package timed

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runs makes the runs through Main and returns what it printed.
func runs(t *testing.T, r Runs) (out []Run, said string, code int) {
	t.Helper()
	if r.Limit == 0 {
		r.Limit = time.Minute
	}
	args, err := r.Args()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code = Main(args[3:], &stdout, &stderr)
	if stdout.Len() > 0 {
		if out, err = ReadRuns(&stdout); err != nil {
			t.Fatal(err)
		}
	}
	return out, stderr.String(), code
}

func shell(text string) []string { return []string{"/bin/sh", "-c", text} }

// TestRuns: each run is reported, with what it printed as far as it is to be kept, and the command
// before it is not timed.
func TestRuns(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := os.WriteFile(in, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, said, code := runs(t, Runs{
		Command: shell("cat; echo $A; pwd; cat made; rm made"), Prepare: shell("sleep 0.2; echo fresh > made"),
		Env: []string{"A=b c"}, Dir: dir, Input: in, Repeats: 3, Keep: 1 << 10, Exit: []int{0},
	})
	if code != 0 || len(got) != 3 {
		t.Fatalf("exit code %d, %d runs: %s", code, len(got), said)
	}
	for i, r := range got {
		if want := "one\ntwo\nb c\n" + dir + "\nfresh\n"; r.Stdout != want || r.Cut {
			t.Errorf("run %d printed %q, want %q", i, r.Stdout, want)
		}
		if r.End < int64(i+1)*(200*time.Millisecond).Nanoseconds()+r.Elapsed {
			t.Errorf("run %d of %d ns ended at %d ns: what prepares it is timed", i, r.Elapsed, r.End)
		}
	}
}

// TestMemory: the peak memory is the program's own, small or large, and not of this program.
func TestMemory(t *testing.T) {
	small, said, _ := runs(t, Runs{Command: []string{"true"}, Repeats: 1})
	large, saidLarge, _ := runs(t, Runs{Command: []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=40M", "count=1"}, Repeats: 1})
	if len(small) != 1 || len(large) != 1 {
		t.Fatal(said, saidLarge)
	}
	if small[0].Memory == 0 || small[0].Memory > 4<<20 {
		t.Errorf("true held %d bytes", small[0].Memory)
	}
	if m := large[0].Memory; m < 40<<20 || m > 60<<20 {
		t.Errorf("dd with a buffer of 40 MiB held %d bytes", m)
	}
}

// TestFill: runs are repeated until they have taken the time.
func TestFill(t *testing.T) {
	got, said, _ := runs(t, Runs{Command: []string{"sleep", "0.02"}, Repeats: 2, Fill: 100 * time.Millisecond})
	if len(got) < 2 || len(got) > 5 {
		t.Errorf("%d runs: %s", len(got), said)
	}
	got, said, _ = runs(t, Runs{Command: []string{"sleep", "0.02"}, Repeats: 2, Quiet: true})
	if len(got) != 0 || said != "" {
		t.Errorf("quiet runs print %v, %q", got, said)
	}
}

func TestRunsFail(t *testing.T) {
	ok := []int{0}
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name string
		runs Runs
		code int
		says string
	}{
		{"exit", Runs{Command: shell("echo why >&2; exit 3"), Exit: ok}, 3, "run 1 ended with exit code 3\nwhy\n"},
		{"its standard output is shown where it said nothing else", Runs{Command: shell("echo why; exit 3"), Exit: ok, Keep: 100}, 3, "exit code 3\nwhy\n"},
		{"silent", Runs{Command: shell("exit 3"), Exit: ok}, 3, "exit code 3, and printed nothing\n"},
		{"its standard output is had by another run", Runs{Command: shell("echo why; exit 3"), Exit: ok}, 3, "run 1 ended with exit code 3\nwhy\n"},
		{"another run does not fail", Runs{Command: shell("test -e again && exit 0; echo > again; exit 3"), Dir: t.TempDir(), Exit: ok}, 3, "exit code 3, and printed nothing\n"},
		{"no terminal", Runs{Command: []string{"tty"}, Exit: ok}, 1, "run 1 ended with exit code 1; there is no terminal\nnot a tty\n"},
		{"no terminal to read from", Runs{Command: shell("echo 'Vim: Warning: Input is not from a terminal' >&2; exit 1"), Exit: ok}, 1, "exit code 1; there is no terminal\nVim"},
		{"no terminal on standard error", Runs{Command: shell("echo 'stty: standard input: Inappropriate ioctl for device' >&2; exit 1"), Exit: ok}, 1, "exit code 1; there is no terminal\nstty"},
		{"expected", Runs{Command: shell("exit 3"), Exit: []int{2, 3}}, 0, ""},
		{"any", Runs{Command: shell("exit 77")}, 0, ""},
		{"success where a failure is expected", Runs{Command: shell("exit 0"), Exit: []int{1}}, 1, "exit code 0, which is not one of the expected ones"},
		{"signal", Runs{Command: shell("kill -SEGV $$")}, 139, "run 1 was killed by SIGSEGV"},
		{"missing", Runs{Command: []string{"no-such-program"}}, 127, "cannot start no-such-program: it is not in PATH"},
		{"no interpreter", Runs{Command: []string{script("#!/no/such/interpreter\n")}}, 127, "its interpreter or its loader is not in the sandbox"},
		{"no format", Runs{Command: []string{script("nothing\n")}}, 127, "neither a program of this processor nor a script"},
		{"not a program", Runs{Command: []string{"/dev/null"}}, 127, "cannot start /dev/null: "},
		{"no directory", Runs{Command: []string{"true"}, Dir: "/no/such"}, 127, "cannot start true: its working directory: stat /no/such: no such file or directory\n"},
		{"no input", Runs{Command: []string{"true"}, Input: "/no/such"}, 127, "its input: open /no/such"},
		{"preparing", Runs{Command: []string{"true"}, Prepare: shell("exit 4")}, 4, "the command that prepares run 1 ended with exit code 4"},
		{"hangs", Runs{Command: []string{"sleep", "1000"}, Limit: 50 * time.Millisecond}, 124, "did not end within 0.05 s and printed nothing; give more with timeout\n"},
		{"hangs with a word on standard output", Runs{Command: shell("echo waiting; sleep 1000"), Limit: 500 * time.Millisecond}, 124, "did not end within 0.5 s; give more with timeout\nwaiting\n"},
		{"hangs and does not listen", Runs{Command: shell("trap '' TERM; sleep 1000 & wait; sleep 1000"), Limit: 50 * time.Millisecond}, 124, "did not end within 0.05 s and printed nothing; give more with timeout\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.runs.Repeats = 1
			if _, said, code := runs(t, c.runs); code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("exit code %d and %q, want %d and %q", code, said, c.code, c.says)
			}
		})
	}
}

// TestLeftBehind: a process that a run leaves behind does not hold the run up, and is ended with
// it; output of gigabytes is bounded.
func TestLeftBehind(t *testing.T) {
	for name, script := range map[string]string{"in its group": "sleep 1000 & echo $! > ", "in a session": "setsid sh -c 'echo $$ > pid; mv pid $0; exec sleep 1000' $0 & while ! [ -e $0 ]; do sleep 0.01; done; : "} {
		t.Run(name, func(t *testing.T) { leaves(t, script) })
	}
	got, said, code := runs(t, Runs{Command: shell("head -c 100000000 /dev/zero | tr '\\0' x; echo end"), Repeats: 1, Keep: 1000})
	if code != 0 || len(got) != 1 || !got[0].Cut || len(got[0].Stdout) != 1000 || !strings.HasSuffix(got[0].Stdout, "xend\n") {
		t.Errorf("%d, %.200v, %s", code, got, said)
	}
}

// leaves runs a script that leaves a process behind, whose id it writes to the file that is named
// behind it.
func leaves(t *testing.T, script string) {
	t.Helper()
	// The test's own children are not the runs'.
	if os.Getenv("TIMED_LEAVES") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:noctx // a test
		cmd.Env = append(os.Environ(), "TIMED_LEAVES=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	pids := filepath.Join(t.TempDir(), "pids")
	got, said, code := runs(t, Runs{Command: []string{"/bin/sh", "-c", script + pids, pids}, Dir: filepath.Dir(pids), Repeats: 1, Keep: 10})
	if code != 0 || len(got) != 1 || got[0].Elapsed > int64(20*time.Second) {
		t.Fatalf("%d, %v, %s", code, got, said)
	}
	b, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	alive := func() bool {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/stat")
		return err == nil && !strings.Contains(string(stat), ") Z ")
	}
	for end := time.Now().Add(10 * time.Second); alive(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %s lives on", b)
		}
	}
}

func TestReadRunsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "empty",
		"x":                          "line 1 is not the report of a run",
		`{"timed_ns":0}`:             "does not advance",
		`{"timed_ns":-1}`:            "is negative or longer",
		`{"timed_ns":1,"end_ns":-1}`: "out of order",
		`{"timed_ns":1,"end_ns":2}` + "\n" + `{"timed_ns":1,"end_ns":1}`: "out of order",
		`{"timed_ns":1,"end_ns":2,"peak_memory_bytes":-5}`:               "out of order or range",
	} {
		if _, err := ReadRuns(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadRuns(f *testing.F) {
	f.Add([]byte(`{"timed_ns":1,"user_ns":3,"system_ns":4,"end_ns":9,"peak_memory_bytes":5,"stdout":"a\nb"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ReadRuns(bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, r := range got {
			if r.Elapsed <= 0 || r.User < 0 || r.Memory < 0 {
				t.Errorf("%+v", r)
			}
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		}
	})
}

func FuzzReadEnded(f *testing.F) {
	f.Add(bytes.Repeat([]byte{1}, 192))
	f.Add([]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, ok, err := readEnded(b); ok && err != nil {
			t.Errorf("%x: %v", b, err)
		}
	})
}
