package tinyelf

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestWellFormed(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		for name, f := range map[string]func(string) ([]byte, error){"hello": HelloFor, "pause": PauseFor, "run": RunFor} {
			t.Run(arch+"/"+name, func(t *testing.T) {
				b, err := f(arch)
				if err != nil {
					t.Fatal(err)
				}
				e, err := elf.NewFile(bytes.NewReader(b))
				if err != nil {
					t.Fatal(err)
				}
				if e.Machine != machine || e.Type != elf.ET_EXEC || len(e.Progs) != 1 {
					t.Errorf("machine %v, type %v, %d segments", e.Machine, e.Type, len(e.Progs))
				}
				if p := e.Progs[0]; p.Filesz != uint64(len(b)) || e.Entry < p.Vaddr || e.Entry >= p.Vaddr+p.Memsz {
					t.Errorf("segment of %d bytes for a file of %d, entry %#x", p.Filesz, len(b), e.Entry)
				}
				if len(b) > 400 {
					t.Errorf("%d bytes is not small", len(b))
				}
			})
		}
	}
	if _, err := HelloFor("s390x"); err == nil {
		t.Error("an architecture without code must be an error")
	}
}

// TestArm64Text pins the adr instruction by hand: its target must be the text.
func TestArm64Text(t *testing.T) {
	b, err := HelloFor("arm64")
	if err != nil {
		t.Fatal(err)
	}
	code := b[fileHeader+programHeader:]
	if got := string(code[4+28:]); got != "x\n" {
		t.Errorf("adr at 4 plus 28 points at %q", got)
	}
}

func write(t *testing.T, f func() ([]byte, error)) string {
	t.Helper()
	b, err := f()
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "prog")
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHelloRuns(t *testing.T) {
	out, err := exec.Command(write(t, Hello)).Output()
	if err != nil || string(out) != "x\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestPauseWaits(t *testing.T) {
	cmd := exec.Command(write(t, Pause))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		t.Fatalf("pause ended by itself: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	// A stop and a continue interrupt the call; it must wait again.
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("pause ended after SIGCONT: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-done
}
