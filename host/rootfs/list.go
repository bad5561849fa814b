package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tare/internal/files"
	"tare/internal/tinyelf"
)

// entry is one file of the tree. At most one of source, data and link is set. Without them
// it is a directory.
type entry struct {
	mode   fs.FileMode // permissions and type
	source string      // host file to copy
	data   []byte
	link   string
}

// list is a tree before it is written, by path without a leading slash.
type list struct{ entries map[string]entry }

func newList() *list { return &list{entries: map[string]entry{}} }

func (l *list) has(path string) bool {
	_, ok := l.entries[strings.TrimPrefix(path, "/")]
	return ok
}

func (l *list) put(path string, e entry) {
	path = strings.TrimPrefix(filepath.Clean(path), "/")
	for dir := filepath.Dir(path); dir != "." && dir != "/"; dir = filepath.Dir(dir) {
		if !l.has(dir) {
			l.entries[dir] = entry{mode: fs.ModeDir | 0o755}
		}
	}
	l.entries[path] = e
}

// base adds what every tree has: the mount points, this binary, the smallest programs, and
// the few files that C libraries look for.
func base(l *list, binary, arch string) error {
	// The usual links of a merged /usr come first, as the host has them, so
	// that /lib64/ld-linux-x86-64.so.2 leads to the one place it is copied to.
	for _, dir := range mergedDirs() {
		if target, err := os.Readlink("/" + dir); err == nil {
			l.put(dir, entry{mode: fs.ModeSymlink, link: strings.TrimPrefix(target, "/")})
			l.put(strings.TrimPrefix(target, "/"), entry{mode: fs.ModeDir | 0o755})
		}
	}
	for _, dir := range []string{"proc", "sys", "dev", "data", "volumes", "run", "etc", "root", "var"} {
		l.put(dir, entry{mode: fs.ModeDir | 0o755})
	}
	for _, dir := range []string{"tmp", "var/tmp"} { // pods do not run as root
		l.put(dir, entry{mode: fs.ModeDir | fs.ModeSticky | 0o777})
	}
	for name, text := range map[string]string{ //nolint:gosec // the names of users, no password
		"etc/passwd":        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
		"etc/group":         "root:x:0:\nnogroup:x:65534:\n",
		"etc/hosts":         "127.0.0.1\tlocalhost\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	} {
		l.put(name, entry{mode: 0o644, data: []byte(text)})
	}
	return programs(l, binary, arch)
}

// programs adds this binary and the smallest programs, for a GOARCH.
func programs(l *list, binary, arch string) error {
	binary, err := filepath.EvalSymlinks(binary)
	if err != nil {
		return err
	}
	l.put("tare", entry{mode: 0o755, source: binary})
	for name, make := range map[string]func(string) ([]byte, error){"tare-hello": tinyelf.HelloFor, "tare-pause": tinyelf.PauseFor} {
		code, err := make(arch)
		if err != nil {
			return err
		}
		l.put(name, entry{mode: 0o755, data: code})
	}
	return nil
}

func (l *list) names() []string {
	out := make([]string, 0, len(l.entries))
	for n := range l.entries {
		out = append(out, n)
	}
	slices.Sort(out) // a directory sorts before its contents
	return out
}

// digest is the SHA-256 over each entry's name, mode, link and content, in the
// order of names; every field is preceded by its length.
func (l *list) digest(ctx context.Context) (string, error) {
	h := sha256.New()
	for _, name := range l.names() {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		e := l.entries[name]
		content := e.data
		if e.source != "" {
			var err error
			if content, err = files.Sum(e.source); err != nil {
				return "", err
			}
		}
		for _, field := range []string{name, e.mode.String(), e.link, string(content)} {
			_, _ = fmt.Fprintf(h, "%d:%s", len(field), field) // a hash never fails
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// whole reports whether the tree at dir has every entry with its size. A rename may reach
// the disk before the contents do, and a loss of power then leaves empty files. whole finds
// them without reading a hundred megabytes.
func (l *list) whole(dir string) bool {
	for name, e := range l.entries {
		st, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || st.Mode().Type() != e.mode.Type() {
			return false
		}
		want := int64(len(e.data))
		if e.source != "" {
			src, err := os.Stat(e.source)
			if err != nil {
				return false
			}
			want = src.Size()
		}
		if e.mode.IsRegular() && st.Size() != want {
			return false
		}
	}
	return len(l.entries) > 0
}

// write makes the tree in dir, an empty directory.
func (l *list) write(ctx context.Context, dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // sandboxes with other users read it
		return err
	}
	for _, name := range l.names() {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, path := l.entries[name], filepath.Join(dir, name)
		var err error
		switch {
		case e.mode.IsDir():
			if err = os.Mkdir(path, 0o755); err == nil { //nolint:gosec // sandboxes with other users read it
				err = os.Chmod(path, e.mode&(fs.ModePerm|fs.ModeSticky))
			}
		case e.mode.Type() == fs.ModeSymlink:
			err = os.Symlink(e.link, path)
		default:
			err = writeFile(path, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, e entry) (err error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // inside the new tree
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := out.Chmod(e.mode.Perm()); err != nil {
		return err
	}
	if e.source == "" {
		_, err = out.Write(e.data)
		return err
	}
	in, err := os.Open(e.source)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	_, err = io.Copy(out, in) // copy_file_range(2) inside
	return err
}
