package vm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCacheHitDoesNotWait: neither for another name that is being made, nor for one
// that cannot be removed.
func TestCacheHitDoesNotWait(t *testing.T) {
	c := folder{dir: t.TempDir(), most: 1 << 20}
	write := func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) }
	if _, err := c.get(t.Context(), "a", write); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // whoever has to wait fails
	_, err := c.get(t.Context(), "b", func(path string) error {
		if _, err := c.get(ctx, "a", write); err != nil {
			t.Errorf("one that is there: %v", err)
		}
		if _, err := c.get(ctx, "c", write); err != nil {
			t.Errorf("another one that is missing: %v", err)
		}
		if _, err := c.get(ctx, "b", write); !errors.Is(err, context.Canceled) {
			t.Errorf("the same one: %v", err)
		}
		return write(path) // c's tidying up has left it alone
	})
	if err != nil {
		t.Error(err)
	}
	left := Cached{Kind: CachedLeftover, Path: filepath.Join(c.dir, partly+"b"), file: "b"}
	if err := os.WriteFile(left.Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if gone, err := left.drop(false); err != nil || !gone {
		t.Errorf("what a killed process left of it: %v, %v", gone, err)
	}
}

// TestIdentity: trees of one size and one time are told apart by what is in them, and a
// program that was replaced in place is seen.
func TestIdentity(t *testing.T) {
	root := t.TempDir()
	at := time.Unix(1, 0)
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := errors.Join(os.WriteFile(path+"~", []byte(text), 0o755), os.Chtimes(path+"~", at, at), os.Rename(path+"~", path)); err != nil {
			t.Fatal(err)
		}
	}
	put("tare", "one")
	put("other", "same")
	first, err := known(root)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := known(root); err != nil || again != first {
		t.Errorf("%+v %v", again, err)
	}
	put("tare", "two")
	second, err := known(root)
	if err != nil || second.key == first.key || second.size != first.size {
		t.Errorf("the program was replaced: %+v %v", second, err)
	}
	put("tare", "one")
	if back, err := known(root); err != nil || back.key != first.key {
		t.Errorf("the same again: %+v %v", back, err)
	}
	put("other", "else")
	if key, _, err := identity(root); err != nil || key == first.key {
		t.Errorf("another content: %v", err)
	}
}

func TestProcessor(t *testing.T) {
	const one = "processor\t: 0\nmodel name\t: A\ncpu MHz\t\t: 2000.1\nmicrocode\t: 0x1\nflags\t\t: fpu vme\n\nprocessor\t: 1\nmodel name\t: B\n"
	if got := processor(one); got != "A\n0x1\nfpu vme" {
		t.Errorf("%q", got)
	}
	if processor(strings.Replace(one, "2000.1", "900", 1)) != processor(one) || processor(strings.Replace(one, "0x1", "0x2", 1)) == processor(one) {
		t.Error("the clock rate counts, or the microcode does not")
	}
}

func TestSweep(t *testing.T) {
	path := filepath.Join(t.TempDir(), verdictFile)
	old := time.Now().Add(-time.Hour)
	for _, p := range []string{path, path + ".1", path + ".2"} {
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if p != path+".2" {
			if err := os.Chtimes(p, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := sweep(path); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(path + "*"); err != nil || len(left) != 2 || left[1] != path+".2" {
		t.Errorf("left: %v %v", left, err)
	}
}
