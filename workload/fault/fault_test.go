package fault

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/param"
	"tare/workload/output"
	"tare/workload/workloadtest"
)

func cases() []workloadtest.Case {
	return []workloadtest.Case{
		{Name: "none", Params: param.Values{"do": "none"}, Outputs: map[string]string{"main": "testdata/none.json"}},
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }
func FuzzParse(f *testing.F)    { workloadtest.Fuzz(f, New(), cases()...) }

// asProgram makes the test binary the program inside the sandbox.
const asProgram = "TARE_TEST_FAULT"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// program runs Main in a process of its own.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

func parse(text io.Reader) error {
	v, err := param.Fill(New().Params(), nil)
	if err != nil {
		return err
	}
	_, err = New().Parse("main", v, text)
	return err
}

func TestExitAndSignal(t *testing.T) {
	var exit *exec.ExitError
	if err := program(t, "--do=exit").Run(); !errors.As(err, &exit) || exit.ExitCode() != codeAsked {
		t.Errorf("exit: %v, want code %d", err, codeAsked)
	}
	if err := program(t, "--do=signal").Run(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("signal: %v, want SIGKILL", err)
	}
	if err := program(t, "--do=nothing").Run(); !errors.As(err, &exit) || exit.ExitCode() != codeUsage {
		t.Errorf("an unknown word: %v, want code %d", err, codeUsage)
	}
}

// TestHang: SIGTERM does not end it, SIGKILL does.
func TestHang(t *testing.T) {
	cmd := program(t, "--do=hang")
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	if _, err := io.ReadAtLeast(said, make([]byte, 64), len("fault: hanging")); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("SIGTERM ended it: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("SIGKILL did not end it")
	}
}

func TestHangEnds(t *testing.T) {
	var stderr bytes.Buffer
	m := misbehaver{stdout: io.Discard, stderr: &stderr, hang: time.Millisecond}
	if code := m.sleep(); code != codeFailed || !strings.Contains(stderr.String(), "nobody ended it") {
		t.Errorf("a hang that is left alone: %d, %q", code, &stderr)
	}
}

// TestPrinting: each output that is no report is told apart by Parse.
func TestPrinting(t *testing.T) {
	for do, want := range map[string]error{"silent": output.ErrEmpty, "flood": output.ErrTooLong, "garbage": nil, "none": nil} {
		var out, stderr bytes.Buffer
		if code := Main([]string{"--do=" + do}, &out, &stderr); code != 0 {
			t.Errorf("%s: code %d, %s", do, code, &stderr)
		}
		err := parse(&out)
		switch {
		case do == "none" && err != nil:
			t.Errorf("none: %v", err)
		case do == "garbage" && (err == nil || !strings.Contains(err.Error(), "garbage")):
			t.Errorf("garbage: %v", err)
		case want != nil && !errors.Is(err, want):
			t.Errorf("%s: %v, want %v", do, err, want)
		}
	}
}

// TestFill: the bound holds where the disk does not fill, the file is gone
// afterwards, and a full disk is called by its name.
func TestFill(t *testing.T) {
	var stderr bytes.Buffer
	m := misbehaver{stdout: io.Discard, stderr: &stderr, data: t.TempDir()}
	if code := m.fill(); code != codeFailed || !strings.Contains(stderr.String(), "wrote 64 MiB") {
		t.Errorf("fill = %d, %q", code, &stderr)
	}
	if left, _ := os.ReadDir(m.data); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this host has no /dev/full to stand for a full disk")
	}
	if err := os.Symlink("/dev/full", filepath.Join(m.data, "tare-fault")); err != nil {
		t.Fatal(err)
	}
	stderr.Reset()
	if code := m.fill(); code != codeFailed || !strings.Contains(stderr.String(), syscall.ENOSPC.Error()) {
		t.Errorf("a full disk: %d, %q", code, &stderr)
	}
}

func TestOOMIsBounded(t *testing.T) {
	var stderr bytes.Buffer
	m := misbehaver{stdout: io.Discard, stderr: &stderr, memory: 16 << 20}
	if code := m.oom(); code != codeFailed || !strings.Contains(stderr.String(), "took 16 MiB and was not killed") {
		t.Errorf("oom = %d, %q", code, &stderr)
	}
}

func TestAfter(t *testing.T) {
	start := time.Now()
	if code := Main([]string{"--do=silent", "--after=60ms"}, io.Discard, io.Discard); code != 0 || time.Since(start) < 60*time.Millisecond {
		t.Errorf("--after=60ms: code %d after %s", code, time.Since(start))
	}
}
