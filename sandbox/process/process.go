// Package process is the baseline: the workload as plain processes of the host,
// with what every other kind has as well and nothing more: the same files, the
// same limits, the same network. What the other kinds cost is measured against
// it.
//
// The data path: 1. Start makes the control group tare/NAME with the limits;
// 2. package spawn forks the agent from a thread that has entered the group,
// the network namespace and a private mount namespace with the tree as its
// root, read-only or below an overlay; 3. commands go to the agent through its standard input and
// output; 4. Stop kills everything in the group and removes it.
//
// There is no process ID, user, IPC or UTS namespace and no seccomp filter: the
// baseline is native. Nothing is left to be told apart by a process ID
// namespace, because the control group finds every descendant.
//
// Like makes a kind that is the same but for the last step into the root, such as a chroot.
package process

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"syscall"
	"time"

	"tare/host/cgroup"
	"tare/host/loop"
	"tare/host/spawn"
	"tare/internal/rootless"
	"tare/param"
	"tare/record"
	"tare/sandbox"
)

// Native is the kind `process`, or one like it.
type Native struct {
	cfg      Config
	stateDir string
}

// Config is a kind whose sandboxes are processes of this host with something around them,
// such as a chroot, a filter of system calls or Landlock.
type Config struct {
	Name, About string
	Family      record.Family
	// Enter makes the tree at root, a mount point with all mounts in it, the root of the
	// calling thread. What it does to the thread besides, every program in the sandbox
	// inherits.
	Enter func(root string) error
}

// New returns the kind `process`. Check makes a tree below stateDir, so stateDir must not be
// mounted noexec.
func New(stateDir string) *Native {
	return Like(Config{
		Name: sandbox.Native, About: "plain processes with a control group and a network namespace: the baseline",
		Family: record.FamilyNative, Enter: spawn.PivotRoot,
	}, stateDir)
}

// Like returns a kind of the caller's own.
func Like(cfg Config, stateDir string) *Native { return &Native{cfg, stateDir} }

// Name implements sandbox.Kind.
func (k *Native) Name() string { return k.cfg.Name }

// About implements sandbox.Kind.
func (k *Native) About() string { return k.cfg.About }

// Params implements sandbox.Kind; there are none.
func (*Native) Params() []param.Param { return nil }

// Traits implements sandbox.Kind.
func (k *Native) Traits(map[string]string) sandbox.Traits {
	return sandbox.Traits{Traits: record.Traits{Family: k.cfg.Family, OwnKernel: record.No, Emulated: record.No, Native: sandbox.Native}}
}

// Check runs a ten-instruction program as Launch does.
func (k *Native) Check(ctx context.Context) error {
	if err := rootless.Check(); err != nil {
		return fmt.Errorf("%s: %w", k.cfg.Name, err)
	}
	return spawn.Probe(ctx, k, k.stateDir)
}

// CheckOptions implements sandbox.Chooser: this kind has no options to check.
func (*Native) CheckOptions(map[string]string) error { return nil }

// CheckHere implements sandbox.Chooser: a host may be unable to set a limit.
func (*Native) CheckHere(_ context.Context, spec sandbox.Spec) error { return spawn.CheckLimits(spec) }

// Start implements sandbox.Kind.
func (k *Native) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	i, err := k.start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", k.cfg.Name, spec.Name, err)
	}
	return i, nil
}

func (k *Native) start(ctx context.Context, spec sandbox.Spec) (_ *instance, err error) {
	group, h, err := spawn.Group(spec.Name, spawn.Limits(spec))
	if err != nil {
		return nil, err
	}
	i := &instance{kind: k.cfg, spec: spec, group: group}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if i.devices, err = loop.Open(spec.Mounts); err != nil {
		return nil, err
	}
	cmd := exec.Command("/tare", "internal", "agent")
	cmd.Env = spawn.Environment(spec)
	o := i.options(h)
	o.EndsWithInput = true
	i.agent, err = spawn.StartAgent(ctx, o, cmd)
	return i, err
}

func (i *instance) options(h *cgroup.Hierarchy) spawn.Options {
	return spawn.Options{
		Hierarchy: h, Group: i.group.Rel(), Private: true,
		Prepare: func() error { return enter(i.spec, i.devices, i.kind.Enter) },
	}
}

