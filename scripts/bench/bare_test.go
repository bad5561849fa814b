package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestBareInit runs the program that the bare machine starts, which any Linux can.
func TestBareInit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "init")
	if err := os.WriteFile(file, bareInit(), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip(err) // another processor
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if said != bareWord || err != nil {
		t.Errorf("%q, %v", said, err)
	}
	_ = cmd.Process.Kill() // it sleeps for ever
	_ = cmd.Wait()
}
