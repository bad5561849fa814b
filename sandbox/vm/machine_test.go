package vm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/spawn"
)

// TestConnected: the two ends talk, however long the path, and nothing is left of their name.
func TestConnected(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, client, err := connected(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	defer client.Close()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	fd, _, err := unix.Accept(int(listener.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	served := os.NewFile(uintptr(fd), "socket")
	defer served.Close()
	if _, err := client.WriteString("hi"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2)
	if _, err := served.Read(b); err != nil || string(b) != "hi" {
		t.Errorf("%q, %v", b, err)
	}
	if _, _, err := connected(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestNoVhost: a node without its module is no vhost, too many open files are a failure.
func TestNoVhost(t *testing.T) {
	for err, want := range map[error]bool{
		unix.ENOENT: true, unix.EPERM: true, unix.EACCES: true, unix.ENODEV: true, unix.ENXIO: true, unix.EMFILE: false, unix.EBUSY: false,
	} {
		if got := noVhost(&fs.PathError{Op: "open", Path: "/dev/vhost-net", Err: err}); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestSends: the message after note is the one whose time is kept.
func TestSends(t *testing.T) {
	var to bytes.Buffer
	s := sends{to: &to}
	write := func() {
		if _, err := s.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if s.noted.Load() != nil {
		t.Error("noted unasked")
	}
	s.note()
	before := time.Now()
	write()
	at := s.noted.Load()
	if at == nil || at.Before(before) {
		t.Fatalf("noted %v, asked at %v", at, before)
	}
	write()
	if s.noted.Load() != at || to.String() != "xxx" {
		t.Errorf("%v, %q", s.noted.Load(), &to)
	}
}

// TestGaveUp: the ends of a process that mean something, and those that do not.
func TestGaveUp(t *testing.T) {
	for script, want := range map[string]bool{"exit 0": false, "exit 1": true, "kill -ABRT $$": true, "kill -KILL $$": false} {
		m := &machine{cmd: exec.Command("/bin/sh", "-c", script)}
		var err error
		if m.proc, err = spawn.Start(spawn.Options{}, m.cmd); err != nil {
			t.Fatal(err)
		}
		<-m.proc.Done()
		if got := m.gaveUp(); got != want {
			t.Errorf("%s: %v", script, got)
		}
	}
}

// TestLineOfDisks: a full disk of the host is told to the guest, and QEMU is confined where it can be.
func TestLineOfDisks(t *testing.T) {
	h := &hardware{accel: accelTCG, vcpus: 1, maxVCPUs: 1, box: true, disks: []disk{{serial: "data", path: "/d"}}}
	got := strings.Join(h.line().args, " ")
	for _, want := range []string{`"serial":"data","werror":"report"`, "-sandbox on,obsolete=deny"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	h.box = false
	if got := strings.Join(h.line().args, " "); strings.Contains(got, "-sandbox") {
		t.Error(got)
	}
	if k := New(Config{Args: []string{"-sandbox", "off"}}); k.boxes(qemu{confines: true}) {
		t.Error("confined against the study's word")
	}
}

// TestIsBlockDevice: a file in memory lies below /dev and is no device.
func TestIsBlockDevice(t *testing.T) {
	file := filepath.Join("/dev/shm", fmt.Sprintf("tare-test-%d", os.Getpid()))
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Skip("/dev/shm cannot be written: ", err)
	}
	t.Cleanup(func() { _ = os.Remove(file) })
	for _, path := range []string{file, "/dev/null", "/dev/none"} {
		if isBlockDevice(path) {
			t.Errorf("%s is taken for a block device", path)
		}
	}
	devices, err := filepath.Glob("/dev/[vsl][do]*[a-z0-9]")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range devices {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFBLK && !isBlockDevice(path) {
			t.Errorf("%s is a block device", path)
		}
	}
}