// Launch implements sandbox.Launcher. The lifecycle begins before the namespaces are
// made: Created is when they and the mounts are there, Started when the program
// was forked and executed. Both modes do the same; Whole reports no steps.
func (k *Native) Launch(ctx context.Context, spec sandbox.Spec, c sandbox.Command, mode sandbox.LaunchMode) (l sandbox.Launch, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s %s: %w", k.cfg.Name, spec.Name, err)
		}
	}()
	if len(c.Args) == 0 {
		return l, errors.New("no command given")
	}
	group, h, err := spawn.Group(spec.Name, spawn.Limits(spec))
	if err != nil {
		return l, err
	}
	i := &instance{kind: k.cfg, spec: spec, group: group}
	defer func() { err = errors.Join(err, i.Stop(context.WithoutCancel(ctx))) }()
	if i.devices, err = loop.Open(spec.Mounts); err != nil {
		return l, err
	}
	cmd := &exec.Cmd{Args: c.Args, Env: spawn.Environment(spec, c.Env...), Dir: c.Dir, SysProcAttr: &syscall.SysProcAttr{Credential: c.User.Credential()}}
	o := i.options(h)
	o.Prepare = func() (err error) {
		if err := enter(spec, i.devices, k.cfg.Enter); err != nil {
			return err
		}
		cmd.Path, err = sandbox.Find(c.Args, cmd.Env, c.Dir) // in the sandbox's root
		return err
	}
	times, err := spawn.Run(ctx, o, cmd, c.Stdout, c.Stderr)
	l.Begun = times.Begun
	// Of a lifecycle that was cut, the steps before that count as well.
	if mode == sandbox.Phased && !times.Started.IsZero() {
		l.Created, l.Started = times.Ready.Sub(times.Begun), times.Started.Sub(times.Begun)
	}
	if err != nil {
		return l, err
	}
	l.Exit, l.Exited = times.Exit, times.Ended.Sub(times.Begun)
	if kills, err := group.OOMKills(); err == nil {
		l.Exit.OOM = kills > 0
	}
	if !times.First.IsZero() {
		l.Instruction = times.First.Sub(times.Begun)
	}
	if err := i.destroy(ctx); err != nil {
		return l, err
	}
	l.Deleted = time.Since(times.Begun)
	return l, nil
}

// instance is one running sandbox.
type instance struct {
	kind  Config
	spec  sandbox.Spec
	group *cgroup.Group
	agent *spawn.Agent

	devices loop.Volumes
}

// Exec implements sandbox.Instance.
func (i *instance) Exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	before, counted := i.group.OOMKills()
	exit, err := i.agent.Run(ctx, c)
	if after, cerr := i.group.OOMKills(); cerr == nil && counted == nil {
		exit.OOM = after > before
	}
	if err != nil {
		return exit, fmt.Errorf("%s %s: %w", i.kind.Name, i.spec.Name, err)
	}
	return exit, nil
}

// LimitReached implements sandbox.Limited.
func (i *instance) LimitReached() bool {
	reached, err := i.group.LimitReached()
	return err == nil && reached
}

// Addr implements sandbox.Instance.
func (i *instance) Addr() netip.Addr { return i.spec.Network.Addr.Addr() }

// Scope implements sandbox.Instance.
func (i *instance) Scope() sandbox.LocalScope {
	return sandbox.LocalScope{Cgroups: []string{i.group.Rel()}, Limited: i.group.Rel(), Roles: sandbox.ThreadRoles{sandbox.AgentRule()}}
}

// Facts implements sandbox.Instance.
func (i *instance) Facts() map[string]string {
	return map[string]string{"sandbox": i.kind.Name}
}

// Stop implements sandbox.Instance. The mount namespace goes with the last
// process in it.
func (i *instance) Stop(ctx context.Context) error {
	err := i.destroy(ctx)
	if err == nil {
		err = spawn.EmptyOverlay(i.spec.Upper)
	}
	if err != nil {
		return fmt.Errorf("stopping %s %s: %w; `tare clean` tries again", i.kind.Name, i.spec.Name, err)
	}
	return nil
}

// destroy ends everything that runs in the sandbox.
func (i *instance) destroy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	err := i.group.Destroy(ctx)
	if i.agent != nil {
		err = errors.Join(err, i.agent.Close(ctx))
	}
	err = errors.Join(err, i.devices.Close())
	i.devices = nil
	return err
}

// stopWithin bounds Stop: a process in an uninterruptible sleep outlives any
// signal, and the study must go on or say so.
const stopWithin = 20 * time.Second

var (
	_ sandbox.Launcher = (*Native)(nil)
	_ sandbox.Chooser  = (*Native)(nil)
)
