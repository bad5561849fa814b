package main

import (
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
	// Without symbols, as the Makefile builds it. A machine of 256 MiB unpacks the whole program from its
	// initramfs, and has no room for them.
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot build tare: %v\n%s", err, out)
		return 1
	}
	if err := errors.Join(makeAsUser(), os.CopyFS(filepath.Join(dir, "studies"), os.DirFS("../../studies"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
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
