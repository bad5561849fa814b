package guest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// OrderFile lists, in the folder of modules, the steps of loading, one on each line: when,
// and the modules in order.
//
//	always virtio_ring virtio virtio_console
//	virtio:d00000001v* virtio_ring virtio failover net_failover virtio_net
//	late overlay
const OrderFile = "order"

// ModuleSuffix ends the names of modules' files.
const ModuleSuffix = ".ko"

// Step is a module and those that must be loaded before it.
type Step struct {
	// When is Always, Late, the alias of a virtio device, or that of a file system: a machine that
	// has neither skips the step. Without hardware virtualization each module costs 20 ms of the boot.
	When    string
	Modules []string // names
}

// When a step runs, if not for a device.
const (
	Always = "always" // at boot
	Late   = "late"   // when the machine is set up

	DevicePrefix = "virtio:" // begins the aliases of devices
	FSPrefix     = "fs-"     // begins the aliases of file systems: MODULE_ALIAS_FS
)

// FormatOrder writes an OrderFile.
func FormatOrder(steps []Step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintln(&b, s.When, strings.Join(s.Modules, " "))
	}
	return b.String()
}

func parseOrder(text string) []Step {
	var out []Step
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 {
			out = append(out, Step{When: f[0], Modules: f[1:]})
		}
	}
	return out
}

// loader loads modules, each once.
type loader struct {
	dir   string
	steps []Step
	done  map[string]bool
	load  func(file string) error // loadModule
}

func openLoader(dir string) (*loader, error) {
	l := &loader{dir: dir, done: map[string]bool{}, load: loadModule}
	b, err := os.ReadFile(filepath.Join(dir, OrderFile)) //nolint:gosec // of the initramfs
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil // the kernel has everything built in
	}
	l.steps = parseOrder(string(b))
	return l, err
}

// run runs the steps that are due: those of the boot, those of present devices, and late
// ones. It continues after a module that fails, and joins the errors.
func (l *loader) run(sys fs.FS, late bool) error {
	var failed error
	for _, s := range l.steps {
		if s.When == Always || s.When == Late && late || strings.HasPrefix(s.When, DevicePrefix) && present(sys, s.When) {
			failed = errors.Join(failed, l.step(s))
		}
	}
	return failed
}

// fileSystem loads what a file system needs: nothing if the kernel has it built in.
func (l *loader) fileSystem(name string) error {
	for _, s := range l.steps {
		if s.When == FSPrefix+name {
			return l.step(s)
		}
	}
	return nil
}

func (l *loader) step(s Step) error {
	for _, name := range s.Modules {
		if l.done[name] {
			continue
		}
		l.done[name] = true
		if err := l.load(filepath.Join(l.dir, name+ModuleSuffix)); err != nil {
			return fmt.Errorf("the module %s: %w", name, err)
		}
	}
	return nil
}

// present reports whether a device of the virtio bus matches the alias, as modprobe(8) does.
func present(sys fs.FS, alias string) bool {
	files, err := fs.Glob(sys, "bus/virtio/devices/*/modalias")
	if err != nil {
		return false
	}
	for _, f := range files {
		b, err := fs.ReadFile(sys, f)
		if err != nil {
			continue
		}
		if ok, err := path.Match(alias, strings.TrimSpace(string(b))); ok && err == nil {
			return true
		}
	}
	return false
}

// loadModule loads a module without its signature: on an emulated processor the check takes
// as long as the loading, and the file comes from the same initramfs as this program. A
// kernel that requires signatures gets it.
func loadModule(file string) error {
	code, err := os.ReadFile(file) //nolint:gosec // of the initramfs
	if err != nil {
		return err
	}
	err = unix.InitModule(unsigned(code), "")
	if errors.Is(err, unix.EKEYREJECTED) || errors.Is(err, unix.EPERM) {
		err = unix.InitModule(code, "")
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// A signed module ends with the signature, a description, whose last four bytes are the
// signature's length, and a marker: include/linux/module_signature.h.
const (
	signatureMark = "~Module signature appended~\n"
	signatureInfo = 12 // bytes of the description
)

// unsigned returns a module's code without its signature.
func unsigned(code []byte) []byte {
	rest, signed := bytes.CutSuffix(code, []byte(signatureMark))
	if !signed || len(rest) < signatureInfo {
		return code
	}
	length := uint64(binary.BigEndian.Uint32(rest[len(rest)-4:]))
	rest = rest[:len(rest)-signatureInfo]
	if length > uint64(len(rest)) {
		return code
	}
	return rest[:uint64(len(rest))-length]
}
