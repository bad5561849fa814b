package timed

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestArgs(t *testing.T) {
	got := Args([]string{"a", "-b"}, []string{"c"}, []string{"d", "e"})
	want := strings.Fields("/tare internal timed a -b ++ c ++ d e")
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestWhole: what Main prints, Read takes apart again, and the time is that of
// the program alone.
func TestWhole(t *testing.T) {
	var out, errs bytes.Buffer
	const sleep = 50 * time.Millisecond
	args := Args([]string{"sh", "-c", "printf 'no end of line'; sleep 0.05"}, []string{"sh", "-c", "sleep 0.3; echo looked"})[3:]
	start := time.Now()
	if code := Main(args, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	all := time.Since(start)
	program, r, check, err := Read(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if string(program) != "no end of line\n" || string(check) != "looked\n" {
		t.Errorf("program %q, check %q", program, check)
	}
	if d := time.Duration(r.Elapsed); d < sleep || d > all-300*time.Millisecond {
		t.Errorf("the time is %v, of %v with the check's 300 ms", d, all)
	}
}

func TestExitCodes(t *testing.T) {
	sh := func(script string) []string { return []string{"sh", "-c", script} }
	ok, bad := sh("true"), sh("echo why >&2; exit 7")
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"the program's own", bad, 7, "why"},
		{"by signal", sh("kill -KILL $$"), 128 + 9, "killed"},
		{"missing", []string{"/no/such"}, 127, "/no/such"},
		{"the check's", Args(ok, bad)[3:], 7, "checks what it has made"},
		{"the second check's", Args(ok, ok, bad)[3:], 7, "checks what it has made"},
		{"the check is not run after a failure", Args(bad, sh("exit 9"))[3:], 7, "why"},
		{"nothing", nil, 2, "give a program"},
		{"an empty check", []string{"true", Separator}, 2, "give a program"},
		{"no program", []string{Separator, "true"}, 2, "give a program"},
	} {
		var out, errs bytes.Buffer
		if code := Main(c.args, &out, &errs); code != c.code || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: exit code %d and %q, want %d and %q", c.name, code, &errs, c.code, c.says)
		}
		if _, _, _, err := Read(bytes.NewReader(out.Bytes())); err == nil && !strings.HasPrefix(c.name, "the check's") && !strings.HasPrefix(c.name, "the second") {
			t.Errorf("%s: there is a time of a run that failed: %q", c.name, &out)
		}
	}
}

// TestTold: the program is asked to end when timed is. This test's own binary
// is timed, as a process of its own.
func TestTold(t *testing.T) {
	if os.Getenv("TIMED_CHILD") != "" {
		os.Exit(Main([]string{"sh", "-c", "trap 'echo asked; exit 5' TERM; echo up; while :; do sleep 0.01; done"}, os.Stdout, os.Stderr))
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestTold$") //nolint:noctx // this very test
	cmd.Env = append(os.Environ(), "TIMED_CHILD=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64)
	if n, err := out.Read(b); err != nil || string(b[:n]) != "up\n" {
		t.Fatalf("%q, %v", b[:n], err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 5 || string(rest) != "asked\n" || err != nil {
		t.Errorf("after SIGTERM: exit code %d, output %q, %v; want what the program's trap says", code, rest, err)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "is empty",
		"a{\"timed_ns\":5}\n":                  "lacks the line", // not at a line's start
		`{"timed_ns":5`:                        "damaged",
		`{"timed_ns":5}`:                       "damaged", // cut before the line's end
		"{\"timed_ns\":\"5\"}\n":               "damaged",
		"{\"timed_ns\":0}\n":                   "does not advance",
		"{\"timed_ns\":-1}\n":                  "is negative or longer",
		"{\"timed_ns\":1000000000000000000}\n": "is negative or longer",
	} {
		if _, _, _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
	program, r, check, err := Read(strings.NewReader("x{\"timed_ns\":1}\n{\"timed_ns\":2,\"user_ns\":3,\"system_ns\":4}\n{\"timed_ns\":9}\n"))
	if err != nil || r != (Report{Elapsed: 2, User: 3, System: 4}) || string(program) != "x{\"timed_ns\":1}\n" || string(check) != "{\"timed_ns\":9}\n" {
		t.Errorf("%q, %+v, %q, %v", program, r, check, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("frame=1\n\n{\"timed_ns\":2462123340,\"user_ns\":3944411000,\"system_ns\":105080000}\n{}\n"))
	f.Add([]byte("x{\"timed_ns\":1}\n{\"timed_ns\":"))
	f.Fuzz(func(t *testing.T, out []byte) {
		program, r, check, err := Read(bytes.NewReader(out))
		if err != nil {
			return
		}
		if r.Elapsed <= 0 || r.Seconds() > MaxTime.Seconds() || !bytes.HasPrefix(out, program) || !bytes.HasSuffix(out, check) ||
			len(program)+len(check) >= len(out) || len(program) > 0 && !slices.Contains([]byte("\n"), program[len(program)-1]) {
			t.Errorf("%q: %q, %+v, %q", out, program, r, check)
		}
	})
}
