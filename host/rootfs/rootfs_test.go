package rootfs

import (
	"context"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func self(t *testing.T) string {
	t.Helper()
	p, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustBuild(t *testing.T, cache string, tools ...string) Tree {
	t.Helper()
	tree, err := Build(t.Context(), cache, self(t), tools)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTree(t *testing.T) {
	cache := t.TempDir()
	tree := mustBuild(t, cache, "sh", "no-such-tool-anywhere")
	if diff := cmp.Diff([]string{"no-such-tool-anywhere"}, tree.Missing); diff != "" {
		t.Errorf("Missing (-want +got):\n%s", diff)
	}
	if tree.Path != filepath.Join(cache, tree.Digest) {
		t.Errorf("tree at %s for digest %s", tree.Path, tree.Digest)
	}
	for _, dir := range []string{"proc", "sys", "dev", "tmp", "data"} {
		if st, err := os.Stat(filepath.Join(tree.Path, dir)); err != nil || !st.IsDir() {
			t.Errorf("%s is not a directory: %v", dir, err)
		}
	}
	for _, f := range []string{"tare", "tare-hello", "tare-pause"} {
		if st, err := os.Stat(filepath.Join(tree.Path, f)); err != nil || st.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v %v", f, st, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(cache, ".building-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestBare: what is in the tree runs on the other processor, and nothing else is in it.
func TestBare(t *testing.T) {
	other, machine := "arm64", elf.EM_AARCH64
	if runtime.GOARCH == other {
		other, machine = "amd64", elf.EM_X86_64
	}
	tree, err := Bare(t.Context(), t.TempDir(), self(t), other)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"tare-hello", "tare-pause"} {
		e, err := elf.Open(filepath.Join(tree.Path, f))
		if err != nil {
			t.Fatal(err)
		}
		if e.Machine != machine {
			t.Errorf("%s is for %v", f, e.Machine)
		}
		_ = e.Close()
	}
	if programs, err := filepath.Glob(filepath.Join(tree.Path, "usr/*/*")); err != nil || len(programs) > 0 {
		t.Errorf("there are %v %v", programs, err)
	}
	if _, err := Bare(t.Context(), t.TempDir(), self(t), "s390x"); err == nil || !strings.Contains(err.Error(), "s390x") {
		t.Errorf("%v", err)
	}
}

// TestToolsRun runs each tool in its tree, so that a library that is missing
// shows.
func TestToolsRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to change the root directory")
	}
	for tool, args := range map[string][]string{
		"sh":       {"-c", "exit 0"},
		"fio":      {"--version"},
		"iperf3":   {"--version"},
		"sysbench": {"cpu", "--time=1", "--events=1", "run"},
	} {
		t.Run(tool, func(t *testing.T) {
			path, ok := Lookup(tool)
			if !ok {
				t.Skipf("this host has no %s", tool)
			}
			tree := mustBuild(t, t.TempDir(), tool)
			cmd := exec.Command(path, args...)
			cmd.Dir = "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: tree.Path}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestDynamicBinaryRuns: a tare that was built with cgo needs its libraries.
func TestDynamicBinaryRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to change the root directory")
	}
	sh, ok := Lookup("sh")
	if !ok {
		t.Skip("this host has no sh")
	}
	tree, err := Build(t.Context(), t.TempDir(), sh, nil)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/tare", "-c", "exit 0")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: tree.Path}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSameContentSameTree(t *testing.T) {
	cache := t.TempDir()
	a := mustBuild(t, cache, "sh")
	before, err := os.Stat(filepath.Join(a.Path, "tare"))
	if err != nil {
		t.Fatal(err)
	}
	b := mustBuild(t, cache, "sh", "sh")
	after, err := os.Stat(filepath.Join(b.Path, "tare"))
	if err != nil {
		t.Fatal(err)
	}
	if a.Digest != b.Digest || !os.SameFile(before, after) {
		t.Error("the tree was built again")
	}
	if c := mustBuild(t, cache); c.Digest == a.Digest {
		t.Error("another set of tools has the same digest")
	}
}

func TestTruncatedTreeIsBuiltAgain(t *testing.T) {
	cache := t.TempDir()
	a := mustBuild(t, cache)
	victim := filepath.Join(a.Path, "tare")
	if err := os.Truncate(victim, 0); err != nil {
		t.Fatal(err)
	}
	mustBuild(t, cache)
	if st, err := os.Stat(victim); err != nil || st.Size() == 0 {
		t.Errorf("still truncated: %v %v", st, err)
	}
}

func TestConcurrentBuilds(t *testing.T) {
	cache := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			tree, err := Build(context.Background(), cache, self(t), []string{"sh"})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(filepath.Join(tree.Path, "tare")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestLockHonoursContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestPruneRemovesLeastRecentlyUsed(t *testing.T) {
	cache := t.TempDir()
	for name, age := range map[string]time.Duration{"old": 3 * time.Hour, "older": 5 * time.Hour, "new": 0, "kept": 9 * time.Hour} {
		dir := filepath.Join(cache, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, 1000), 0o600); err != nil {
			t.Fatal(err)
		}
		used := time.Now().Add(-age)
		if err := os.Chtimes(dir, used, used); err != nil {
			t.Fatal(err)
		}
	}
	if err := prune(cache, "kept", 3500); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, _ := os.ReadDir(cache)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"kept", "new", "old"}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestScriptNeedsItsInterpreter(t *testing.T) {
	for text, want := range map[string]string{
		"#!/bin/sh -e\nexit\n":     "/bin/sh",
		"#! /usr/bin/env sh\n":     "/usr/bin/env",
		"#!\n":                     "error",
		"#!/usr/bin/env no-such\n": "error",
	} {
		got, err := interpreter(strings.NewReader(text))
		if err != nil {
			got = []string{"error"}
		}
		if got[0] != want {
			t.Errorf("%q needs %v, want %s", text, got, want)
		}
	}
}

func TestMissingLibraryIsNamed(t *testing.T) {
	sh, ok := Lookup("sh")
	if !ok {
		t.Skip("this host has no sh")
	}
	c := closure{list: newList(), dirs: nil}
	err := c.add(sh)
	if err == nil {
		t.Skip("sh is static here")
	}
	if !strings.Contains(err.Error(), ".so") || !strings.Contains(err.Error(), "reinstall") {
		t.Errorf("%v does not name the library and what to do", err)
	}
}

func FuzzConf(f *testing.F) {
	f.Add("include /etc/ld.so.conf.d/*.conf\n")
	f.Add("# Multiarch support\n/usr/local/lib/x86_64-linux-gnu\n/lib/x86_64-linux-gnu # c\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, w := range confWords(strings.NewReader(text)) {
			if !filepath.IsAbs(w) && !strings.HasPrefix(w, "include ") {
				t.Errorf("%q is neither a directory nor an include", w)
			}
		}
	})
}
