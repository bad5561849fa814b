package main

import (
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// captured are the files that collect/cgroup reads from one control group.
func captured() []string {
	return []string{
		"cpu.stat", "cpu.max", "cpu.pressure", "memory.current", "memory.peak", "memory.stat", "memory.events", "memory.pressure",
		"pids.current", "io.stat", "io.pressure",
	}
}

// captureScript loads a control group that has every controller, 0.2 cores and 64 MiB. Its
// processes read and write two disks past the page cache, ask for more memory than the limit,
// and two are always busy, one of them with 20 MiB. It prints the files as JSON while these
// run.
//
//go:embed guest/capture.sh
var captureScript string

// capture reads the files of a busy control group for the tests of collect/cgroup, exactly
// as the kernel writes them.
func capture(ctx context.Context, l *lab) error {
	out, err := l.sh(ctx, fmt.Sprintf(captureScript, strings.Join(captured(), " ")))
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	var text map[string]string
	if err := json.Unmarshal([]byte(out), &text); err != nil {
		return fmt.Errorf("cannot read the captured files: %w", err)
	}
	for name, coded := range text {
		if files[name], err = base64.StdEncoding.DecodeString(coded); err != nil {
			return fmt.Errorf("cannot read the captured %s: %w", name, err)
		}
		l.log.printf("%s:\n%s", name, files[name])
	}
	for _, n := range captured() {
		if len(files[n]) == 0 {
			return fmt.Errorf("%s is empty", n)
		}
		if l.capture == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(l.capture, n), files[n], 0o644); err != nil { //nolint:gosec // no secret
			return err
		}
	}
	return nil
}
