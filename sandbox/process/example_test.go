package process_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/host/state/statetest"
	"tare/record"
	"tare/sandbox/process"
)

// begin

// New returns a kind whose sandboxes are processes in a chroot(2).
func New(stateDir string) *process.Kind {
	return process.Like(process.Config{
		Name: "chroot", About: "processes in a chroot", Family: record.FamilyContainer,
		Enter: func(root string) error {
			if err := unix.Chroot(root); err != nil {
				return fmt.Errorf("chroot to %s: %w", root, err)
			}
			return unix.Chdir("/")
		},
	}, stateDir)
}

// end

// TestLike: a kind of one's own works in the root that it enters, and fails under its own name.
func TestLike(t *testing.T) {
	statetest.HostLock(t)
	const stateDir = "/run/tare/test-like"
	if err := New(stateDir).Check(t.Context()); err != nil {
		t.Error(err)
	}
	failing := process.Like(process.Config{Name: "mine", Enter: func(string) error { return errors.New("no way in") }}, stateDir)
	if err := failing.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "mine") || !strings.Contains(err.Error(), "no way in") {
		t.Errorf("no way in gives %v", err)
	}
}

// TestDocsShowThisCode keeps docs/add-a-sandbox.md and the code above equal.
func TestDocsShowThisCode(t *testing.T) {
	src, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/add-a-sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(src), "\n// begin\n")
	code, _, ok := strings.Cut(code, "\n// end\n")
	if !ok || !strings.Contains(string(page), "```go\n"+strings.TrimSpace(code)+"\n```") {
		t.Error("docs/add-a-sandbox.md does not hold the code between begin and end of example_test.go; copy it there")
	}
}
