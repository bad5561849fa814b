package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "below", "b")
	if err := os.WriteFile(a, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	// FIPS 180-2, B.1.
	if h, err := Hash(a); h != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" || err != nil {
		t.Errorf("the hash is %s, %v", h, err)
	}
	if err := os.Mkdir(filepath.Dir(b), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b, []byte("longer than what comes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Copy(b, a, 0o600); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(b); string(got) != "abc" || err != nil {
		t.Errorf("the copy is %q, %v", got, err)
	}
	if n, err := Size(dir); n != 6 || err != nil {
		t.Errorf("the size is %d, %v", n, err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if !Exists(filepath.Join(dir, "link")) || Exists(filepath.Join(dir, "nowhere")) {
		t.Error("Exists is wrong")
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write := func(text string, fail error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, fail)
		}
	}
	if err := Replace(path, ".new-", 0o640, write("first", nil)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := Replace(path, ".new-", 0o640, write("second", broken)); !errors.Is(err, broken) {
		t.Errorf("a failed writing says %v", err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "first" {
		t.Errorf("after a failure there is %q, %v", got, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", st.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}
