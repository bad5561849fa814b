package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

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
		if err := os.Remove(file); err != nil { // no bundle is written over
			t.Fatal(err)
		}
	}
}

// TestBundleKeeps: a bundle is not written over, and what a later tare made is told
// as other bundles that cannot be read.
func TestBundleKeeps(t *testing.T) {
	results, dir := rehearsed(t), t.TempDir()
	file := filepath.Join(dir, "x"+bundle.Suffix)
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := shell(t, dir, "tare bundle "+results+" -o x"+bundle.Suffix, true)
	if b, err := os.ReadFile(file); code != exitUsage || !strings.Contains(out, "already exists; name a new file with -o FILE") || err != nil || string(b) != "mine" {
		t.Errorf("%d: %s\n%q %v", code, out, b, err)
	}
	later := `{"format":"tare bundle","version":99,"tare":"9.0","folder":"x","trials":0,"members":[]}`
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "manifest.json", Size: int64(len(later)), Mode: 0o644, Typeflag: tar.TypeReg}), write(w, later), w.Close(), z.Close(),
		os.WriteFile(file, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"report", "bundle --check", "bundle --unpack"} {
		if out, code := shell(t, dir, "tare "+verb+" x"+bundle.Suffix, true); code != exitUsage || !strings.Contains(out, "it is in format 99") {
			t.Errorf("%s: %d: %s", verb, code, out)
		}
	}
}

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
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
