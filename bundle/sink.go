package bundle

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tare/param"
)

// sink takes the members of an archive.
type sink interface {
	begin(m *Manifest) error
	take(x Member, r io.Reader) error // reads r to its end
}

// rootSink writes below a root: all members, or only one.
type rootSink struct {
	root *os.Root
	dir  string
	only string
}

func (s *rootSink) begin(m *Manifest) error {
	need := m.Bytes()
	if s.only != "" {
		need = 0
		for _, x := range m.Members {
			if x.Name == s.only {
				need = x.Size
			}
		}
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return nil //nolint:nilerr // then a full disk is found when it is full
	}
	if room := st.Bavail * uint64(st.Bsize); need > 0 && uint64(need) > room { //nolint:gosec // sizes are not negative
		return fmt.Errorf("it unpacks to %s, but %s has only %s free; free some space, or name another directory with TMPDIR=",
			param.AboutSize(need), filepath.Dir(s.dir), param.AboutSize(int64(min(room, 1<<62))))
	}
	return nil
}

func (s *rootSink) take(x Member, r io.Reader) (err error) {
	if s.only != "" && x.Name != s.only {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	if d := path.Dir(x.Name); d != "." {
		if err := s.root.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	f, err := s.root.OpenFile(x.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
