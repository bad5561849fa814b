package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/sandbox"
	"tare/sandbox/vm/boot"
)

// TestJudge: only what QEMU itself gave up with is kept until the host boots again.
func TestJudge(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		said  error
		accel string // "": an error
		keep  bool
	}{
		{"it works", t.Context(), nil, accelKVM, true},
		{"QEMU gave up", t.Context(), fmt.Errorf("%w: aborted", errNoKVM), accelTCG, true},
		{"no end", t.Context(), fmt.Errorf("%w: the agent says nothing", errNoAnswer), accelTCG, false},
		{"too many files", t.Context(), unix.EMFILE, "", false},
		{"no control group", t.Context(), errors.New("cgroup: no"), "", false},
		{"the caller has gone", ended, fmt.Errorf("%w: killed", errNoKVM), "", false},
	} {
		v, keep, err := verdict{Boot: "b"}.judge(c.ctx, c.said)
		if keep != c.keep || (err != nil) != (c.accel == "") || err == nil && v.Accel != c.accel {
			t.Errorf("%s: %+v, kept %v, %v", c.name, v, keep, err)
		}
		if keep && (v.Why != "") != (c.said != nil) {
			t.Errorf("%s: why is %q", c.name, v.Why)
		}
	}
}

// TestVerdictIsOfOneQEMU: another path or other arguments are another QEMU.
func TestVerdictIsOfOneQEMU(t *testing.T) {
	v := verdict{Boot: "b", QEMU: "7.2", Path: "/a", Args: `["-cpu"]`, Guest: "6.1", Accel: accelTCG, Why: "no"}
	if w := v; !v.of(w) {
		t.Error("not of itself")
	}
	for n := range 5 {
		w := v
		*[]*string{&w.Boot, &w.QEMU, &w.Path, &w.Args, &w.Guest}[n] += "x"
		if v.of(w) {
			t.Errorf("%+v is taken for one of %+v", v, w)
		}
	}
}

// TestForget: what did not work is tried again, what works is not.
func TestForget(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, verdictFile)
	for _, c := range []struct {
		accel string
		left  bool
	}{{"", false}, {accelTCG, false}, {accelKVM, true}} {
		if c.accel != "" {
			if err := (verdict{Accel: c.accel}).write(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := Forget(dir); err != nil {
			t.Error(err)
		}
		if _, ok := readVerdict(path); ok != c.left {
			t.Errorf("%q: left %v", c.accel, ok)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestWaitForATrialEnds with the waiter's context.
func TestWaitForATrialEnds(t *testing.T) {
	k := New(Config{CacheDir: t.TempDir()})
	k.trying <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := k.accelerator(ctx, auto, qemu{}, boot.Files{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := k.forgetAccelerator(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestTooManyVCPUs: a machine with fewer than were asked for would bear the name of another.
func TestTooManyVCPUs(t *testing.T) {
	k := New(Config{})
	for _, c := range []struct {
		vcpus, most string
		err         string
	}{
		{"2", "0", ""},
		{"3", "0", "this host has 2 processors"},
		{all, "0", ""},
		{"-1", "0", ""},
		{"4", "4", ""},
		{"5", "4", "max_vcpus is 4"},
		{all, "1", ""},
		{"2", "1", "max_vcpus is 1"},
	} {
		_, err := k.read(sandbox.Spec{Want: sandbox.Want{Options: map[string]string{paramVCPUs: c.vcpus, paramMaxVCPUs: c.most}}}, 2)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s of %s: %v", c.vcpus, c.most, err)
		}
	}
}
