package boot

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/u-root/u-root/pkg/cpio"
	"golang.org/x/sys/unix"

	"tare/agent/guest"
)

// TestInitramfs: what is written is read again, by another program too.
func TestInitramfs(t *testing.T) {
	program := strings.Repeat("program", 1000)
	modules := []module{{name: "virtio", code: []byte("one")}, {name: "virtio_rng", code: []byte("second")}}
	steps := []guest.Step{{When: guest.Always, Modules: []string{"virtio"}}, {When: guest.Late, Modules: []string{"virtio", "virtio_rng"}}}
	var b bytes.Buffer
	if err := writeInitramfs(&b, strings.NewReader(program), int64(len(program)), modules, steps); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"init": program, "modules/virtio.ko": "one", "modules/virtio_rng.ko": "second",
		"modules/order": "always virtio\nlate virtio virtio_rng\n",
		"dev/console":   "", "dev/null": "", "dev": "", "proc": "", "sys": "", "tree": "", "modules": "",
	}
	records, err := cpio.ReadAllRecords(cpio.Newc.Reader(bytes.NewReader(b.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		content, err := io.ReadAll(io.NewSectionReader(r, 0, int64(r.FileSize)))
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := want[r.Name]; !ok || text != string(content) {
			t.Errorf("%s holds %q", r.Name, content)
		}
		delete(want, r.Name)
		if r.UID != 0 || r.GID != 0 || r.MTime != 0 {
			t.Errorf("%s is of %d:%d at %d", r.Name, r.UID, r.GID, r.MTime)
		}
		if r.Name == "dev/console" && (r.Mode&unix.S_IFMT != unix.S_IFCHR || r.Rmajor != 5 || r.Rminor != 1) {
			t.Errorf("the console is %+v", r.Info)
		}
		if r.Name == "init" && r.Mode != unix.S_IFREG|0o755 {
			t.Errorf("init has the mode %o", r.Mode)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if _, err := exec.LookPath("cpio"); err != nil {
		return
	}
	cmd := exec.Command("cpio", "--list", "--quiet")
	cmd.Stdin = &b
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "modules/virtio_rng.ko\ninit\n") {
		t.Errorf("cpio: %v\n%s", err, out)
	}
}

// TestDynamicProgramIsRefused: the kernel would say that /init is not there.
func TestDynamicProgramIsRefused(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("this host has no sh")
	}
	file := filepath.Join(t.TempDir(), "x.cpio")
	err = writeProgram(file, sh, nil, nil)
	if err == nil {
		t.Skip("this host's sh is linked statically")
	}
	if !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file was made")
	}
}
