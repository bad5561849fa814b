package host

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"tare/host/rootfs"
	"tare/record"
)

// Bounds on asking a tool for its version.
const (
	toolTime = 5 * time.Second
	toolRead = 4096 // bytes of output
	toolLine = 200  // bytes of the line that is kept
)

// Tool is a program whose version is kept with the results.
type Tool struct {
	Name string
	Path string   // "": looked up in PATH, then in /usr/local/lib/tare/bin
	Args []string // to print its version; nil: --version
}

// Tools lists the runtimes and load generators that tare knows.
func Tools() []Tool {
	out := []Tool{}
	for _, n := range []string{
		"runc", "crun", "runsc", "youki", "kata-runtime", "qemu-system-x86_64", "qemu-system-aarch64",
		"sysbench", "fio", "iperf3", "hyperfine",
	} {
		out = append(out, Tool{Name: n})
	}
	return out
}

// versions asks each installed tool. A tool that does not answer gets an empty version and a
// warning.
func versions(ctx context.Context, tools []Tool) (map[string]string, []record.Warning) {
	out := map[string]string{}
	var doubts []record.Warning
	for _, t := range tools {
		path := t.Path
		if path == "" {
			var ok bool
			if path, ok = rootfs.Lookup(t.Name); !ok {
				continue
			}
		}
		v, err := version(ctx, path, t.Args)
		if err != nil {
			doubts = append(doubts, record.Warning{Code: "tool", Text: fmt.Sprintf("cannot read the version of %s (%s): %v", t.Name, path, err)})
		}
		out[t.Name] = v
	}
	return out, doubts
}

func version(ctx context.Context, path string, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	if args == nil {
		args = []string{"--version"}
	}
	var out head
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // a tool that the caller names
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second // a child of the tool may keep the pipe open
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", fmt.Errorf("no answer in %v", toolTime)
	}
	line := firstLine(out.text)
	if line == "" {
		return "", errors.Join(errors.New("it printed nothing"), err)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, line)
	}
	return stamped(line, path), nil
}

// firstLine returns the first line that is not empty, cut to toolLine bytes.
func firstLine(b []byte) string {
	for line := range strings.Lines(strings.ToValidUTF8(string(b), "?")) {
		if line = strings.TrimSpace(line); line != "" {
			if len(line) > toolLine {
				line = strings.ToValidUTF8(line[:toolLine], "")
			}
			return line
		}
	}
	return ""
}

// stamped adds the module's version to the answer of a Go program that was
// built without one: runsc from `go install` says "runsc version VERSION_MISSING".
func stamped(line, path string) string {
	if !strings.Contains(line, "VERSION_MISSING") {
		return line
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil || info.Main.Version == "" {
		return line
	}
	return strings.Replace(line, "VERSION_MISSING", info.Main.Version, 1)
}

// head keeps the first toolRead bytes, and discards the rest so that the tool does not hang.
type head struct{ text []byte }

func (h *head) Write(b []byte) (int, error) {
	h.text = append(h.text, b[:min(len(b), toolRead-len(h.text))]...)
	return len(b), nil
}
