package boot

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tare/agent/guest"
	"tare/host/image"
	"tare/internal/files"
)

// kernel is one with its modules.
type kernel struct {
	image   string // the file
	lib     string // lib/modules/VERSION; may be missing
	version string
	pkg     string // the package with its version, or the path that the user gave
	digest  string
	stamp   string // of the user's: sizes and times of its files
}

// KernelVariable names a kernel of the user's.
const KernelVariable = "TARE_GUEST_KERNEL"

// imageKernel is the one in an unpacked package.
func imageKernel(t image.Tree) (kernel, error) {
	k, err := treeKernel(t.Path)
	if err != nil {
		return kernel{}, err
	}
	k.digest = t.Digest
	for _, p := range t.Packages {
		if strings.HasPrefix(p, "linux-image-") && strings.Contains(p, k.version+"=") {
			k.pkg = p
		}
	}
	return k, nil
}

// treeKernel finds the kernel in a tree as packages install it: boot/vmlinuz-VERSION
// and lib/modules/VERSION.
func treeKernel(tree string) (kernel, error) {
	images, err := filepath.Glob(filepath.Join(tree, "boot", "vmlinu[xz]-*"))
	if err != nil {
		return kernel{}, err
	}
	if len(images) == 0 {
		return kernel{}, errors.New("it does not contain boot/vmlinuz-VERSION")
	}
	slices.Sort(images)
	return beside(images[len(images)-1])
}

// beside finds the modules that belong to a kernel's file.
func beside(file string) (kernel, error) {
	_, version, ok := strings.Cut(filepath.Base(file), "-")
	if !ok {
		return kernel{}, fmt.Errorf("%s: name the file vmlinuz-VERSION, with its modules in ../lib/modules/VERSION", file)
	}
	lib := filepath.Join(filepath.Dir(file), "..", "lib", "modules", version)
	return kernel{image: file, lib: lib, version: version}, nil
}

// userKernel is the one that a user gives: a file, or a tree that it is in. Its digest
// is that of last where the files are the same by their sizes and times: reading them is
// half a second that no start is to be weighed with.
func userKernel(path string, last kernel) (kernel, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return kernel{}, err
	}
	st, err := os.Stat(path)
	var k kernel
	switch {
	case err != nil:
	case st.IsDir():
		k, err = treeKernel(path)
	default:
		k, err = beside(path)
	}
	if err == nil {
		k.pkg = k.image
		k.stamp, err = k.look()
	}
	if err == nil && k.stamp == last.stamp {
		return last, nil
	}
	if err == nil {
		k.digest, err = k.hash()
	}
	if err != nil {
		return kernel{}, fmt.Errorf("%s=%s: %w", KernelVariable, path, err)
	}
	return k, nil
}

// look is what the file system says of the kernel and of its modules' lists, which
// depmod(8) writes anew with every change of a module.
func (k kernel) look() (string, error) {
	var out strings.Builder
	for _, path := range []string{k.image, k.lib, filepath.Join(k.lib, "modules.dep"), filepath.Join(k.lib, "modules.builtin")} {
		st, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) && path != k.image {
			continue
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%q %d %d\n", path, st.Size(), st.ModTime().UnixNano())
	}
	return out.String(), nil
}

// hash digests the kernel and the modules that are taken of it.
func (k kernel) hash() (string, error) {
	sum, err := files.Hash(k.image)
	if err != nil {
		return "", err
	}
	l, err := openLibrary(k.lib)
	if err != nil {
		return "", err
	}
	if _, err := l.steps(wanted()); err != nil {
		return "", err
	}
	for _, m := range l.modules() {
		sum += m.name + fmt.Sprintf("%x", sha256.Sum256(m.code))
	}
	return sum, nil
}

// modules are those that a guest loads, and when.
func (k kernel) modules() ([]module, []guest.Step, error) {
	l, err := openLibrary(k.lib)
	if err != nil {
		return nil, nil, err
	}
	if l.files != nil {
		if err := k.enough(l.files); err != nil {
			return nil, nil, err
		}
	}
	steps, err := l.steps(wanted())
	return l.modules(), steps, err
}

// enough says which module is missing that a guest cannot do without.
func (k kernel) enough(files map[string]string) error {
	f, err := os.Open(filepath.Join(k.lib, "modules.builtin"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // not known; the guest will say
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	built, err := builtIn(f)
	if err != nil {
		return err
	}
	for _, n := range needed() {
		if files[n] == "" && !built[n] {
			return fmt.Errorf("the kernel %s has no %s, neither built in nor as a module in %s; take one for virtual machines, or name another by %s", k.version, n, k.lib, KernelVariable)
		}
	}
	return nil
}
