package rootfs

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// closure adds programs and all files that they need to a list. It searches libraries as
// ld.so(8) does: DT_RPATH or DT_RUNPATH, then the directories of /etc/ld.so.conf, then the
// built-in ones.
type closure struct {
	list *list
	dirs []string // of the host's libraries
}

// library is a search for the soname that an ELF file needs.
type library struct {
	name  string
	paths []string // run paths of the file that needs it
	class elf.Class
	arch  elf.Machine
}

// add puts a program or library, its links and its closure into the list.
func (c *closure) add(path string) error {
	todo := []string{path}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		real, fresh, err := c.place(p)
		if err != nil {
			return err
		}
		if !fresh {
			continue
		}
		needed, err := c.needs(real)
		if err != nil {
			return fmt.Errorf("%s: %w", real, err)
		}
		todo = append(todo, needed...)
	}
	return nil
}

// addLibraries puts what a program needs into the list, but not the program.
func (c *closure) addLibraries(program string) error {
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		return err
	}
	needed, err := c.needs(program)
	if err != nil {
		return err
	}
	for _, p := range needed {
		if err := c.add(p); err != nil {
			return err
		}
	}
	return nil
}

// place puts the file at a host path into the list, with the symbolic links on the way to
// it, and returns its real path. It resolves links of directories (except those of base) and
// keeps links of files, because programs are called and libraries are loaded by these names.
func (c *closure) place(path string) (real string, fresh bool, err error) {
	for range 40 { // the kernel's own bound: path_resolution(7)
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", false, err
		}
		at := filepath.Join(dir, filepath.Base(path))
		c.link(filepath.Dir(path), dir)
		target, err := os.Readlink(at)
		if err != nil { // not a link
			st, err := os.Stat(at)
			if err != nil {
				return "", false, err
			}
			if c.list.has(at) {
				return at, false, nil
			}
			c.list.put(at, entry{mode: st.Mode().Perm() | 0o444, source: at})
			return at, true, nil
		}
		c.list.put(at, entry{mode: fs.ModeSymlink, link: target})
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		path = target
	}
	return "", false, fmt.Errorf("too many symbolic links at %s", path)
}

// link makes dir a link to real in the tree if the host reaches real by a link that base has
// not made, so that a program has the same path as on the host.
func (c *closure) link(dir, real string) {
	if dir == real || c.list.has(dir) {
		return
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(dir, "/"), "/")
	if c.list.entries[top].mode.Type() == fs.ModeSymlink {
		return
	}
	c.list.put(dir, entry{mode: fs.ModeSymlink, link: real})
}

// needs lists the host paths that the file at path needs.
func (c *closure) needs(path string) ([]string, error) {
	f, err := os.Open(path) //nolint:gosec // a host tool, opened for reading
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if strings.HasPrefix(string(magic), "#!") {
		return interpreter(f)
	}
	if string(magic) != elf.ELFMAG {
		return nil, nil // a data file
	}
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, fmt.Errorf("cannot read it as an ELF file: %w", err)
	}
	var out []string
	for _, p := range e.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz > 4096 {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			return nil, fmt.Errorf("its interpreter's name: %w", err)
		}
		out = append(out, strings.TrimRight(string(b), "\x00"))
	}
	return c.libraries(e, path, out)
}

func (c *closure) libraries(e *elf.File, path string, out []string) ([]string, error) {
	names, err := e.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("its libraries: %w", err)
	}
	l := library{class: e.Class, arch: e.Machine, paths: runPaths(e, filepath.Dir(path))}
	for _, l.name = range names {
		p, ok := c.find(l)
		if !ok {
			return nil, fmt.Errorf("it needs %s, which the host lacks; reinstall the package of that library", l.name)
		}
		out = append(out, p)
	}
	// glibc loads libgcc_s by itself for pthread_cancel and pthread_exit, and
	// aborts without it ("libgcc_s.so.1 must be installed"). Its ELF header does not say so.
	if strings.HasPrefix(filepath.Base(path), "libc.so.") {
		l.name = "libgcc_s.so.1"
		if p, ok := c.find(l); ok {
			out = append(out, p)
		}
	}
	return out, nil
}

