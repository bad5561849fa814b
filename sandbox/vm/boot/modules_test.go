package boot

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// object makes an ELF file with nothing but .modinfo, as a module has it.
func object(t testing.TB, modinfo []byte) []byte {
	const names = "\x00.modinfo\x00.shstrtab\x00"
	const at = 64 // after the header
	var b bytes.Buffer
	write := func(v any) {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	h := elf.Header64{Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: at, Shentsize: 64, Shnum: 3, Shstrndx: 2}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	h.Shoff = uint64(at + len(modinfo) + len(names))
	write(h)
	b.Write(modinfo)
	b.WriteString(names)
	write(elf.Section64{})
	write(elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: at, Size: uint64(len(modinfo))})
	write(elf.Section64{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: uint64(at + len(modinfo)), Size: uint64(len(names))})
	return b.Bytes()
}

// tree makes lib/modules/VERSION of the captured modules, compressed as the suffix
// says.
func tree(t *testing.T, suffix string) string {
	t.Helper()
	dir := t.TempDir()
	captured, err := filepath.Glob("testdata/modinfo/*")
	if err != nil || len(captured) == 0 {
		t.Fatal(err)
	}
	for i, c := range captured {
		b, err := os.ReadFile(c)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, "kernel", string(rune('a'+i)), filepath.Base(c)+".ko"+suffix)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, packed(t, object(t, b), suffix), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func packed(t *testing.T, b []byte, suffix string) []byte {
	t.Helper()
	var out bytes.Buffer
	switch suffix {
	case "":
		return b
	case ".zst":
		z, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(b); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
	case ".gz":
		z := gzip.NewWriter(&out)
		if _, err := z.Write(b); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
	case ".xz":
		cmd := exec.Command("xz", "--stdout")
		cmd.Stdin, cmd.Stdout = bytes.NewReader(b), &out
		if err := cmd.Run(); err != nil {
			t.Skip("this host has no xz")
		}
	}
	return out.Bytes()
}

// TestSteps: every module comes after what it needs, and what a device is for is
// known, whichever way the distribution compresses modules.
func TestSteps(t *testing.T) {
	want := []string{
		"always virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio virtio_pci",
		"always virtio_ring virtio virtio_console",
		"virtio:d00000001v* virtio_ring virtio failover net_failover virtio_net",
		"virtio:d00000002v* virtio_ring virtio virtio_blk",
		"virtio:d0000001Av* fuse virtio_ring virtio virtiofs",
		"virtio:d00000004v* virtio_ring virtio virtio_rng",
		"late overlay",
	}
	for _, suffix := range []string{"", ".zst", ".gz", ".xz"} {
		t.Run("ko"+suffix, func(t *testing.T) {
			l, err := openLibrary(tree(t, suffix))
			if err != nil {
				t.Fatal(err)
			}
			steps, err := l.steps(wanted())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range steps {
				got = append(got, s.When+" "+strings.Join(s.Modules, " "))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, m := range l.modules() {
				if !bytes.HasPrefix(m.code, []byte("\x7fELF")) {
					t.Errorf("%s is not unpacked", m.name)
				}
			}
		})
	}
}

func TestModulesInACircle(t *testing.T) {
	dir := t.TempDir()
	for name, needs := range map[string]string{"a": "b", "b": "c", "c": "a"} {
		if err := os.WriteFile(filepath.Join(dir, name+".ko"), object(t, []byte("depends="+needs+"\x00")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l, err := openLibrary(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.chain("a"); err == nil || !strings.Contains(err.Error(), "depends on itself") {
		t.Errorf("%v", err)
	}
}

func TestBadModules(t *testing.T) {
	for name, b := range map[string][]byte{"x.ko": []byte("no ELF"), "x.ko.zst": []byte("no zstd"), "x.ko.gz": nil, "x.ko.br": nil} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readModule("x", file); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if l, err := openLibrary(filepath.Join(t.TempDir(), "missing")); err != nil || l.files != nil {
		t.Errorf("a kernel without modules: %v %v", l, err)
	}
}

func TestParseInfo(t *testing.T) {
	got := parseInfo([]byte("license=GPL\x00softdep=pre: crc32c-x y post: z\x00depends=mbcache,jbd2\x00alias=fs-ext4\x00depends=\x00\x00depends=jbd2"))
	if !slices.Equal(got.after, []string{"crc32c_x", "y", "mbcache", "jbd2"}) || !slices.Equal(got.aliases, []string{"fs-ext4"}) {
		t.Errorf("%+v", got)
	}
}

func TestEnough(t *testing.T) {
	lib := tree(t, "")
	k := kernel{lib: lib, version: "6.1.0"}
	if _, _, err := k.modules(); err != nil {
		t.Errorf("without modules.builtin: %v", err)
	}
	if err := os.WriteFile(filepath.Join(lib, "modules.builtin"), []byte("kernel/fs/ext4/ext4.ko\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.modules(); err != nil {
		t.Errorf("all there: %v", err)
	}
	found, err := filepath.Glob(filepath.Join(lib, "kernel/*/virtio_console.ko"))
	if err != nil || len(found) != 1 || os.Remove(found[0]) != nil {
		t.Fatal(found, err)
	}
	if _, _, err := k.modules(); err == nil || !strings.Contains(err.Error(), "virtio_console") || !strings.Contains(err.Error(), KernelVariable) {
		t.Errorf("%v", err)
	}
}

func FuzzInfo(f *testing.F) {
	for _, name := range []string{"virtio_net", "overlay"} {
		if b, err := os.ReadFile("testdata/modinfo/" + name); err == nil {
			f.Add(object(f, b))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := readInfo(b)
		for _, n := range in.after {
			if err != nil || n == "" || strings.ContainsAny(n, "-,\x00") {
				t.Errorf("%q %v", n, err)
			}
		}
	})
}

func FuzzBuiltIn(f *testing.F) {
	f.Add("kernel/fs/ext4/ext4.ko\nkernel/drivers/char/hw_random/virtio-rng.ko\n")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := builtIn(strings.NewReader(s))
		if err != nil {
			t.Fatal(err)
		}
		for n := range got {
			if strings.Contains(n, "/") || strings.Contains(n, "-") {
				t.Errorf("%q", n)
			}
		}
	})
}
