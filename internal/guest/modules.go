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

// OrderFile in the folder of modules lists the steps of loading them, one a line:
// when, and the modules in order.
//
//	always virtio_ring virtio virtio_console
//	virtio:d00000001v* virtio_ring virtio failover net_failover virtio_net
//	late overlay
const OrderFile = "order"

// ModuleSuffix ends the names of modules' files.
const ModuleSuffix = ".ko"

// Step is a module that is wanted, with what it needs before it.
type Step struct {
	// Always, Late, or the alias of a virtio device: the step is left out in a machine
	// without one. Each module costs 20 ms of the boot without hardware
	// virtualization.
	When    string
	Modules []string // names
}

// When a step is done, if not for a device.
const (
	Always = "always" // at boot
	Late   = "late"   // when the machine is set up

	DevicePrefix = "virtio:" // begins the aliases of devices
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
		return l, nil // a kernel that has all built in
	}
	l.steps = parseOrder(string(b))
	return l, err
}

// run does the steps whose time has come: those of boot, those of devices that
// are there, and late ones. A module that fails does not keep the others; the errors
// are joined.
func (l *loader) run(sys fs.FS, late bool) error {
	var failed error
	for _, s := range l.steps {
		if s.When == Always || s.When == Late && late || strings.HasPrefix(s.When, DevicePrefix) && present(sys, s.When) {
			failed = errors.Join(failed, l.step(s))
		}
	}
	return failed
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

// present says whether a device of the virtio bus matches the alias, as modprobe(8)
// matches it.
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

// loadModule loads a module without its signature: to check one takes an emulated
// processor as long as the loading itself, and the file is of the initramfs that the kernel was
// started with. A kernel that wants signatures gets it.
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

// A signed module ends with the signature, its description, whose last four bytes are the
// signature's length, and a mark: include/linux/module_signature.h.
const (
	signatureMark = "~Module signature appended~\n"
	signatureInfo = 12 // bytes of the description
)

// unsigned is a module's code less its signature, if it has one.
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
