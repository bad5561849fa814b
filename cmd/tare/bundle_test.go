package main

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/bundle"
)

// TestKillWhileBundling kills `tare bundle` at random moments: under the name of
// the bundle there is nothing, or a whole one.
func TestKillWhileBundling(t *testing.T) {
	results := rehearsed(t)
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	file := filepath.Join(dir, "x"+bundle.Suffix)
	for range 12 {
		cmd := exec.CommandContext(t.Context(), bin, "bundle", results, "-o", file)
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rng.IntN(120)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if _, err := os.Stat(file); err != nil {
			continue
		}
		if _, err := bundle.Check(t.Context(), file, bundle.DefaultLimits()); err != nil {
			t.Fatal(err)
		}
		if rng.IntN(2) == 0 { // else the next one writes over it
			_ = os.Remove(file)
		}
	}
}

// TestBundleSignals ends a server of a bundle by signals: what was unpacked goes
// with it.
func TestBundleSignals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x"+bundle.Suffix)
	if out, err := exec.CommandContext(t.Context(), bin, "bundle", rehearsed(t), "-o", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), bin, "serve", file)
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "http://") {
			t.Fatalf("%q, %v", line, err)
		}
		if found, err := filepath.Glob(filepath.Join(dir, "tare-bundle-*", "*", "results.db")); err != nil || len(found) != 1 {
			t.Errorf("unpacked: %q, %v", found, err)
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v: left %v, %v", s, left, err)
		}
	}
}
