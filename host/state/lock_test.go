package state_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/host/state"
	"tare/site/claim"
)

func TestHold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	l, err := state.Hold(dir, "tare run a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = state.Hold(dir, "tare run b.yaml")
	var held *claim.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("second Hold: %v", err)
	}
	if h := held.Holder; h.Pid != os.Getpid() || h.What != "tare run a.yaml" || time.Since(h.Since) > time.Minute {
		t.Errorf("holder %+v", h)
	}
	if !strings.Contains(err.Error(), "tare run a.yaml") || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("the error does not say who: %v", err)
	}
	for range 2 {
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
	l, err = state.Hold(dir, strings.Repeat("\x01", 5000))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = state.Hold(dir, ""); !errors.As(err, &held) || held.Holder.Pid != os.Getpid() {
		t.Errorf("with a long text: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left: %v %v", entries, err)
	}
}

func TestHoldGarbage(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lock"), []byte("{garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := state.Hold(dir, "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "lock"), 0); err != nil {
		t.Fatal(err)
	}
	_, err = state.Hold(dir, "y")
	var held *claim.HeldError
	if !errors.As(err, &held) || held.Holder.Pid != 0 {
		t.Errorf("without a name: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

// TestHoldOne has many take and give back the lock: never two at once, however
// the file comes and goes.
func TestHoldOne(t *testing.T) {
	dir := t.TempDir()
	var inside, got atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				l, err := state.Hold(dir, "x")
				var held *claim.HeldError
				if errors.As(err, &held) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two hold the host")
				}
				got.Add(1)
				inside.Add(-1)
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got.Load() == 0 {
		t.Error("nobody ever got it")
	}
}

func TestHoldEndsWithTheProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := helper(t, "hold", dir)
	if _, err := state.Hold(dir, "x"); err == nil {
		t.Fatal("held by two")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	l, err := state.Hold(dir, "x")
	if err != nil {
		t.Fatalf("after the holder was killed: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

// helper starts this test program as another process and waits until it says
// that it is ready.
func helper(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "STATE_TEST_HELPER="+strings.Join(args, " "))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	buf := make([]byte, 6)
	if n, err := out.Read(buf); err != nil || string(buf[:n]) != "ready\n" {
		t.Fatalf("helper: %q, %v", buf[:n], err)
	}
	return cmd
}

// TestWaiting: whoever waits is told for what, in one line.
func TestWaiting(t *testing.T) {
	h := claim.Holder{Pid: 7, What: "study first", Since: time.Now()}
	old := h
	old.Since = time.Date(2001, 2, 3, 15, 4, 9, 0, time.Local)
	for want, h := range map[string]claim.Holder{
		"waiting for another tare to finish": {},
		"waiting for another tare to finish: study first, process 7, since " + h.Since.Format("15:04:05"): h,
		"waiting for another tare to finish: study first, process 7, since 2001-02-03 15:04:09":           old,
	} {
		if got := (&claim.HeldError{Holder: h}).Waiting(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
