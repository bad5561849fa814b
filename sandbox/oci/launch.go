package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/spawn"
	"tare/sandbox"
)

// launch runs a prepared container through its whole lifecycle, and removes it. The
// runtime stays in this process's control group, as it does for any user: in a
// new one `runc run` takes about 2 ms of 22 longer. Only the container is in
// tare/NAME, and nobody samples a container this short-lived.
func (c *container) launch(ctx context.Context, cmd sandbox.Command, mode sandbox.LaunchMode) (l sandbox.Launch, err error) {
	defer func() {
		nothing := func(context.Context) error { return nil }
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			c.deleteWithin = deleteLate
		}
		err = errors.Join(err, c.end(context.WithoutCancel(ctx), nothing))
	}()
	watch := c.watchLaunch()
	defer func() {
		bad := err != nil || l.Exit.Code != 0 || l.Exit.Signal != ""
		if watch.killed(bad && ctx.Err() == nil) {
			l.Exit.OOM, err = true, c.outOfMemory(err)
		}
	}()
	if mode == sandbox.Phased {
		return c.phased(ctx, cmd, watch)
	}
	run := c.command("run", "--bundle", c.bundle, c.spec.Name)
	ran, err := spawn.Run(ctx, c.rooted(c.starts), run, cmd.Stdout, cmd.Stderr)
	l.Begun = ran.Begun
	if err != nil {
		return l, hung(ctx, run, ran.Begun, err)
	}
	// `run` returns when the container is deleted; its end in between does not
	// show from outside.
	l = sandbox.Launch{Begun: ran.Begun, Exit: ran.Exit, Exited: ran.Ended.Sub(ran.Begun), Deleted: ran.Ended.Sub(ran.Begun)}
	if !ran.First.IsZero() {
		l.Instruction = ran.First.Sub(ran.Begun)
	}
	return l, nil
}

// phased runs the steps of the lifecycle apart. The container's output goes through the pipes
// that `create` was given. How its command ended nobody tells, so its group is asked
// for kills before it goes.
func (c *container) phased(ctx context.Context, cmd sandbox.Command, watch *launchWatch) (l sandbox.Launch, err error) {
	var first time.Time
	stdout, err := spawn.NewSink(cmd.Stdout, func(at time.Time) { first = at })
	if err != nil {
		return l, err
	}
	defer stdout.Close()
	var said spawn.Tail
	stderr, err := spawn.NewSink(tee{cmd.Stderr, &said}, nil)
	if err != nil {
		return l, err
	}
	defer stderr.Close()
	step := func(o spawn.Options, verb string, args ...string) (begun, ended time.Time, err error) {
		run := c.command(append([]string{verb}, args...)...)
		run.Stdout, run.Stderr = stdout.Child, stderr.Child
		p, err := spawn.Start(o, run)
		if err != nil {
			return begun, ended, err
		}
		select {
		case <-p.Done():
		case <-ctx.Done():
			_ = run.Process.Kill()
		}
		ended, err = p.Wait()
		switch {
		case err != nil && ctx.Err() != nil:
			c.stuck = c.stuck || verb == "delete" && errors.Is(ctx.Err(), context.DeadlineExceeded)
			err = fmt.Errorf("%w%s", hung(ctx, run, p.Begun, ctx.Err()), spawn.Says(&said))
		case err != nil:
			err = fmt.Errorf("%s %s: %w%s", c.kind.cfg.Runtime, verb, exitOnly(err), spawn.Says(&said))
		}
		return p.Begun, ended, err
	}

	pidFile := filepath.Join(c.bundle, "pid")
	begun, ended, err := step(c.rooted(""), "create", "--bundle", c.bundle, "--pid-file", pidFile, c.spec.Name)
	l.Begun = begun
	if err != nil {
		return l, err
	}
	l.Created = ended.Sub(begun)
	pid, err := readPid(pidFile)
	if err != nil {
		return l, err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return l, fmt.Errorf("following process %d of the container: %w", pid, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	if _, ended, err = step(c.options(""), "start", c.spec.Name); err != nil {
		return l, err
	}
	l.Started = ended.Sub(begun)
	if err := awaitEnd(ctx, fd); err != nil {
		return l, fmt.Errorf("waiting for the container's first process to end: %w", err)
	}
	l.Exited = time.Since(begun)
	l.Exit.OOM = watch.soFar()
	// By force, because runsc takes a sandbox process that has ended, and that
	// init has not waited for yet, for a running one.
	if _, ended, err = step(c.options(""), "delete", "--force", c.spec.Name); err != nil {
		return l, err
	}
	l.Deleted = ended.Sub(begun)
	stdout.Started()
	stderr.Started()
	stdout.Drain(time.Second)
	stderr.Drain(time.Second)
	if !first.IsZero() {
		// Not after the end: then it was only seen late.
		l.Instruction = min(first.Sub(begun), l.Exited)
	}
	return l, nil
}

// awaitEnd waits for the end of the process behind a pidfd: pidfd_open(2).
func awaitEnd(ctx context.Context, fd int) error {
	for ctx.Err() == nil {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // a descriptor is small
		n, err := unix.Poll(fds, 100)                              // milliseconds, to see ctx
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			return nil
		}
	}
	return ctx.Err()
}

// hung says which command was killed because ctx ended, and after how long.
// Other errors are returned as they are.
func hung(ctx context.Context, cmd *exec.Cmd, begun time.Time, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("`%s` did not finish within %s and was killed: %w",
		strings.Join(cmd.Args, " "), time.Since(begun).Round(100*time.Millisecond), err)
}

func exitOnly(err error) error {
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return errors.New(failed.String())
	}
	return err
}

// tee writes to both; the first may be nil.
type tee struct {
	to   io.Writer
	tail *spawn.Tail
}

// Write never fails.
func (t tee) Write(p []byte) (int, error) {
	if t.to != nil {
		_, _ = t.to.Write(p)
	}
	return t.tail.Write(p)
}
