package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/spawn"
	"tare/internal/devices"
	"tare/internal/rootless"
)

const (
	stepTime = 20 * time.Minute // of one command; compiling TensorFlow's Python takes two
	stepFile = 8 << 30          // bytes of one file that a command writes
)

// stepPath is where commands are looked for in the tree.
const stepPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"

// stepEnv makes what commands write the same every time: reproducible-builds.org/docs.
func stepEnv() []string {
	return []string{
		"PATH=" + stepPath, "HOME=/root", "LC_ALL=C.UTF-8", "TZ=UTC", "PYTHONHASHSEED=0", "PYTHONDONTWRITEBYTECODE=1",
		fmt.Sprintf("SOURCE_DATE_EPOCH=%d", sealTime),
	}
}

var errNeedsRoot = errors.New("its commands run in their own namespaces, which needs root; run with sudo")

// step runs a command in the tree, isolated. The command is the first process of a PID
// namespace, has a network without interfaces, sees and writes only the tree, and has no
// capability (capabilities(7)) with which it could leave. Its mounts are in a namespace
// that ends with it, so nothing remains even if this program is killed.
func (u *unpacker) step(ctx context.Context, args []string) error {
	if !rootless.Root() {
		return errNeedsRoot
	}
	program, err := u.find(args[0])
	if err != nil {
		return err
	}
	// The first fork in a new PID namespace makes its first process, and the namespace ends
	// with that process. Go forks once to test whether the kernel has pidfd_open(2)
	// (checkPidfdOnce in package os). Make it do so now, outside of the namespace.
	if _, err := os.FindProcess(os.Getpid()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	cmd := &exec.Cmd{Path: program, Args: args, Dir: "/", Env: stepEnv()}
	var said spawn.Tail
	cmd.Stdout, cmd.Stderr = &said, &said
	p, err := spawn.Start(spawn.Options{Private: true, Prepare: func() error { return enterTree(u.dir) }}, cmd)
	if err != nil {
		return fmt.Errorf("command %s: %w", args[0], err)
	}
	over := watch(ctx, p.Pid, p.Done())
	if over != nil {
		_ = cmd.Process.Kill() // the rest of its namespace ends with it
	}
	if _, err := p.Wait(); err != nil || over != nil {
		if over != nil {
			err = over
		}
		if strings.Contains(said.String(), "No space left on device") {
			err = fmt.Errorf("the disk, or /tmp with its 2 GiB, is full: %w", err)
		}
		return fmt.Errorf("command %s: %w%s", strings.Join(args, " "), err, spawn.Says(&said))
	}
	return nil
}

// find returns the path of a command in the tree.
func (u *unpacker) find(name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return name, nil
	}
	if strings.Contains(name, "/") {
		return "", fmt.Errorf("run: %q must be a name or an absolute path", name)
	}
	for dir := range strings.SplitSeq(stepPath, ":") {
		if st, err := u.root.Lstat(path.Join(dir, name)[1:]); err == nil && !st.IsDir() {
			return path.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("run: the tree has no %s; add the package that contains it to the list packages", name)
}

// enterTree makes the tree the root of the calling thread, which has a private mount
// namespace, and drops its privileges.
func enterTree(dir string) error {
	const apart = unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if err := unix.Unshare(apart); err != nil {
		return fmt.Errorf("cannot make namespaces: %w", err)
	}
	unix.Umask(0o022) // the thread's own: CLONE_NEWNS implies CLONE_FS
	for _, m := range []struct {
		source, target, fstype string
		flags                  uintptr
		options                string
	}{
		{dir, dir, "", unix.MS_BIND | unix.MS_REC, ""},
		{"tmpfs", filepath.Join(dir, "dev"), "tmpfs", unix.MS_NOSUID | unix.MS_NOEXEC, "mode=755,size=64m"},
		{"tmpfs", filepath.Join(dir, "tmp"), "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777,size=2g"},
		{"tmpfs", filepath.Join(dir, "run"), "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755,size=64m"},
	} {
		if err := unix.Mount(m.source, m.target, m.fstype, m.flags, m.options); err != nil {
			return fmt.Errorf("mounting %s: %w", m.target, err)
		}
	}
	if err := mountProc(filepath.Join(dir, "proc")); err != nil {
		return err
	}
	if err := devices.Nodes(filepath.Join(dir, "dev")); err != nil {
		return err
	}
	if err := spawn.PivotRoot(dir); err != nil {
		return err
	}
	return powerless()
}

// mountProc mounts proc(5) of this PID namespace, because the new namespace has no process
// yet that could mount its own. From Linux 5.8 on it hides other processes
// (hidepid=ptraceable). Older kernels know hidepid only as a number, which some apply to
// the host's /proc too; they refuse the word, so the mount gets no option there.
// hidepid=invisible would hide nothing, because it exempts root's group, which commands
// have.
func mountProc(target string) error {
	const flags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	err := unix.Mount("proc", target, "proc", flags, "hidepid=ptraceable")
	if errors.Is(err, unix.EINVAL) {
		err = unix.Mount("proc", target, "proc", flags, "")
	}
	if err != nil {
		return fmt.Errorf("mounting %s: %w", target, err)
	}
	return nil
}

// powerless drops all capabilities of the calling thread and of the programs that it
// executes. Files of the tree belong to root, so the command can still write them.
func powerless() error {
	for c := range uintptr(64) {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // beyond the kernel's last
		}
		if err != nil {
			return fmt.Errorf("cannot drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot refuse new privileges: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("cannot drop capabilities: %w", err)
	}
	return nil
}

// remove removes the paths that match the patterns, with their contents.
func (u *unpacker) remove(patterns []string) error {
	for _, p := range patterns {
		p, err := place(p)
		if err != nil {
			return err
		}
		found, err := fs.Glob(u.root.FS(), p)
		if err != nil {
			return err
		}
		for _, f := range found {
			if err := u.root.RemoveAll(f); err != nil {
				return fmt.Errorf("remove: %w", err)
			}
		}
	}
	return nil
}

// leftovers are files that differ from build to build, or that a read-only tree does not
// need.
func leftovers() []string {
	return []string{
		"/var/cache/ldconfig", "/var/cache/apt", "/var/cache/debconf", "/var/lib/apt", "/var/lib/dpkg",
		"/var/log/*", "/root/.cache", "/root/.*_history", "/etc/machine-id", "/etc/.pwd.lock",
	}
}
