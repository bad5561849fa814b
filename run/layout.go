package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"tare/record"
	"tare/sandbox"
	"tare/workload"
)

// laysOut tells whether something is to be done before anything is measured.
func (t *trial) laysOut() bool {
	for i := range t.roles {
		if len(t.roles[i].Before) > 0 || t.roles[i].DropCaches {
			return true
		}
	}
	return false
}

// layOut runs the commands that roles want done before, one after another, and
// then drops the caches of what they wrote.
func (t *trial) layOut(ctx context.Context) error {
	drop := false
	for _, en := range t.ends {
		drop = drop || en.role.DropCaches
		if len(en.role.Before) == 0 {
			continue
		}
		if err := t.before(ctx, en); err != nil {
			return err
		}
	}
	if !drop {
		return nil
	}
	forget := t.engine.DropCaches
	if forget == nil {
		forget = DropCaches
	}
	if err := forget(t.engine.Dirs.Data); err != nil {
		t.rec.Warnings = append(t.rec.Warnings, record.Warning{
			Code: "caches-kept", Text: fmt.Sprintf("the host's page cache was not dropped, so that reads may come from memory: %v", err),
		})
	}
	return nil
}

// before runs a role's Before to its end: in its sandbox, or, of a role that
// makes sandboxes of its own, as the life of one more.
func (t *trial) before(ctx context.Context, en *end) error {
	out := newOutput(en.role.Name, "before", "") // no stdout: it is not the role's, and not parsed
	out.began = t.elapsed()
	t.outputs = append(t.outputs, out)
	cmd := sandbox.Command{Args: en.role.Before, Env: en.role.Env, Stdout: out, Stderr: out}
	var exit sandbox.Exit
	var err error
	if en.role.Mode == workload.Exec {
		exit, err = en.inst.Exec(ctx, cmd)
	} else {
		var l sandbox.Launcher
		if l, err = en.launcher(); err != nil {
			return err
		}
		spec, serr := t.another(en, "before")
		if serr != nil {
			return serr
		}
		var got sandbox.Launch
		got, err = l.Launch(ctx, spec, cmd, sandbox.Whole)
		exit = got.Exit
	}
	return en.judge(ctx, "what "+en.role.Name+" does before", exit, err, out, out)
}

// DropCaches writes back what is not yet on the disk that dir is on, and drops the
// host's clean page cache, directory entries and inodes: proc_sys_vm(5),
// drop_caches. It needs root, and a kernel that is this host's own.
func DropCaches(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the trial's own data
	if err != nil {
		return fmt.Errorf("writing back: %w", err)
	}
	defer d.Close() //nolint:errcheck // read only
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("writing back: %w", err)
	}
	err = os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return fmt.Errorf("%w; run as root, outside of a container", err)
	}
	return err
}
