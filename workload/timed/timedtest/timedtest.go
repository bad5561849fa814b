// Package timedtest runs a workload that uses package timed in real sandboxes, with its real
// image.
//
// The data path: 1. Main, in the package's TestMain, makes the test's binary /tare in the
// sandbox; 2. Run builds the image or finds it in the host's cache, takes the host's lock, starts
// a sandbox of each kind and runs the role in it; 3. the workload parses the output.
package timedtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tare/host/image/imagetest"
	"tare/host/state/statetest"
	"tare/param"
	"tare/record"
	"tare/sandbox"
	sandboxes "tare/sandbox/all"
	"tare/sandbox/sandboxtest"
	"tare/workload"
	"tare/workload/timed"
)

// limit bounds one run in a sandbox.
const limit = 3 * time.Minute

// Main is for a package's TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(timedtest.Main(m.Run)) }
func Main(run func() int) int {
	if len(os.Args) > 2 && os.Args[1] == "internal" && os.Args[2] == "timed" {
		return timed.Main(os.Args[3:], os.Stdout, os.Stderr)
	}
	return sandboxtest.Main(run)
}

// Run runs the workload's single role with the values in the baseline and in gVisor, and passes
// each reading to check. It skips, with the reason, what the host cannot do.
func Run(t *testing.T, w workload.Workload, v param.Values, check func(*testing.T, record.Reading)) {
	t.Helper()
	if testing.Short() {
		t.Skip("building an image and running it are too long for -short")
	}
	v, err := param.Fill(w.Params(), v)
	if err != nil {
		t.Fatal(err)
	}
	roles, err := w.Roles(v)
	if err != nil || len(roles) != 1 {
		t.Fatalf("%v: %d roles, want 1", err, len(roles))
	}
	root := imagetest.Tree(t, roles[0].Image) // may take a minute, so before the lock
	statetest.HostLock(t)
	for _, k := range sandboxes.Kinds(sandboxes.Env{StateDir: "/run/tare/test-timed"}) {
		if t := k.Traits(nil); t.Family != record.FamilyNative && t.Platform != "systrap" {
			continue
		}
		t.Run(k.Name(), func(t *testing.T) {
			if err := k.Check(t.Context()); err != nil {
				t.Skip(err)
			}
			out := one(t, k, root, roles[0])
			rd, err := w.Parse(roles[0].Name, v, bytes.NewReader(out))
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			check(t, rd)
		})
	}
}

// one runs the role in one sandbox and returns what it printed.
func one(t *testing.T, k sandbox.Kind, root string, role workload.Role) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	spec := sandbox.Spec{Want: sandbox.Want{Name: fmt.Sprintf("timed-%s-%d", k.Name(), os.Getpid())}, Dir: filepath.Join(t.TempDir(), "own"), Root: root}
	folders := []string{spec.Dir}
	if len(role.Volumes) > 0 {
		data := filepath.Join(t.TempDir(), "data")
		spec.Mounts, folders = sandboxtest.MountsAtData(data), append(folders, data)
	}
	if role.Writable {
		spec.Upper = filepath.Join(t.TempDir(), "upper")
		folders = append(folders, spec.Upper)
	}
	for _, d := range folders {
		if err := os.Mkdir(d, 0o755); err != nil { //nolint:gosec // a sandbox's user reads it
			t.Fatal(err)
		}
	}
	inst, err := k.Start(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := inst.Stop(ctx); err != nil {
			t.Error(err)
		}
	}()
	var stdout, stderr bytes.Buffer
	exit, err := inst.Exec(ctx, sandbox.Command{Args: role.Args, Env: role.Env, Stdout: &stdout, Stderr: &stderr})
	if err != nil || exit.Code != 0 {
		t.Fatalf("exit %+v, %v\nstdout: %.500s\nstderr: %.2000s", exit, err, &stdout, &stderr)
	}
	return stdout.Bytes()
}
