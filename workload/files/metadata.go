package files

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// operation is one that metadata applies to every file, or to every directory.
type operation struct {
	name, about string
	do          func(w *worker, i int) error
	dirs        bool // i is a directory
}

// operations returns all operations in the order in which a round makes them.
func operations() []operation {
	return []operation{
		{name: "create", about: "files created, written and closed", do: (*worker).create},
		{name: "open", about: "files opened and closed", do: (*worker).open},
		{name: "stat", about: "stat calls", do: (*worker).stat},
		{name: "missing", about: "stat calls for names that do not exist", do: (*worker).missing},
		{name: "readdir", about: "directories opened, read and closed", do: (*worker).readdir, dirs: true},
		{name: "mmap", about: "files opened, mapped, read and closed", do: (*worker).mmap},
		{name: "fsync", about: "files opened, changed in one byte, synchronized and closed", do: (*worker).fsync},
		{name: "rename", about: "files renamed", do: (*worker).rename},
		{name: "unlink", about: "files removed", do: (*worker).unlink},
	}
}

// chosen returns the operations that a list names, in the order of operations.
func chosen(list string) ([]operation, error) {
	all := operations()
	if list == "all" {
		return all, nil
	}
	if strings.TrimSpace(list) == "" {
		return nil, fmt.Errorf("operations is empty; write all, or some of %s, joined by commas", strings.Join(nameAll(all), ","))
	}
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.ContainsFunc(all, func(o operation) bool { return o.name == name }) {
			return nil, fmt.Errorf("operations = %s: %q is not one; write all, or some of %s, joined by commas", list, name, strings.Join(nameAll(all), ","))
		}
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("operations = %s names %s twice", list, name)
		}
		names = append(names, name)
	}
	return slices.DeleteFunc(all, func(o operation) bool { return !slices.Contains(names, o.name) }), nil
}

func nameAll(ops []operation) []string {
	var out []string
	for _, o := range ops {
		out = append(out, o.name)
	}
	return out
}

// metadata is the load of operations on a tree. A warm load has one tree for all operations. A cold load
// has a tree for each operation, which nothing has read before.
type metadata struct {
	config
	ops   []operation
	trees []*populated // as many as ops, or one
	bufs  [][]byte     // of the threads
}

// populated is a tree with the state of its files.
type populated struct {
	*tree
	present bool
	paths   [2][]string // names that files have, and get with the next rename
	letters [2]string
	width   int
}

func newMetadata(c config) (*metadata, error) {
	ops, err := chosen(c.Operations)
	if err != nil {
		return nil, err
	}
	m := &metadata{config: c, ops: ops}
	for range c.Threads {
		m.bufs = append(m.bufs, make([]byte, 32<<10)) // as the C library's readdir has
	}
	names := []string{"tree"}
	if c.Cold {
		names = nameAll(ops)
	}
	for _, name := range names {
		p := &populated{tree: newTree(filepath.Join(c.Dir, name), c), letters: [2]string{"f", "r"}, width: c.Width}
		for k, letter := range p.letters {
			for i := range c.Files {
				p.paths[k] = append(p.paths[k], p.path(letter, i))
			}
		}
		p.present = ops[0].name != "create" || c.Cold && name != "create"
		m.trees = append(m.trees, p)
	}
	return m, nil
}

// on is the tree of an operation.
func (m *metadata) on(op int) *populated { return m.trees[min(op, len(m.trees)-1)] }

func (m *metadata) layout() error {
	for _, t := range m.trees {
		if err := t.makeDirs(); err != nil {
			return err
		}
		if t.present {
			if err := t.makeFiles(); err != nil {
				return err
			}
		}
	}
	return nil
}

// round applies every operation to the whole tree.
func (m *metadata) round(rec *recorder) error {
	for k, op := range m.ops {
		t := m.on(k)
		switch {
		case op.name == "create" && t.present: // unlink was not asked for
			for _, path := range t.paths[0] {
				if err := os.Remove(path); err != nil {
					return err
				}
			}
		case op.name != "create" && !t.present:
			if err := t.makeFiles(); err != nil {
				return err
			}
			t.present = true
		}
		if err := m.phase(op, t, rec); err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
		switch op.name {
		case "create":
			t.present = true
		case "rename":
			t.paths[0], t.paths[1] = t.paths[1], t.paths[0]
			t.letters[0], t.letters[1] = t.letters[1], t.letters[0]
		case "unlink":
			t.present = false
			if t.letters[0] != "f" { // new files have their first names
				t.paths[0], t.paths[1] = t.paths[1], t.paths[0]
				t.letters = [2]string{"f", "r"}
			}
		}
	}
	return nil
}

// worker is one thread in one phase.
type worker struct {
	*populated
	buf []byte
	err error
}

