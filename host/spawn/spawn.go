// Package spawn starts a host process that is in a control group and in
// namespaces from its first instruction on, without a helper program between.
//
// The data path: 1. a goroutine locks itself to an operating system thread; 2. the thread
// enters the control group and, by the caller's Prepare, namespaces and a new root; 3. it
// forks, and the child inherits all of that; 4. the thread leaves the control group and
// waits for the child; 5. the thread ends after the child.
//
// To run this program again as a helper that sets itself up and executes the command was
// rejected: the start of a large Go program takes some 10 ms, which would count as part of
// every sandbox's start.
//
// PR_SET_PDEATHSIG (prctl(2)) kills the child when the *thread* that forked it
// ends. The thread waits for the child, so that happens only when this process dies.
package spawn

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/cgroup"
)

// Marker is the environment variable by which `tare clean` finds tare's processes.
const Marker = cgroup.Marker

// Options say how to start a process.
type Options struct {
	Hierarchy *cgroup.Hierarchy
	Group     string       // control group to start in; "": this process's
	Prepare   func() error // run on the thread before the fork; nil for nothing
	Private   bool         // make a private mount namespace before Prepare

	// EndsWithInput: the process ends when its standard input does, like an agent. It is not
	// killed when this program dies, so that it can end what it has started.
	EndsWithInput bool
}

// Process is a started process. Its fields do not change once Start returned.
type Process struct {
	Pid     int
	Begun   time.Time // before the first step
	Ready   time.Time // after Prepare
	Started time.Time // after fork and exec

	done  chan struct{}
	ended time.Time
	err   error
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end, and returns its time and the error of exec.Cmd.Wait.
func (p *Process) Wait() (ended time.Time, err error) {
	<-p.done
	return p.ended, p.err
}

// Start starts cmd. Files in cmd should be *os.File, so that no goroutine copies between
// them. The process is killed when this program dies, unless EndsWithInput is set.
func Start(o Options, cmd *exec.Cmd) (*Process, error) {
	p := &Process{done: make(chan struct{}), Begun: time.Now()}
	started := make(chan error)
	go p.thread(o, cmd, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// thread is the goroutine of one process. If it has changed its thread, it ends without
// unlocking it. Then the Go runtime ends the thread, so that no namespace outlives it and no
// other goroutine runs there.
func (p *Process) thread(o Options, cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		// /proc/self shows the main thread, and it cannot be ended. Keep it locked, so that
		// the new goroutine gets another thread.
		go p.thread(o, cmd, started)
		<-p.done
		runtime.UnlockOSThread()
		return
	}
	defer close(p.done)
	if err := p.fork(o, cmd); err != nil {
		p.err = err
		started <- err
		return
	}
	started <- nil
	err := cmd.Wait()
	p.ended, p.err = time.Now(), err
	if o.Prepare == nil && !o.Private {
		runtime.UnlockOSThread() // unchanged: other goroutines may use it
	}
}

func (p *Process) fork(o Options, cmd *exec.Cmd) (err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if !o.EndsWithInput {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	if o.Group != "" {
		leave, eerr := enter(o.Hierarchy, o.Group, cmd.SysProcAttr)
		if eerr != nil {
			return eerr
		}
		defer func() {
			lerr := leave()
			if lerr == nil {
				return
			}
			// This program would count as a process of the sandbox, and be killed with it.
			if cmd.Process != nil && err == nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
			err = errors.Join(err, lerr)
		}()
	}
	if o.Private {
		if err := private(); err != nil {
			return err
		}
	}
	if o.Prepare != nil {
		if err := o.Prepare(); err != nil {
			return err
		}
	}
	p.Ready = time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}
	p.Pid, p.Started = cmd.Process.Pid, time.Now()
	return nil
}

// private gives the calling thread a mount namespace from which nothing
// propagates to the host's: mount_namespaces(7).
func private() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("cannot make a mount namespace: %w; run as root", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make the mounts private: %w", err)
	}
	return nil
}

// enter makes the next child of the calling thread start in the group. With version 2 the
// kernel does it (CLONE_INTO_CGROUP of clone3(2)). Version 1 can place single threads, so the
// thread enters, and leave brings it back. A thread that moves itself takes no global lock in
// the kernel; moving a process afterwards waits several milliseconds for an RCU grace period
// (cgroup_procs_write_start in kernel/cgroup/cgroup.c).
func enter(h *cgroup.Hierarchy, rel string, attr *syscall.SysProcAttr) (leave func() error, err error) {
	home, err := os.Open("/proc/thread-self/cgroup")
	if err != nil {
		return nil, err
	}
	defer home.Close() //nolint:errcheck // read only
	memberships, err := Memberships(home)
	if err != nil {
		return nil, err
	}
	if h.Version == cgroup.V2 {
		return enterUnified(h, rel, attr)
	}
	// Open the files for leave now: after Prepare the thread may see other files.
	var back []*os.File
	leave = func() error {
		var all error
		for _, f := range back {
			_, err := f.WriteString("0") // the writer itself
			all = errors.Join(all, err, f.Close())
		}
		if all != nil {
			return fmt.Errorf("cannot leave the control group: %w", all)
		}
		return nil
	}
	entered := map[string]bool{} // controllers may be mounted together
	for _, m := range memberships {
		dir, ok := h.Path(m.Controller, rel)
		old, _ := h.Path(m.Controller, m.Path)
		if _, err := os.Stat(dir); err != nil || m.Controller == "" || !ok || entered[dir] {
			continue
		}
		entered[dir] = true
		f, err := os.OpenFile(filepath.Join(old, "tasks"), os.O_WRONLY, 0) //nolint:gosec // a cgroup file
		if err == nil {
			back = append(back, f)
			err = os.WriteFile(filepath.Join(dir, "tasks"), []byte("0"), 0)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot enter the control group: %w", err), leave())
		}
	}
	return leave, nil
}

func enterUnified(h *cgroup.Hierarchy, rel string, attr *syscall.SysProcAttr) (leave func() error, err error) {
	dir, ok := h.Path("", rel)
	if !ok {
		return nil, fmt.Errorf("no hierarchy of this host has the control group %s", rel)
	}
	f, err := os.Open(dir) //nolint:gosec // a cgroup directory of ours
	if err != nil {
		return nil, fmt.Errorf("control group %s: %w", rel, err)
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(f.Fd())
	return f.Close, nil
}

// Membership is one controller's line of /proc/PID/cgroup.
type Membership struct {
	Controller string // "" for version 2
	Path       string // with a leading slash
}

// Memberships reads /proc/PID/cgroup (cgroups(7)), at most 64 KiB of it. A line
// is "4:cpu,cpuacct:/user.slice"; one of version 2 is "0::/user.slice".
func Memberships(r io.Reader) ([]Membership, error) {
	var out []Membership
	s := bufio.NewScanner(io.LimitReader(r, 64<<10))
	for s.Scan() {
		parts := strings.SplitN(s.Text(), ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			return nil, fmt.Errorf("line %q of /proc/PID/cgroup is not ID:CONTROLLERS:PATH", s.Text())
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			out = append(out, Membership{Controller: c, Path: parts[2]})
		}
	}
	return out, s.Err()
}
