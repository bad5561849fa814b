package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Runtime says how to call an OCI runtime, without --root and the verb. Its file is
// RUNTIME/runtime.json (or RUNTIME.json) in RunDir/oci; RUNTIME is also the runtime's --root.
type Runtime struct {
	Binary string   `json:"binary"`
	Args   []string `json:"args"`
}

const (
	runtimesName  = "oci" // the directory in RunDir that holds one for each runtime
	runtimeRecord = "runtime.json"
	maxRuntime    = 64 << 10 // bytes of a runtime.json
)

// containers makes each runtime delete its remaining containers.
func (c *cleaner) containers(ctx context.Context) {
	base := filepath.Join(c.run, runtimesName)
	entries, err := os.ReadDir(base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.miss(fmt.Errorf("containers: %w%s", err, rootHint(err)))
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		root := filepath.Join(base, e.Name())
		ids, err := containerIDs(root)
		c.miss(err)
		if len(ids) == 0 {
			continue
		}
		rt, err := readRuntime(root)
		for _, id := range ids {
			c.item(ctx, KindContainer, e.Name()+"/"+id, func(ctx context.Context) error {
				if err != nil {
					return fmt.Errorf("cannot find the runtime that made it: %w; its processes, mounts and directory are removed nevertheless", err)
				}
				return rt.remove(ctx, root, id)
			})
		}
	}
}

// containerIDs reads a runtime's root directory. runc and crun keep a directory for each
// container, gVisor files ID_sandbox:SANDBOX.state. It does not use the runtimes' list
// command, which fails entirely if one container is half made.
func containerIDs(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("containers: %w%s", err, rootHint(err))
	}
	var ids []string
	for _, e := range entries {
		id, _, gvisor := strings.Cut(e.Name(), "_sandbox:")
		gvisor = gvisor && strings.HasSuffix(e.Name(), ".state")
		if (e.IsDir() || gvisor) && id != "" && id[0] != '-' && id[0] != '.' {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// readRuntime reads how to call the runtime of a root directory. Its command is executed, so
// the files and directories must belong to this user.
func readRuntime(root string) (Runtime, error) {
	for _, dir := range []string{filepath.Dir(root), root} {
		if err := private(dir, false); err != nil {
			return Runtime{}, err
		}
	}
	var failed error
	for _, path := range []string{filepath.Join(root, runtimeRecord), root + ".json"} {
		rt, err := openRuntime(path)
		if err == nil {
			return rt, nil
		}
		if failed == nil || !errors.Is(err, fs.ErrNotExist) {
			failed = err
		}
	}
	return Runtime{}, failed
}

func openRuntime(path string) (Runtime, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) //nolint:gosec // below RunDir, owner checked
	if err != nil {
		return Runtime{}, err
	}
	defer func() { _ = f.Close() }()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Runtime{}, fmt.Errorf("%s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return Runtime{}, fmt.Errorf("%s is not a file that only this user can write", path)
	}
	return parseRuntime(f)
}

func parseRuntime(r io.Reader) (Runtime, error) {
	var rt Runtime
	if err := json.NewDecoder(io.LimitReader(r, maxRuntime)).Decode(&rt); err != nil {
		return Runtime{}, fmt.Errorf("runtime.json: %w", err)
	}
	if !filepath.IsAbs(rt.Binary) {
		return Runtime{}, fmt.Errorf("runtime.json: binary %q is not an absolute path", rt.Binary)
	}
	return rt, nil
}

// remove runs `BINARY ARGS --root ROOT delete --force ID`.
func (rt Runtime) remove(ctx context.Context, root, id string) error {
	args := append(slices.Clone(rt.Args), "--root", root, "delete", "--force", id)
	cmd := exec.CommandContext(ctx, rt.Binary, args...) //nolint:gosec // openRuntime checked whose word it is
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + os.Getenv("XDG_RUNTIME_DIR")}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	const tail = 500
	text := strings.TrimSpace(string(out))
	if len(text) > tail {
		text = text[len(text)-tail:]
	}
	return fmt.Errorf("%s delete --force %s: %w: %s", filepath.Base(rt.Binary), id, err, text)
}
