package boot

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// wanted are the modules of a guest, whatever they need before them. A kernel has
// some of them built in; a guest does without the others unless they are needed.
func wanted() []string {
	return []string{
		"virtio_pci", "virtio_console", // the way to the host
		"virtio_net", "virtio_blk", "virtiofs", "ext4", "virtio_rng",
		"overlay", // for workloads
	}
}

// needed are those without which there is no way to the host.
func needed() []string { return []string{"virtio_pci", "virtio_console"} }

// maxModule bounds one module, unpacked, in bytes: the largest of Debian's kernels
// have 10 MiB.
const maxModule = 64 << 20

// module is a file of lib/modules/VERSION.
type module struct {
	name  string // virtio_net
	code  []byte // unpacked
	after []string
}

// moduleName is the name that a file's module has: the kernel takes - for _.
func moduleName(file string) (string, bool) {
	stem, _, ok := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(stem, "-", "_"), ok
}

// findModules maps the names of modules to their files below dir, a folder
// lib/modules/VERSION.
func findModules(dir string) (map[string]string, error) {
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name, ok := moduleName(p); ok && d.Type().IsRegular() {
			out[name] = p
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // all built in
	}
	return out, err
}

// builtIn reads modules.builtin, the files that modules would have had:
//
//	kernel/fs/ext4/ext4.ko
func builtIn(r io.Reader) (map[string]bool, error) {
	b, err := io.ReadAll(io.LimitReader(r, 4<<20))
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for f := range strings.FieldsSeq(string(b)) {
		if name, ok := moduleName(f); ok {
			out[name] = true
		}
	}
	return out, nil
}

// order returns the wanted modules with all that they need, each after what it
// needs. modules.dep says so too, but a package has none: it is made when a kernel
// is installed.
func order(files map[string]string, names []string) ([]module, error) {
	var out []module
	state := map[string]int{} // 1: being visited, 2: done
	var visit func(string) error
	visit = func(name string) error {
		file, ok := files[name]
		if !ok || state[name] == 2 {
			return nil
		}
		if state[name] == 1 {
			return fmt.Errorf("the module %s needs itself", name)
		}
		state[name] = 1
		m, err := readModule(name, file)
		if err != nil {
			return err
		}
		for _, dep := range m.after {
			if err := visit(dep); err != nil {
				return err
			}
		}
		state[name] = 2
		out = append(out, m)
		return nil
	}
	for _, n := range names {
		if err := visit(n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func readModule(name, file string) (module, error) {
	f, err := os.Open(file) //nolint:gosec // of the kernel's package
	if err != nil {
		return module{}, err
	}
	defer f.Close() //nolint:errcheck // read only
	m := module{name: name}
	if m.code, err = unpack(file, f); err == nil {
		m.after, err = depends(m.code)
	}
	if err != nil {
		return module{}, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// unpack reads a module; distributions compress them in three ways.
func unpack(file string, r io.Reader) ([]byte, error) {
	switch ext := path.Ext(file); ext {
	case ".ko":
	case ".xz":
		return unxz(r)
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(maxModule), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	case ".gz":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = z
	default:
		return nil, fmt.Errorf("a module compressed as %s is not understood; give a kernel whose modules are .ko, .ko.xz, .ko.zst or .ko.gz", ext)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxModule+1))
	if err == nil && len(b) > maxModule {
		err = fmt.Errorf("the module has more than %d MiB", maxModule>>20)
	}
	return b, err
}

// unxz calls the host's xz: there is no module of Go's for it among ours, and a
// host that packages are unpacked on has the program.
func unxz(r io.Reader) ([]byte, error) {
	if _, err := exec.LookPath("xz"); err != nil {
		return nil, errors.New("the kernel's modules are compressed by xz, which this host lacks; apt-get install xz-utils")
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("xz", "--decompress", "--stdout", "--memlimit-decompress=256MiB")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("xz: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}

// depends reads what a module needs before it from its section .modinfo, strings
// that end with a zero byte: modinfo(8), include/linux/module.h.
//
//	depends=virtio,virtio_ring
//	softdep=pre: crc32c
func depends(code []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(code))
	if err != nil {
		return nil, fmt.Errorf("it is no module: %w", err)
	}
	s := f.Section(".modinfo")
	if s == nil || s.Size > maxModule {
		return nil, errors.New("it is no module: the section .modinfo is missing")
	}
	info, err := s.Data()
	if err != nil {
		return nil, err
	}
	return parseDepends(info), nil
}

func parseDepends(info []byte) []string {
	var out []string
	add := func(names []string) {
		for _, n := range names {
			n = strings.ReplaceAll(n, "-", "_")
			if n != "" && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	for entry := range bytes.SplitSeq(info, []byte{0}) {
		key, value, _ := strings.Cut(string(entry), "=")
		switch key {
		case "depends":
			add(strings.Split(value, ","))
		case "softdep":
			if before, ok := strings.CutPrefix(value, "pre:"); ok {
				before, _, _ = strings.Cut(before, "post:")
				add(strings.Fields(before))
			}
		}
	}
	return out
}
