// Package mountinfo reads /proc/PID/mountinfo.
//
// The data path: 1. Parse takes the file's text as an io.Reader and returns one
// Mount a line, bounded in lines and in line length; 2. host/cgroup finds
// the control group hierarchies in them; 3. host/state finds mounts that a
// dead run left behind.
//
// A line looks like this (proc_pid_mountinfo(5)):
//
//	36 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
package mountinfo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of one file. The kernel's default limit is 100,000 mounts a namespace
// (fs.mount-max); an overlay's options are the longest lines, and mount options
// fit in one page each.
const (
	maxMounts = 100_000
	maxLine   = 64 << 10
)

// Mount is one line, with the kernel's octal escapes (\040 for a space) undone.
type Mount struct {
	Root   string // the directory of the file system that is mounted
	Point  string // where, relative to the process's root
	FSType string
	Source string
	Super  []string // per-superblock options, such as rw, cpu, cpuacct
}

// Under tells whether the mount point is dir itself or lies below it.
func (m Mount) Under(dir string) bool {
	return m.Point == dir || strings.HasPrefix(m.Point, strings.TrimSuffix(dir, "/")+"/")
}

// Self reads this process's own mounts.
func Self() ([]Mount, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w; is /proc mounted?", err)
	}
	defer func() { _ = f.Close() }()
	return Parse(f)
}

// Parse reads mountinfo text. It fails on a line that is not of the documented
// form, naming its number: guessing on would hide mounts from the caller.
func Parse(r io.Reader) ([]Mount, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 4096), maxLine)
	var out []Mount
	for n := 1; sc.Scan(); n++ {
		if len(out) == maxMounts {
			return nil, fmt.Errorf("mountinfo: more than %d mounts", maxMounts)
		}
		m, err := parseLine(sc.Text())
		if err != nil {
			return nil, fmt.Errorf("mountinfo line %d: %w", n, err)
		}
		out = append(out, m)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("mountinfo: %w", err)
	}
	return out, nil
}

func parseLine(line string) (Mount, error) {
	// Fields are separated by single spaces, and a source may be empty, so
	// strings.Fields would shift what follows.
	f := strings.Split(line, " ")
	const fixed = 6 // id, parent, device, root, point, options; then optional fields
	sep := -1
	for i := fixed; i < len(f); i++ {
		if f[i] == "-" {
			sep = i
			break
		}
	}
	if sep < 0 || len(f) < sep+4 {
		return Mount{}, errors.New("too few fields")
	}
	m := Mount{
		Root:   unescape(f[3]),
		Point:  unescape(f[4]),
		FSType: unescape(f[sep+1]),
		Source: unescape(f[sep+2]),
		// Some file systems print spaces in their options unescaped.
		Super: strings.Split(strings.Join(f[sep+3:], " "), ","),
	}
	if !filepath.IsAbs(m.Point) {
		return Mount{}, fmt.Errorf("mount point %q is not absolute", m.Point)
	}
	return m, nil
}

// unescape undoes \ooo, which the kernel writes for space, tab, newline and
// backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	octal := func(c byte) bool { return c >= '0' && c <= '7' }
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && s[i+1] <= '3' && octal(s[i+1]) && octal(s[i+2]) && octal(s[i+3]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
