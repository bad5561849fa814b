package oci

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/host/network"
	"tare/host/rootfs"
	"tare/host/spawn"
	"tare/internal/files"
	"tare/sandbox"
)

// CheckCheckpoint implements sandbox.Checkpointer: it saves and restores a real
// container with the smallest program.
func (k *Runtime) CheckCheckpoint(ctx context.Context) error {
	binary, err := k.binary()
	if err != nil {
		return err
	}
	if _, there := rootfs.Lookup("criu"); !there && !isRunsc(binary) {
		return fmt.Errorf("%s needs the program criu to save containers, and this host does not have it; apt-get install criu", k.cfg.Name)
	}
	if err := spawn.ProbeWith(ctx, k.cfg.Name, k.cfg.StateDir, k.tryCheckpoint); err != nil {
		return fmt.Errorf("%s cannot save and restore a container on this host: %w", k.cfg.Name, err)
	}
	return nil
}

// tryCheckpoint saves and restores /tare-pause.
func (k *Runtime) tryCheckpoint(ctx context.Context, spec sandbox.Spec) error {
	up, starts := make(chan struct{}, 1), 0
	saved, err := k.saveAndRestore(ctx, spec, sandbox.Command{Args: []string{"/tare-pause"}, Stdout: firstWrite(up)}, func(ctx context.Context) error {
		if starts++; starts == 2 {
			// It has nothing more to say: that it keeps running must do.
			select {
			case <-time.After(keepsRunning):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case <-up:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err == nil && saved.Bytes == 0 {
		err = errors.New("it wrote nothing")
	}
	return err
}

// keepsRunning is how long a restored program must live to have been restored. A runtime
// that fails ends much sooner.
const keepsRunning = 300 * time.Millisecond

// firstWrite tells of a write, and forgets what is told too often.
type firstWrite chan struct{}

// Write never fails.
func (f firstWrite) Write(p []byte) (int, error) {
	select {
	case f <- struct{}{}:
	default:
	}
	return len(p), nil
}

// Checkpoint implements sandbox.Checkpointer by `RUNTIME run`, checkpoint, and
// restore. What is saved lies in the sandbox's own directory, on the file system
// of tare's state: the disk to be measured has no part in it.
func (k *Runtime) Checkpoint(ctx context.Context, spec sandbox.Spec, cmd sandbox.Command, ready func(context.Context) error) (s sandbox.Saved, err error) {
	if s, err = k.saveAndRestore(ctx, spec, cmd, ready); err != nil {
		err = fmt.Errorf("%s %s: %w", k.cfg.Name, spec.Name, err)
	}
	return s, err
}

func (k *Runtime) saveAndRestore(ctx context.Context, spec sandbox.Spec, cmd sandbox.Command, ready func(context.Context) error) (s sandbox.Saved, err error) {
	ctr, err := k.prepareFor(ctx, spec, cmd)
	if err != nil {
		return s, err
	}
	c := &checkpoint{container: ctr, cmd: cmd, images: filepath.Join(spec.Dir, "saved"), work: filepath.Join(spec.Dir, "work")}
	defer func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			c.deleteWithin = deleteLate
		}
		late := context.WithoutCancel(ctx)
		c.registered()
		wait := c.awaitForeground // at first the runtime may tidy; then it has had its time
		err = errors.Join(err, c.end(late, func(ctx context.Context) error {
			defer func() { wait = c.stopForeground }()
			return wait(ctx)
		}), os.RemoveAll(c.images), os.RemoveAll(c.work))
	}()
	for _, dir := range []string{c.images, c.work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return s, err
		}
	}
	watch := c.watchLaunch()
	s, err = c.through(ctx, ready)
	if watch.killed(err != nil && ctx.Err() == nil) {
		err = c.outOfMemory(err)
	}
	return s, err
}

// checkpoint is a container that is saved and restored.
type checkpoint struct {
	*container
	cmd     sandbox.Command
	images  string      // what is saved
	work    string      // criu's logs
	running *foreground // nil: the container does not run
}

// foreground is a run of the container by the runtime in the foreground, from `run` or `restore` to its end.
type foreground struct {
	proc           *spawn.Process
	cmd            *exec.Cmd
	stdout, stderr *spawn.Sink
	said           spawn.Tail
}

// through is what a saved container goes through.
func (c *checkpoint) through(ctx context.Context, ready func(context.Context) error) (s sandbox.Saved, err error) {
	if s.Cold, err = c.startForeground(ctx, ready, "run", "--bundle", c.bundle, c.spec.Name); err != nil {
		return s, err
	}
	save := c.command(append(append([]string{"checkpoint"}, c.where()...), c.spec.Name)...)
	var said spawn.Tail
	l, err := spawn.Run(ctx, c.options(""), save, &said, &said)
	if err != nil {
		return s, hung(ctx, save, l.Begun, err)
	}
	s.Save = l.Ended.Sub(l.Begun)
	if l.Exit.Code != 0 {
		return s, fmt.Errorf("%s checkpoint: exit code %d%s", c.kind.cfg.Runtime, l.Exit.Code, c.says(&said, "dump.log"))
	}
	if s.Bytes, err = files.Size(c.images); err != nil {
		return s, err
	}
	// A saved container has ended, and its runtime goes, mostly after deleting it.
	if err := c.awaitForeground(ctx); err != nil {
		return s, fmt.Errorf("after the checkpoint: %w", err)
	}
	if c.exists() {
		if err := c.delete(ctx); err != nil {
			return s, err
		}
	}
	if err := readdress(c.spec.Network); err != nil {
		return s, err
	}
	if s.Restore, err = c.startForeground(ctx, ready, "restore", append(append([]string{"--bundle", c.bundle}, c.where()...), c.spec.Name)...); err != nil {
		return s, err
	}
	return s, nil
}

// where are the arguments that name the directories. gVisor ignores the second.
func (c *checkpoint) where() []string {
	return []string{"--image-path", c.images, "--work-path", c.work}
}

// startForeground starts the runtime and returns how long it took until ready.
func (c *checkpoint) startForeground(ctx context.Context, ready func(context.Context) error, verb string, args ...string) (time.Duration, error) {
	l := &foreground{cmd: c.command(append([]string{verb}, args...)...)}
	var err error
	if l.stdout, err = spawn.NewSink(c.cmd.Stdout, nil); err != nil {
		return 0, err
	}
	if l.stderr, err = spawn.NewSink(tee{c.cmd.Stderr, &l.said}, nil); err != nil {
		l.stdout.Close()
		return 0, err
	}
	l.cmd.Stdout, l.cmd.Stderr = l.stdout.Child, l.stderr.Child
	l.proc, err = spawn.Start(c.rooted(""), l.cmd)
	l.stdout.Started()
	l.stderr.Started()
	if err != nil {
		l.stdout.Close()
		l.stderr.Close()
		return 0, err
	}
	c.running = l
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	heard := make(chan error, 1)
	go func() { heard <- ready(own) }()
	select {
	case err = <-heard:
		if err == nil {
			return time.Since(l.proc.Begun), nil
		}
	case <-l.proc.Done():
		cancel()
		<-heard //nolint:errcheck // why it is not ready is that it ended
		_, died := l.proc.Wait()
		l.stderr.Drain(time.Second)
		return 0, fmt.Errorf("%s %s ended before it was ready%s%s", c.kind.cfg.Runtime, verb, how(died), c.says(&l.said, "restore.log"))
	}
	return 0, fmt.Errorf("%s %s: it did not become ready: %w%s", c.kind.cfg.Runtime, verb, err, spawn.Says(&l.said))
}

func how(err error) string {
	if err == nil {
		return ""
	}
	return " (" + exitOnly(err).Error() + ")"
}

// awaitForeground waits until the runtime's foreground process has ended by itself.
func (c *checkpoint) awaitForeground(ctx context.Context) error {
	if c.running == nil {
		return nil
	}
	select {
	case <-c.running.proc.Done():
		c.closeForeground()
		return nil
	case <-ctx.Done():
		return fmt.Errorf("`%s` does not end: %w", strings.Join(c.running.cmd.Args, " "), ctx.Err())
	}
}

// registered waits until the runtime knows of a container that has just started, so that
// it can delete the container: gVisor notes a restored one only when all of its
// memory is there.
func (c *checkpoint) registered() {
	for begun := time.Now(); c.running != nil && !c.exists() && time.Since(begun) < registerIn; {
		select {
		case <-c.running.proc.Done():
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// registerIn bounds registered; what it misses is ended by the control group.
const registerIn = 2 * time.Second

// stopForeground ends what is left of it.
func (c *checkpoint) stopForeground(ctx context.Context) error {
	if c.running == nil {
		return nil
	}
	_ = c.running.cmd.Process.Kill()
	ctx, cancel := context.WithTimeout(ctx, deleteInTime)
	defer cancel()
	return c.awaitForeground(ctx)
}

func (c *checkpoint) closeForeground() {
	c.running.stdout.Drain(100 * time.Millisecond)
	c.running.stderr.Drain(100 * time.Millisecond)
	c.running = nil
}

// says is what is to be told of a failure: the errors in criu's log, if it left
// one in the work directory, else what the runtime said.
func (c *checkpoint) says(said *spawn.Tail, log string) string {
	b, err := os.ReadFile(filepath.Join(c.work, log)) //nolint:gosec // in our own directory
	if err != nil {
		return spawn.Says(said)
	}
	var told []string
	for line := range strings.Lines(string(b)) {
		// "(00.006868) Error (criu/vdso.c:381): vdso: Unexpected rt vDSO area bounds"
		_, text, found := strings.Cut(line, "Error (")
		if _, text, cut := strings.Cut(text, "): "); found && cut && !strings.HasPrefix(text, "exited, status") {
			told = append(told, strings.TrimSpace(text))
		}
	}
	if len(told) == 0 {
		return spawn.Says(said)
	}
	return "; criu says: " + strings.Join(told[:min(len(told), 3)], "; ") + " (see also: criu check)"
}

// readdress gives the interface in a prepared network namespace its address
// again. gVisor takes it away when it starts, so that the host's own network
// stack does not answer for it, and looks for it there when it restores.
func readdress(n sandbox.Network) error {
	if n.Path == "" || n.Addr == (netip.Prefix{}) {
		return nil
	}
	return network.Enter(n.Path, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("network: %w", err)
		}
		defer h.Close()
		links, err := h.LinkList()
		if err != nil {
			return fmt.Errorf("network: the links of %s: %w", n.Path, err)
		}
		addr, err := netlink.ParseAddr(n.Addr.String())
		if err != nil {
			return err
		}
		for _, l := range links {
			if l.Type() != "veth" {
				continue
			}
			if err := h.AddrReplace(l, addr); err != nil {
				return fmt.Errorf("network: setting %s on %s again: %w", n.Addr, l.Attrs().Name, err)
			}
			return nil
		}
		return fmt.Errorf("network: no interface is left in %s", n.Path)
	})
}

var _ sandbox.Checkpointer = (*Runtime)(nil)
