package guest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// OrderFile in the folder of modules lists their files in the order in which they
// are loaded, one a line.
const OrderFile = "order"

// loadModules loads every module of the folder's order. One that fails does not
// keep the others; the errors are joined.
func loadModules(dir string) error {
	order, err := os.ReadFile(filepath.Join(dir, OrderFile)) //nolint:gosec // of the initramfs
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a kernel that has all built in
	}
	if err != nil {
		return err
	}
	var failed error
	for name := range strings.FieldsSeq(string(bytes.TrimSpace(order))) {
		if err := loadModule(filepath.Join(dir, name)); err != nil {
			failed = errors.Join(failed, fmt.Errorf("the module %s: %w", name, err))
		}
	}
	return failed
}

func loadModule(file string) error {
	f, err := os.Open(file) //nolint:gosec // of the initramfs
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}
