package process_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"tare/host/state/statetest"
	"tare/sandbox/process"
)

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

// TestDocsShowThisCode keeps docs/add-a-sandbox.md and chroot_test.go equal.
func TestDocsShowThisCode(t *testing.T) {
	src, err := os.ReadFile("chroot_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/add-a-sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(src), "\n")
	if !strings.Contains(string(page), "\npackage chroot\n"+code+"```\n") {
		t.Error("docs/add-a-sandbox.md does not hold the code of chroot_test.go; copy it there")
	}
}