// phase applies one operation to the whole tree. The threads divide the files among themselves.
func (m *metadata) phase(op operation, t *populated, rec *recorder) error {
	n := len(t.paths[0])
	if op.dirs {
		n = len(t.dirs)
	}
	workers := make([]*worker, m.Threads)
	begin := make(chan struct{})
	var ready, wg sync.WaitGroup
	var base time.Time
	ends := make([]time.Duration, m.Threads)
	for k := range workers {
		w := &worker{populated: t, buf: m.bufs[k]}
		workers[k] = w
		hist := rec.histogram(op.name, k)
		ready.Add(1)
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			<-begin
			at := time.Since(base)
			for i := k; i < n && w.err == nil; i += m.Threads {
				w.err = op.do(w, i)
				now := time.Since(base)
				_ = hist.RecordValue(min(int64(now-at), histogramMax))
				at = now
			}
			ends[k] = at
		})
	}
	ready.Wait()
	base = time.Now()
	close(begin)
	wg.Wait()
	for _, w := range workers {
		if w.err != nil {
			return w.err
		}
	}
	rec.add(op.name, int64(n), slices.Max(ends))
	return nil
}

// check compares what the operations left with what was made.
func (m *metadata) check() error {
	for _, t := range m.trees {
		if !t.present {
			if err := expect(t.top, "", 0, 0); err != nil {
				return err
			}
			if m.Cold {
				continue
			}
			if err := t.makeFiles(); err != nil {
				return err
			}
		}
		if err := t.verify(t.letters[0]); err != nil {
			return err
		}
	}
	return nil
}

// use opens a file, and closes it after f.
func (w *worker) use(path string, flags int, f func(fd int) error) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	err = f(fd)
	if err2 := unix.Close(fd); err == nil && err2 != nil {
		return &os.PathError{Op: "close", Path: path, Err: err2}
	}
	if err != nil {
		return &os.PathError{Op: "use", Path: path, Err: err}
	}
	return nil
}

func (w *worker) create(i int) error {
	return w.use(w.paths[0][i], unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, func(fd int) error {
		for b := w.content(i); len(b) > 0; {
			n, err := unix.Write(fd, b)
			if err != nil {
				return err
			}
			b = b[n:]
		}
		return nil
	})
}

func (w *worker) open(i int) error {
	return w.use(w.paths[0][i], unix.O_RDONLY, func(int) error { return nil })
}

func (w *worker) sized(st *unix.Stat_t) error {
	if st.Size != w.size {
		return fmt.Errorf("it has %d bytes, but %d were written", st.Size, w.size)
	}
	return nil
}

func (w *worker) stat(i int) error {
	var st unix.Stat_t
	err := unix.Stat(w.paths[0][i], &st)
	if err == nil {
		err = w.sized(&st)
	}
	if err != nil {
		return &os.PathError{Op: "stat", Path: w.paths[0][i], Err: err}
	}
	return nil
}

func (w *worker) missing(i int) error {
	var st unix.Stat_t
	err := unix.Stat(w.paths[1][i], &st)
	if err == nil {
		return fmt.Errorf("%s exists, but was not made", w.paths[1][i])
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return &os.PathError{Op: "stat", Path: w.paths[1][i], Err: err}
}

// readdir counts the entries of a directory (getdents64(2)).
func (w *worker) readdir(i int) error {
	found := 0
	err := w.use(w.dirs[i], unix.O_RDONLY|unix.O_DIRECTORY, func(fd int) error {
		for {
			n, err := unix.Getdents(fd, w.buf)
			if n <= 0 || err != nil {
				return err
			}
			for b := w.buf[:n]; len(b) > 0; {
				e := (*unix.Dirent)(unsafe.Pointer(&b[0])) //nolint:gosec // as the kernel wrote it
				if name := b[unsafe.Offsetof(e.Name):]; !bytes.HasPrefix(name, []byte(".\x00")) && !bytes.HasPrefix(name, []byte("..\x00")) {
					found++
				}
				b = b[e.Reclen:]
			}
		}
	})
	if want := w.entries(i, w.width); err == nil && found != want {
		return fmt.Errorf("%s has %d entries, but %d were made", w.dirs[i], found, want)
	}
	return err
}

func (w *worker) mmap(i int) error {
	return w.use(w.paths[0][i], unix.O_RDONLY, func(fd int) error {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if err := w.sized(&st); err != nil {
			return err
		}
		b, err := unix.Mmap(fd, 0, int(w.size), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		if !bytes.Equal(b, w.content(i)) {
			err = errors.New("its content is not what was written")
		}
		return errors.Join(err, unix.Munmap(b))
	})
}

func (w *worker) fsync(i int) error {
	return w.use(w.paths[0][i], unix.O_WRONLY, func(fd int) error {
		if _, err := unix.Pwrite(fd, w.content(i)[:1], 0); err != nil {
			return err
		}
		return unix.Fsync(fd)
	})
}

func (w *worker) rename(i int) error {
	if err := unix.Rename(w.paths[0][i], w.paths[1][i]); err != nil { // os.Rename looks for a directory first
		return &os.LinkError{Op: "rename", Old: w.paths[0][i], New: w.paths[1][i], Err: err}
	}
	return nil
}

func (w *worker) unlink(i int) error {
	if err := unix.Unlink(w.paths[0][i]); err != nil {
		return &os.PathError{Op: "unlink", Path: w.paths[0][i], Err: err}
	}
	return nil
}
