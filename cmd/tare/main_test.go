package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// bin is the real, static binary, built once for all tests here: what runs in a
// sandbox must not be the test binary.
var bin string

func TestMain(m *testing.M) {
	flag.Parse()
	// A fuzz target calls functions only. Each of its workers runs TestMain, and a build
	// in each would take the target's time.
	if f := flag.Lookup("test.fuzz"); f.Value.String() != "" {
		os.Exit(m.Run())
	}
	os.Exit(build(m))
}

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tare-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil { // a story runs it as another user
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bin = filepath.Join(dir, "tare")
	if err := buildAs(bin, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := errors.Join(makeAsUser(), os.CopyFS(filepath.Join(dir, "studies"), os.DirFS("../../studies"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// buildAs builds tare as the Makefile does: it carries what machines start with. Otherwise each machine
// unpacks the whole of tare (docs/design/0013-vm-sandbox.md has what that takes). The file that tare carries
// is in dir, and not in the tree, where other builds use it.
func buildAs(file, dir string) error {
	carries, err := filepath.Abs("../../sandbox/vm/boot/guest-init")
	if err != nil {
		return err
	}
	guest, overlay := filepath.Join(dir, "guest-init"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {carries: guest}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"-o", guest, "tare/agent/guest/init"},
		{"-tags", "guestinit", "-overlay", overlay, "-o", file, "."},
	} {
		cmd := exec.Command("go", append([]string{"build", "-ldflags", "-s -w"}, args...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build tare: %w\n%s", err, out)
		}
	}
	return nil
}

// TestScripts runs the stories in testdata/script: what a user types and sees. An ordinary user
// runs them, without a real sandbox, so that they wait for nobody.
func TestScripts(t *testing.T) {
	scripts(t, "testdata/script", func(env *testscript.Env) error {
		env.Setenv("PATH", asUser()+":"+os.Getenv("PATH"))
		for _, v := range ownState(env.WorkDir) {
			name, value, _ := strings.Cut(v, "=")
			env.Setenv(name, value)
		}
		return give(env.WorkDir)
	})
}

// TestHostScripts runs those that root runs: they have real sandboxes, and take turns.
func TestHostScripts(t *testing.T) {
	scripts(t, "testdata/host", func(env *testscript.Env) error {
		env.Setenv("PATH", filepath.Dir(bin)+":"+os.Getenv("PATH"))
		return nil
	})
}

func scripts(t *testing.T, dir string, by func(*testscript.Env) error) {
	t.Helper()
	studies := filepath.Join(filepath.Dir(bin), "studies") // a copy, since others may not read the tree
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			env.Setenv("STUDIES", studies)
			env.Setenv("NO_COLOR", "1")
			if err := by(env); err != nil {
				return err
			}
			return os.Chmod(filepath.Dir(env.WorkDir), 0o755) // as above
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}
