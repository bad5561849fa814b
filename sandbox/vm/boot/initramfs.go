package boot

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/u-root/u-root/pkg/cpio"

	"tare/agent/guest"
)

// writeInitramfs writes a cpio archive, format newc, as
// https://docs.kernel.org/driver-api/early-userspace/buffer-format.html has it: the
// program as /init, the modules and when to load which, and the few entries that a program needs
// before it can mount anything. It is not compressed: unpacking costs seconds
// without hardware virtualization.
func writeInitramfs(w io.Writer, program io.ReaderAt, size int64, modules []module, steps []guest.Step) error {
	records := []cpio.Record{
		cpio.Directory("dev", 0o755), cpio.Directory("proc", 0o755), cpio.Directory("sys", 0o755), cpio.Directory("tree", 0o755),
		// The kernel opens the console before the program runs; the program's
		// runtime wants null where that failed.
		cpio.CharDev("dev/console", 0o600, 5, 1), cpio.CharDev("dev/null", 0o666, 1, 3),
		cpio.Directory("modules", 0o755),
		cpio.StaticFile(path.Join("modules", guest.OrderFile), guest.FormatOrder(steps), 0o644),
	}
	for _, m := range modules {
		records = append(records, cpio.StaticRecord(m.code, cpio.Info{Name: path.Join("modules", m.name+guest.ModuleSuffix), Mode: cpio.S_IFREG | 0o644}))
	}
	records = append(records, cpio.Record{
		ReaderAt: io.NewSectionReader(program, 0, size),
		Info:     cpio.Info{Name: guest.Init[1:], Mode: cpio.S_IFREG | 0o755, FileSize: uint64(size)}, //nolint:gosec // a file's size
	})
	out := cpio.Newc.Writer(w)
	for i, r := range records {
		r.Ino, r.NLink = uint64(i+1), 1
		if err := out.WriteRecord(r); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	return cpio.WriteTrailer(out)
}

// writeProgram makes the initramfs of the program at self.
func writeProgram(file, self string, modules []module, steps []guest.Step) error {
	f, err := os.Open(self) //nolint:gosec // this program
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := writeArchive(file, f, st.Size(), modules, steps); err != nil {
		return fmt.Errorf("%s: %w", self, err)
	}
	return nil
}

// writeArchive makes the initramfs of a program.
func writeArchive(file string, program io.ReaderAt, size int64, modules []module, steps []guest.Step) (err error) {
	if err := static(program); err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // no secret
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	b := bufio.NewWriterSize(out, 1<<20)
	if err := writeInitramfs(b, program, size, modules, steps); err != nil {
		return err
	}
	return b.Flush()
}

// static says whether a program needs nothing beside itself: the initramfs has no
// libraries, and the kernel would say no more than that /init is not there.
func static(r io.ReaderAt) error {
	f, err := elf.NewFile(r)
	if err != nil {
		return err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("the program is linked dynamically and cannot be the first one of a virtual machine; build it with CGO_ENABLED=0")
		}
	}
	return nil
}