// interpreter reads the #! line of a script: execve(2). "/usr/bin/env NAME"
// needs NAME as well.
func interpreter(f io.ReadSeeker) ([]string, error) {
	if _, err := f.Seek(2, io.SeekStart); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil, errors.New("the #! line names no interpreter")
	}
	out := words[:1]
	if filepath.Base(words[0]) == "env" && len(words) > 1 {
		p, ok := Lookup(words[1])
		if !ok {
			return nil, fmt.Errorf("its #! line needs %s, which the host lacks; install it", words[1])
		}
		out = append(out, p)
	}
	return out, nil
}

// runPaths returns the run paths of e. It ignores unreadable ones: then a library is found
// elsewhere, or named as missing.
func runPaths(e *elf.File, origin string) []string {
	var out []string
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		values, _ := e.DynString(tag)
		for _, v := range values {
			for p := range strings.SplitSeq(v, ":") {
				p = strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin).Replace(p)
				if filepath.IsAbs(p) {
					out = append(out, filepath.Clean(p))
				}
			}
		}
	}
	return out
}

// find returns the first library of that name for the same machine.
func (c *closure) find(l library) (string, bool) {
	if strings.Contains(l.name, "/") {
		return l.name, true
	}
	for _, dirs := range [][]string{l.paths, c.dirs} {
		for _, dir := range dirs {
			p := filepath.Join(dir, l.name)
			if e, err := elf.Open(p); err == nil {
				same := e.Class == l.class && e.Machine == l.arch
				_ = e.Close()
				if same {
					c.unusual(dir)
					return p, true
				}
			}
		}
	}
	return "", false
}

// unusual is called with the directory of each library. The loader in the tree searches only
// /lib and /usr/lib without a cache. For other directories it needs the host's ld.so.cache;
// its entries for files that the tree lacks are harmless.
func (c *closure) unusual(dir string) {
	const cache = "/etc/ld.so.cache"
	if strings.HasPrefix(dir, "/lib") || strings.HasPrefix(dir, "/usr/lib") || c.list.has(cache) {
		return
	}
	if _, err := os.Stat(cache); err == nil {
		c.list.put(cache, entry{mode: 0o644, source: cache})
	}
}

// hostLibraryDirs returns the directories of ld.so.conf and the built-in ones.
func hostLibraryDirs(conf string) []string {
	return append(confDirs(conf, 0), "/lib", "/usr/lib", "/lib64", "/usr/lib64")
}

// confDirs reads a configuration file of ldconfig(8): a directory or "include PATTERN" on
// each line, comments from #. A file that cannot be read counts as empty, as for ldconfig.
func confDirs(conf string, depth int) []string {
	f, err := os.Open(conf) //nolint:gosec // the host's configuration, opened for reading
	if err != nil || depth > 8 {
		return nil
	}
	defer f.Close() //nolint:errcheck // read only
	var out []string
	for _, word := range confWords(f) {
		if pattern, ok := strings.CutPrefix(word, "include "); ok {
			if !filepath.IsAbs(pattern) {
				pattern = filepath.Join(filepath.Dir(conf), pattern)
			}
			files, _ := filepath.Glob(pattern)
			for _, f := range files {
				out = append(out, confDirs(f, depth+1)...)
			}
			continue
		}
		out = append(out, word)
	}
	return out
}

// confWords returns the directories and "include PATTERN" lines of such a file. It reads at
// most 64 KiB.
func confWords(r io.Reader) []string {
	var out []string
	s := bufio.NewScanner(io.LimitReader(r, 64<<10))
	for s.Scan() {
		line, _, _ := strings.Cut(s.Text(), "#")
		words := strings.Fields(line)
		switch {
		case len(words) >= 2 && words[0] == "include":
			for _, w := range words[1:] {
				out = append(out, "include "+w)
			}
		case len(words) == 1 && filepath.IsAbs(words[0]):
			out = append(out, filepath.Clean(words[0]))
		}
	}
	return out
}
