package rootfs

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// HostFile is one file of a closure: a copy of Source, or a symbolic link.
type HostFile struct {
	Path   string // absolute, in the tree
	Mode   fs.FileMode
	Source string // on the host; "" for a link
	Link   string // target of a symbolic link
}

// Closure returns the files of the host's programs and of all that they need to run, sorted
// by path, without folders and without the links of a merged /usr. missing lists the
// programs that the host lacks.
func Closure(programs []string) (files []HostFile, missing []string, err error) {
	l := newList()
	for _, dir := range mergedDirs() {
		if target, err := os.Readlink("/" + dir); err == nil {
			l.put(dir, entry{mode: fs.ModeSymlink, link: strings.TrimPrefix(target, "/")})
		}
	}
	c := closure{list: l, dirs: hostLibraryDirs("/etc/ld.so.conf")}
	for _, p := range programs {
		path, ok := Lookup(p)
		if !ok {
			missing = append(missing, p)
			continue
		}
		if err := c.add(path); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", p, err)
		}
	}
	for _, name := range l.names() {
		e := l.entries[name]
		if e.mode.IsDir() || (e.link != "" && !strings.Contains(name, "/")) {
			continue
		}
		files = append(files, HostFile{Path: "/" + name, Mode: e.mode, Source: e.source, Link: e.link})
	}
	return files, missing, nil
}

func mergedDirs() []string { return []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} }
