package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWriteWhole: a file is the new one or the old one, and nothing lies beside.
func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	say := func(s string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, werr := io.WriteString(w, s)
			return errors.Join(werr, err)
		}
	}
	check := func(want string) {
		t.Helper()
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("the file has %q, %v; want %q", b, err, want)
		}
	}
	if err := writeWhole(t.Context(), path, say("old", nil)); err != nil {
		t.Fatal(err)
	}
	check("old")
	if err := writeWhole(t.Context(), path, say("half", context.Canceled)); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	check("old")
	link := filepath.Join(dir, "link")
	if err := os.Symlink("x", link); err != nil {
		t.Fatal(err)
	}
	if err := writeWhole(t.Context(), link, say("new", nil)); err != nil {
		t.Fatal(err)
	}
	check("new")
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	// As /dev/stdout is of a program that was started without one.
	broken := filepath.Join(dir, "broken")
	if err := os.Symlink("none", broken); err != nil {
		t.Fatal(err)
	}
	if err := writeWhole(t.Context(), broken, say("new", nil)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link to nothing: %v", err)
	}
	if to, err := os.Readlink(broken); err != nil || to != "none" {
		t.Errorf("a link to nothing was replaced: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 {
		t.Errorf("beside the file and the links: %v, %v", left, err)
	}
}

// TestReplaceFile: a FIFO under the name of a report is replaced, and nobody waits for it.
func TestReplaceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(path, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "new" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestPipeNobodyReads: an interrupt ends the wait for a reader, and for one that reads no more.
func TestPipeNobodyReads(t *testing.T) {
	for _, name := range []string{"no reader", "a reader that does not read"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pipe")
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			if name != "no reader" {
				r, err := os.OpenFile(path, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = r.Close() }()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			done := make(chan error, 1)
			go func() {
				done <- writeWhole(ctx, path, func(w io.Writer) error { _, err := w.Write(make([]byte, 1<<20)); return err })
			}()
			select {
			case err := <-done:
				if err == nil {
					t.Error("it was written")
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it still waits")
			}
		})
	}
}
