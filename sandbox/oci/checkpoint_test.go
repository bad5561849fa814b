package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/host/rootfs"
	"tare/host/state/statetest"
	"tare/internal/tinyelf"
	"tare/sandbox"
)

// TestCheckpointFails: whichever step of saving and restoring fails or hangs, the
// error names it and nothing is left on the host. The rest of the runtime is gVisor.
func TestCheckpointFails(t *testing.T) {
	statetest.HostLock(t)
	real, ok := rootfs.Lookup("runsc")
	if !ok {
		t.Skip("runsc is not installed")
	}
	for _, c := range []struct {
		name, verb, does string
		want             []string
	}{
		{"checkpoint fails", "checkpoint", "echo no room >&2; exit 1", []string{"checkpoint: exit code 1", "no room"}},
		{"checkpoint hangs", "checkpoint", "exec sleep 1000", []string{"checkpoint --image-path", "did not finish within"}},
		{"restore fails", "restore", "echo no luck >&2; exit 3", []string{"restore ended before it was ready", "no luck"}},
		{"restore hangs", "restore", "exec sleep 1000", []string{"restore: it did not become ready"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Cleanup(func() {
				for thing := range statetest.Snapshot(t) {
					if strings.Contains(thing, "bad-checkpoint") || strings.Contains(thing, "/oci/bad/") {
						t.Errorf("left behind: %s", thing)
					}
				}
			})
			began, runtime := filepath.Join(t.TempDir(), "began"), filepath.Join(t.TempDir(), "runsc")
			text := fmt.Sprintf("#!/bin/sh\nfor a in \"$@\"; do test \"$a\" = %s && { : > %s; %s; }; done\nexec %s \"$@\"\n", c.verb, began, c.does, real)
			if err := os.WriteFile(runtime, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			k := kind("bad", runtime, "--platform=systrap", "--network=sandbox")
			k.known = true // no probing
			dir, root := t.TempDir(), t.TempDir()
			pause, err := tinyelf.Pause()
			if err == nil {
				err = os.WriteFile(filepath.Join(root, "tare-pause"), pause, 0o755)
			}
			for _, d := range []string{"proc", "sys", "dev", "tmp"} {
				err = errors.Join(err, os.Mkdir(filepath.Join(root, d), 0o755))
			}
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if strings.HasSuffix(c.name, "hangs") { // the time is up soon after the step has begun
				go func() {
					for _, err := os.Stat(began); err != nil && ctx.Err() == nil; _, err = os.Stat(began) {
						time.Sleep(10 * time.Millisecond)
					}
					time.Sleep(300 * time.Millisecond)
					cancel()
				}()
			}
			begun, lives, up := time.Now(), 0, make(firstWrite, 1)
			cmd := sandbox.Command{Args: []string{"/tare-pause"}, Stdout: up}
			_, err = k.Checkpoint(timeUp{ctx}, sandbox.Spec{Want: sandbox.Want{Name: "bad-checkpoint"}, Dir: dir, Root: root}, cmd, func(ctx context.Context) error {
				if lives++; lives == 1 {
					<-up
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			})
			for _, w := range c.want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("got %v, want it to say %q", err, w)
				}
			}
			if took := time.Since(begun); took > 2*time.Minute { // of the 1000 s that a step sleeps
				t.Errorf("took %v", took)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// timeUp is a context whose end is the end of its time.
type timeUp struct{ context.Context }

func (c timeUp) Err() error {
	if c.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// TestCriuSays: of criu's log the errors are told, without its ornaments.
func TestCriuSays(t *testing.T) {
	c := &checkpoint{work: t.TempDir()}
	// The end of a log of criu 3.17.1 on Linux 6.18.
	log := `(00.000640) Error (criu/util.c:642): exited, status=1
(00.005868) Loaded kdat cache from /run/criu.kdat
(00.006868) Error (criu/vdso.c:381): vdso: Unexpected rt vDSO area bounds
(00.006869) Error (criu/vdso.c:613): vdso: Failed to fill self vdso symtable
`
	if err := os.WriteFile(filepath.Join(c.work, "dump.log"), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "criu says: vdso: Unexpected rt vDSO area bounds; vdso: Failed to fill self vdso symtable (see"
	if got := c.says(nil, "dump.log"); !strings.Contains(got, want) || bytes.Contains([]byte(got), []byte("exited")) {
		t.Errorf("%q, want %q in it", got, want)
	}
}
