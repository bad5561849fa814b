package state

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tare/host/cgroup"
	"tare/internal/procstat"
)

// TestFindOthers: what another user runs may be in use.
func TestFindOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to be another user")
	}
	cmd := exec.Command("sleep", "60")
	cmd.Env = append(os.Environ(), Marker+"another")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65531, Gid: 65531}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	ours, _ := find("/proc", false)
	for _, p := range ours {
		if p.PID == cmd.Process.Pid {
			t.Error("the process of another user is ours")
		}
	}
}

// TestZombie: a process that nobody has waited for has ended, and is not found again.
func TestZombie(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.Env = append(os.Environ(), Marker+"zombie")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := procstat.Read("/proc", cmd.Process.Pid)
	if err != nil || p.Ended {
		t.Errorf("%+v, %v", p, err)
	}
	if err := kill(t.Context(), p); err != nil {
		t.Error(err)
	}
	if p, err := procstat.Read("/proc", cmd.Process.Pid); err != nil || !p.Ended {
		t.Errorf("before it is waited for: %+v, %v", p, err)
	}
	_ = cmd.Wait() // killed
}

func TestMarked(t *testing.T) {
	for env, want := range map[string]bool{
		"TARE_SANDBOX=a\x00": true, "A=b\x00TARE_SANDBOX=a\x00": true,
		"": false, "TARE_SANDBOX=\x00": false, "A=TARE_SANDBOX=a\x00": false, "XTARE_SANDBOX=a": false, "TARE_SANDBOXES=a": false,
	} {
		if got := cgroup.Marked([]byte(env), ""); got != want {
			t.Errorf("Marked(%q) = %v", env, got)
		}
	}
}

func TestKillSparesALaterProcess(t *testing.T) {
	p, err := procstat.Read("/proc", os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p.Start-- // as if this were another's number, handed on
	if err := kill(t.Context(), p); err != nil {
		t.Error(err)
	}
	// Still here.
}

func TestContainerIDs(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"a", "b", ".hidden", "-option"} {
		if err := os.Mkdir(root+"/"+dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"c_sandbox:c.state", "c_sandbox:c.lock", "runtime.json", "c_sandbox:c.sock"} {
		if err := os.WriteFile(root+"/"+file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ids, err := containerIDs(root)
	if want := []string{"a", "b", "c"}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("%q, %v; want %q", ids, err, want)
	}
}

func TestReadRuntimeRefuses(t *testing.T) {
	base := t.TempDir()
	root := base + "/runc"
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	path := root + "/runtime.json"
	good := []byte(`{"binary":"/bin/true","args":["--x"]}`)
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if rt, err := readRuntime(root); err != nil || rt.Binary != "/bin/true" || !slices.Equal(rt.Args, []string{"--x"}) {
		t.Fatalf("%+v, %v", rt, err)
	}
	for name, change := range map[string]func() error{
		"others can write it":        func() error { return os.Chmod(path, 0o666) },
		"others can write next it":   func() error { return os.Chmod(root, 0o777) },
		"a relative program":         func() error { return os.WriteFile(path, []byte(`{"binary":"true"}`), 0o600) },
		"garbage":                    func() error { return os.WriteFile(path, []byte(`{`), 0o600) },
		"a link":                     func() error { return os.Rename(path, base+"/x") },
		"none, and the tree is gone": func() error { return os.RemoveAll(root) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if name == "a link" {
			if err := os.Symlink(base+"/x", path); err != nil {
				t.Fatal(err)
			}
		}
		if rt, err := readRuntime(root); err == nil {
			t.Errorf("%s: %+v", name, rt)
		}
		// Restore for the next.
		_ = os.MkdirAll(root, 0o700)
		_ = os.Chmod(root, 0o700)
		_ = os.Remove(path)
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzParseHolder(f *testing.F) {
	f.Add(`{"pid":4711,"what":"tare run studies/first.yaml","since":"2026-11-20T13:55:12Z"}` + "\n")
	f.Fuzz(func(t *testing.T, in string) {
		if h, err := parseHolder(strings.NewReader(in)); err == nil && h.Pid <= 0 {
			t.Errorf("%+v", h)
		}
	})
}

func FuzzParseRuntime(f *testing.F) {
	f.Add(`{"binary":"/usr/sbin/runc","args":["--log-format","json"]}`)
	f.Fuzz(func(t *testing.T, in string) {
		if rt, err := parseRuntime(strings.NewReader(in)); err == nil && !strings.HasPrefix(rt.Binary, "/") {
			t.Errorf("%+v", rt)
		}
	})
}
