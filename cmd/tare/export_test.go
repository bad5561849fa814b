package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
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
	if err := writeWhole(path, say("old", nil)); err != nil {
		t.Fatal(err)
	}
	check("old")
	if err := writeWhole(path, say("half", context.Canceled)); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	check("old")
	link := filepath.Join(dir, "link")
	if err := os.Symlink("x", link); err != nil {
		t.Fatal(err)
	}
	if err := writeWhole(link, say("new", nil)); err != nil {
		t.Fatal(err)
	}
	check("new")
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("beside the file and the link: %v, %v", left, err)
	}
}
