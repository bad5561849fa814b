package spawn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tare/internal/cgroup"
	"tare/internal/tinyelf"
	"tare/sandbox"
)

// Probe starts the smallest program in the smallest tree through l, and fails
// unless it answers. It leaves nothing behind.
func Probe(ctx context.Context, l sandbox.Launcher, stateDir string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := os.MkdirAll(stateDir, 0o755); err != nil { //nolint:gosec // as the rest of /run
		return fmt.Errorf("%s: %w; run as root", l.Name(), err)
	}
	dir, err := os.MkdirTemp(stateDir, "check-")
	if err != nil {
		return fmt.Errorf("%s: %w", l.Name(), err)
	}
	// Only directories of ours are removed: stateDir itself if it was empty.
	defer func() { err = errors.Join(err, os.RemoveAll(dir)); _ = os.Remove(stateDir) }()
	root, own := filepath.Join(dir, "root"), filepath.Join(dir, "own")
	for _, d := range []string{own, root, root + "/proc", root + "/sys", root + "/dev", root + "/tmp", root + "/data"} {
		if err := os.Mkdir(d, 0o755); err != nil { //nolint:gosec // a tree for sandboxes
			return err
		}
	}
	code, err := tinyelf.Hello()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "tare-hello"), code, 0o755); err != nil { //nolint:gosec // a program
		return err
	}
	var stdout, stderr Tail
	name := "check-" + l.Name() + "-" + strconv.Itoa(os.Getpid()) + strings.TrimPrefix(filepath.Base(dir), "check")
	_, err = l.Launch(ctx, sandbox.Spec{Name: name, Dir: own, Root: root},
		sandbox.Command{Args: []string{"/tare-hello"}, Stdout: &stdout, Stderr: &stderr}, sandbox.Whole)
	said := strings.TrimSpace(stderr.String())
	switch {
	case err != nil && said != "":
		return fmt.Errorf("%s does not work on this host: %w; it says: %s", l.Name(), err, said)
	case err != nil:
		return fmt.Errorf("%s does not work on this host: %w", l.Name(), err)
	case stdout.String() != "x\n":
		return fmt.Errorf("%s does not work on this host: its test program did not answer; it says: %s", l.Name(), said)
	}
	return nil
}

// Group makes the control group tare/NAME, and refuses if it is there: two
// sandboxes of one name would be stopped as one.
func Group(name string, l cgroup.Limits) (*cgroup.Group, *cgroup.Hierarchy, error) {
	if name == "" || strings.ContainsAny(name, "/ ") || strings.HasPrefix(name, ".") {
		return nil, nil, fmt.Errorf("%q cannot name a sandbox", name)
	}
	h, err := cgroup.Detect()
	if err != nil {
		return nil, nil, err
	}
	rel := "tare/" + name
	for _, controller := range []string{"memory", "cpu", "pids", ""} {
		if dir, ok := h.Path(controller, rel); ok {
			if _, err := os.Stat(dir); err == nil {
				return nil, nil, fmt.Errorf("there is a sandbox %s already (%s); if none runs, `tare clean` removes its remains", name, dir)
			}
		}
	}
	g, err := h.Create(rel, l)
	return g, h, err
}

// Environment is what every process in a sandbox starts with.
func Environment(spec sandbox.Spec) []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
		Marker + "=" + spec.Name,
	}
}
