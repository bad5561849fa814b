package boot

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"tare/agent/guest"
)

// wanted are the modules of a guest, whatever they need before them. A kernel has
// some of them built in; a guest does without the others unless they are needed.
func wanted() []string {
	return []string{
		"virtio_pci", "virtio_console", "vmw_vsock_virtio_transport", // the ways to the host
		"virtio_net", "virtio_blk", "virtiofs", "virtio_rng",
		"virtio_scsi", scsiDisk, "ext4", "xfs", "overlay",
	}
}

// scsiDisk drives the disks of virtio_scsi, and is loaded with it. Its own alias only names a disk on
// the SCSI bus.
const scsiDisk = "sd_mod"

// needed are those without which there is no way to the host.
func needed() []string { return []string{"virtio_pci", "virtio_console"} }

// maxModule bounds one module, unpacked, in bytes: the largest of Debian's kernels
// have 10 MiB.
const maxModule = 64 << 20

// module is a file of lib/modules/VERSION.
type module struct {
	name string // virtio_net
	code []byte // unpacked
	info
}

// info is what a module says of itself.
type info struct {
	after   []string // modules that it needs before it
	aliases []string // of devices that it drives, and of what else is asked for by name
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

// library is a kernel's modules, each read once.
type library struct {
	files map[string]string // by name
	read  map[string]module
}

func openLibrary(dir string) (*library, error) {
	files, err := findModules(dir)
	return &library{files: files, read: map[string]module{}}, err
}

// chain returns a module after all that it needs: nothing if it is built in.
// modules.dep says so too, but a package has none: it is made when a kernel is
// installed.
func (l *library) chain(name string) ([]string, error) {
	var out []string
	visiting := map[string]bool{}
	var visit func(string) error
	visit = func(name string) error {
		file, ok := l.files[name]
		if !ok || slices.Contains(out, name) {
			return nil
		}
		if visiting[name] {
			return fmt.Errorf("the module %s depends on itself", name)
		}
		visiting[name] = true
		m, ok := l.read[name]
		if !ok {
			var err error
			if m, err = readModule(name, file); err != nil {
				return err
			}
			l.read[name] = m
		}
		for _, dep := range m.after {
			if err := visit(dep); err != nil {
				return err
			}
		}
		out = append(out, name)
		return nil
	}
	return out, visit(name)
}

// steps returns in which steps a guest loads the modules.
func (l *library) steps(names []string) ([]guest.Step, error) {
	var out []guest.Step
	for _, n := range names {
		chain, err := l.chain(n)
		if err != nil {
			return nil, err
		}
		if len(chain) == 0 {
			continue
		}
		s := guest.Step{When: guest.Late, Modules: chain}
		if slices.Contains(needed(), n) {
			s.When = guest.Always
		}
		of := n
		switch n {
		case scsiDisk:
			of = "virtio_scsi"
		case guest.FSExt4, guest.FSXFS:
			s.When = guest.FSPrefix + n
		}
		for _, a := range l.read[of].aliases {
			if s.When == guest.Late && strings.HasPrefix(a, guest.DevicePrefix) && !strings.ContainsAny(a, " \n") {
				s.When = a
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// modules returns those that were read, by name.
func (l *library) modules() []module {
	return slices.SortedFunc(maps.Values(l.read), func(a, b module) int { return strings.Compare(a.name, b.name) })
}

func readModule(name, file string) (module, error) {
	f, err := os.Open(file) //nolint:gosec // of the kernel's package
	if err != nil {
		return module{}, err
	}
	defer f.Close() //nolint:errcheck // read only
	m := module{name: name}
	if m.code, err = unpack(file, f); err == nil {
		m.info, err = readInfo(m.code)
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
		return nil, fmt.Errorf("tare cannot read a module compressed as %s; give a kernel whose modules are .ko, .ko.xz, .ko.zst or .ko.gz", ext)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxModule+1))
	if err == nil && len(b) > maxModule {
		err = fmt.Errorf("the module is larger than %d MiB", maxModule>>20)
	}
	return b, err
}

// unxz calls the host's xz: there is no module of Go's for it among ours, and a
// host that packages are unpacked on has the program.
func unxz(r io.Reader) ([]byte, error) {
	if _, err := exec.LookPath("xz"); err != nil {
		return nil, errors.New("the kernel's modules are compressed with xz, and this host lacks that program; apt-get install xz-utils")
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("xz", "--decompress", "--stdout", "--memlimit-decompress=256MiB")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("xz: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}

// readInfo reads the section .modinfo, strings that end with a zero byte:
// modinfo(8), include/linux/module.h.
//
//	alias=virtio:d00000001v*
//	depends=virtio,virtio_ring
//	softdep=pre: crc32c
func readInfo(code []byte) (info, error) {
	f, err := elf.NewFile(bytes.NewReader(code))
	if err != nil {
		return info{}, fmt.Errorf("it is not a kernel module: %w", err)
	}
	s := f.Section(".modinfo")
	if s == nil || s.Size > maxModule {
		return info{}, errors.New("it is not a kernel module: the section .modinfo is missing")
	}
	b, err := s.Data()
	if err != nil {
		return info{}, err
	}
	return parseInfo(b), nil
}

func parseInfo(b []byte) info {
	var out info
	after := func(names []string) {
		for _, n := range names {
			n = strings.ReplaceAll(n, "-", "_")
			if n != "" && !slices.Contains(out.after, n) {
				out.after = append(out.after, n)
			}
		}
	}
	for entry := range bytes.SplitSeq(b, []byte{0}) {
		key, value, _ := strings.Cut(string(entry), "=")
		switch key {
		case "alias":
			out.aliases = append(out.aliases, value)
		case "depends":
			after(strings.Split(value, ","))
		case "softdep":
			if before, ok := strings.CutPrefix(value, "pre:"); ok {
				before, _, _ = strings.Cut(before, "post:")
				after(strings.Fields(before))
			}
		}
	}
	return out
}
