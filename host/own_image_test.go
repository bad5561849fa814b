package host

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	nothing "github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"tare/agent/guest"
	"tare/host/image"
	"tare/host/image/imagetest"
	"tare/host/state/statetest"
	"tare/internal/tinyelf"
	"tare/record"
	"tare/sandbox"
	sandboxall "tare/sandbox/all"
	"tare/sandbox/sandboxtest"
	"tare/sandbox/vm/boot"
)

func TestMain(m *testing.M) {
	if guest.IsInit(os.Args) { // in a virtual machine, whose guest runs this binary
		guest.Main()
	}
	os.Exit(sandboxtest.Main(m.Run))
}

// saved is an archive as `docker save` makes them, of one layer that gives /srv and all files to
// user 33.
func saved(t *testing.T, conf v1.Config, files map[string][]byte) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "srv/", Mode: 0o755, Uid: 33, Gid: 50})
	for name, content := range files {
		if err == nil {
			err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o500, Uid: 33, Gid: 50, Size: int64(len(content))})
		}
		if err == nil {
			_, err = w.Write(content)
		}
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.ConfigFile(nothing.Image, &v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux", Config: conf})
	if err == nil {
		img, err = mutate.AppendLayers(img, layer)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	if err == nil {
		err = tarball.WriteToFile(file, name.MustParseReference("test"), img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestOwnImageRuns: the command of a user's own image, as its user, in its directory and with its
// environment, in every sandbox that starts fast, and in a virtual machine; and an image that has nothing but a program. The
// test binary, which is the agent there, must be static: CGO_ENABLED=0, as for make test.
func TestOwnImageRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to start sandboxes")
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("this host has no static program to make an image of: apt-get install busybox-static")
	}
	shell, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	hello, err := tinyelf.Hello()
	if err != nil {
		t.Fatal(err)
	}
	user := v1.Config{User: "33:50", WorkingDir: "/srv", Env: []string{"PATH=/programs", "GIVEN=yes"}}
	bare := user
	user.Entrypoint, user.Cmd = []string{"busybox", "sh", "-c"}, []string{"echo x > new; id -u; id -g; pwd; echo $GIVEN $HOME; stat -c %u:%a /programs/busybox new"}
	bare.Entrypoint = []string{"hello"}
	images := map[string]string{ // what they print
		saved(t, user, map[string][]byte{"programs/busybox": shell}): "33\n50\n/srv\nyes /\n33:500\n33:644\n",
		saved(t, bare, map[string][]byte{"programs/hello": hello}):   "x\n",
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	statetest.HostLock(t)
	b := &image.Builder{Cache: t.TempDir()}
	boots := filepath.Join(os.TempDir(), "tare-test-vm") // as the tests of package vm
	var kinds []sandbox.Kind
	for _, k := range sandboxall.Kinds(sandboxall.Env{StateDir: t.TempDir(), CacheDir: boots, Boot: &boot.Cache{
		Images: &image.Builder{Cache: imagetest.Cache}, Dir: filepath.Join(boots, "boot"), Self: self, Kernel: os.Getenv(boot.KernelVariable)}}) {
		if k.Traits(nil).Family == record.FamilyFake || k.Traits(nil).Takes >= time.Second && k.Name() != "vm" {
			continue
		}
		if err := k.Check(t.Context()); err != nil {
			t.Log(err)
			continue
		}
		kinds = append(kinds, k)
	}
	for file, want := range images {
		tree, err := b.Build(t.Context(), file)
		if err == nil {
			err = image.Dress(tree.Path, self)
		}
		img := unpacked(tree)
		if err != nil || img.Problem != "" {
			t.Fatal(err, img.Problem)
		}
		for _, k := range kinds {
			t.Run(k.Name(), func(t *testing.T) {
				spec := sandbox.Spec{Want: sandbox.Want{Name: fmt.Sprintf("own-%s-%d-%d", k.Name(), len(img.Command), os.Getpid())}, Dir: t.TempDir(), Root: img.Root, Upper: t.TempDir()}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				inst, err := k.Start(ctx, spec)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := inst.Stop(ctx); err != nil {
						t.Error(err)
					}
				}()
				var out, said bytes.Buffer
				exit, err := inst.Exec(ctx, sandbox.Command{
					Args: slices.Concat(img.Entrypoint, img.Command), Env: img.Env, Dir: img.Dir, User: img.User, Stdout: &out, Stderr: &said,
				})
				if err != nil || exit.Code != 0 || out.String() != want {
					t.Errorf("printed %q and %q, want %q; exit %+v, %v", out.String(), said.String(), want, exit, err)
				}
			})
		}
	}
}
