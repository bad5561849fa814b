// Package oci runs sandboxes by any OCI runtime, straight through the runtime's
// command line (runc, crun, gVisor's runsc, youki, kata-runtime): no daemon, no
// image, nothing between that would be weighed too.
//
// The data path: 1. Start makes the control group tare/NAME, and a bundle whose
// config.json describes the tree, the limits and the prepared network
// namespace; 2. `RUNTIME run` is started in the group tare/NAME/rt, the
// container in tare/NAME/c, so that all that the runtime costs is in tare/NAME;
// 3. the container's first process is the agent, reached through the runtime's
// standard input and output; 4. Stop calls `RUNTIME delete --force`, kills
// whatever is left in the group, and removes group, state and bundle.
//
// The containers of kind K are in the runtime's state directory /run/tare/oci/K;
// the file runtime.json in it tells `tare clean` which command deletes them.
package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tare/host/cgroup"
	"tare/host/loop"
	"tare/host/rootfs"
	"tare/host/spawn"
	"tare/internal/rootless"
	"tare/param"
	"tare/sandbox"
	"tare/volume"
)

// RootDir holds a state directory for each kind; `tare clean` looks here.
func RootDir() string { return filepath.Join(rootless.RunDir(), "oci") }

// Config says how to use one runtime.
type Config struct {
	Name     string   // of the kind
	About    string   // one sentence
	Runtime  string   // binary: a path, or a name that rootfs.Lookup finds
	Args     []string // global arguments, before the runtime's verb
	Install  string   // what a user does when the binary is missing
	StateDir string   // Check makes a tree below it, so it must not be mounted noexec
}

// Runtime is a kind of sandbox: the containers of one configured OCI runtime.
type Runtime struct {
	cfg     Config
	version func() string
	within  time.Duration // bounds one start of Check

	mu     sync.Mutex
	known  bool // whether private was found out
	hidden bool // the runtime needs a mount namespace without the version 2 tree

	stateMu sync.Mutex
	users   int      // containers that use the state directory
	others  []string // what was in it before the first of them
}

// paramSettle is the parameter of gVisor's kinds that run waits by.
const paramSettle = "settle"

// Parameters that are flags of runsc, by its names. asIs leaves a flag out.
const (
	flagDirectfs = "directfs"
	flagOverlay  = "overlay2"
	flagAccess   = "file-access-mounts"
	asIs         = "default"
)

// flags are the parameters of gVisor's kinds that are flags of runsc.
func flags() []param.Param {
	return []param.Param{
		{Name: flagDirectfs, Type: param.Enum, Default: asIs, Words: []string{asIs, "true", "false"},
			Help: "runsc's flag: whether the sentry opens the host's files itself (true), or through the gofer; default: without the flag"},
		{Name: flagOverlay, Type: param.Enum, Default: asIs, Words: []string{asIs, "none", "root:self", "root:memory", "all:self", "all:memory"},
			Help: "runsc's flag: gVisor's own overlay over the root or all mounts, in a file (self) or in memory; default: without the flag, but none for a writable root"},
		{Name: flagAccess, Type: param.Enum, Default: asIs, Words: []string{asIs, "shared", "exclusive"},
			Help: "runsc's flag: whether others may change the files of volumes (shared), so that gVisor must check the host's files repeatedly; default: without the flag"},
	}
}

// New returns the kind of a configuration. Nothing is looked up yet.
func New(cfg Config) *Runtime {
	k := &Runtime{cfg: cfg, within: spawn.ProbeTime}
	k.version = sync.OnceValue(func() string { return readVersion(cfg.Runtime) })
	return k
}

// Name implements sandbox.Kind.
func (k *Runtime) Name() string { return k.cfg.Name }

// About implements sandbox.Kind.
func (k *Runtime) About() string { return k.cfg.About }

// Params implements sandbox.Kind. gVisor alone has some: a runtime with other
// arguments is another kind, defined in the study.
func (k *Runtime) Params() []param.Param {
	if !isRunsc(k.cfg.Runtime) {
		return nil
	}
	return append([]param.Param{{Name: paramSettle, Type: param.Duration, Default: "1s", Min: 0, Max: 60,
		Help: "minimum age of a sandbox before tare measures in it: in the first second gVisor's clock is not calibrated, and each reading of it is a system call; 0s measures that too"}}, flags()...)
}

// Check runs the smallest program in a real container.
func (k *Runtime) Check(ctx context.Context) error {
	if _, err := k.binary(); err != nil {
		return err
	}
	if err := rootless.Check(); err != nil {
		return fmt.Errorf("%s: %w", k.cfg.Name, err)
	}
	k.mu.Lock()
	k.known = false // look again: the host may have changed
	k.mu.Unlock()
	_, err := k.variant(ctx, true)
	return err
}

// CheckOptions implements sandbox.Chooser; each option is checked by its Param.
func (*Runtime) CheckOptions(map[string]string) error { return nil }

// CheckHere implements sandbox.Chooser: a host may be unable to set a limit, and gVisor knows
// no block device of the host (its gofer opens files, folders, sockets and pipes).
func (k *Runtime) CheckHere(_ context.Context, spec sandbox.Spec) error {
	if k.gvisor() && slices.ContainsFunc(spec.Volumes, func(v volume.Volume) bool { return v.Mode == volume.Block }) {
		return errors.New("gVisor cannot open block devices of the host; use a volume with a file system")
	}
	return spawn.CheckLimits(spec)
}

// gvisor reports whether the runtime is runsc, under whatever name.
func (k *Runtime) gvisor() bool { return isRunsc(k.cfg.Runtime) }

func (k *Runtime) binary() (string, error) {
	path, ok := rootfs.Lookup(k.cfg.Runtime)
	if !ok {
		hint := cmp.Or(k.cfg.Install, "install it, or correct its path in the study")
		return "", fmt.Errorf("%s: this host has no program %s; %s", k.cfg.Name, k.cfg.Runtime, hint)
	}
	return path, nil
}

// global are the arguments of every call. In a user namespace no control group is the
// runtime's: runc finds that out, others are told.
func (k *Runtime) global() []string {
	args := slices.Clone(k.cfg.Args)
	switch {
	case !rootless.Is():
	case k.gvisor():
		args = append(args, "--ignore-cgroups")
	case filepath.Base(k.cfg.Runtime) == "crun":
		args = append(args, "--cgroup-manager=disabled")
	}
	return args
}

// args are the runtime's global arguments for a container.
//
// gVisor puts an overlay of its own over a root that can be written, and keeps
// what is written in one file of the host (--overlay2=root:self): a file system
// of the sentry's, where natively and in other containers the host's is written.
// To compare like with like it is turned off, unless the user's own arguments say
// something about it.
//
// Its network takes the interfaces of the namespace that are up. In a new namespace lo is
// down, so that a sandbox without a network would not even reach itself. Its network "none"
// has a loopback of its own.
func (k *Runtime) args(c *container) []string {
	args := k.global()
	for _, p := range flags() {
		if v := c.spec.Options[p.Name]; v != "" && v != asIs {
			args = append(args, "--"+p.Name+"="+v) // the last one counts
		}
	}
	own := slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(strings.TrimLeft(a, "-"), "overlay") })
	if c.spec.Upper != "" && isRunsc(c.binary) && !own {
		args = append(args, "--overlay2=none")
	}
	if c.spec.Network.Path == "" && slices.Contains(args, sandboxNetwork) {
		args = append(args, "--network=none") // the last one counts
	}
	return args
}

// variant finds by trying whether the runtime works as it is. On a hybrid host
// crun refuses ("cgroups in hybrid mode not supported") when a controller sits
// on the version 2 tree; it works where it does not see that tree. Any runtime
// that fails with a word about cgroups gets that second try. Without must the
// attempt is left out on hosts that are not hybrid. In a user namespace it does not see
// any tree.
func (k *Runtime) variant(ctx context.Context, must bool) (hidden bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known {
		return k.hidden, nil
	}
	h, err := cgroup.Detect()
	if err != nil {
		return false, err
	}
	mixed := h.Version == cgroup.Hybrid || h.Version == cgroup.None
	if !mixed && !must {
		return false, nil
	}
	err = spawn.ProbeWithin(ctx, k.within, probe{k, false}, k.cfg.StateDir, nil)
	if err != nil && mixed && strings.Contains(strings.ToLower(err.Error()), "cgroup") {
		if spawn.ProbeWithin(ctx, k.within, probe{k, true}, k.cfg.StateDir, nil) == nil {
			k.known, k.hidden = true, true
			return true, nil
		}
	}
	if err != nil {
		return false, err
	}
	k.known, k.hidden = true, false
	return false, nil
}

// probe is a Runtime that uses a fixed variant.
type probe struct {
	*Runtime
	hidden bool
}

// Launch implements sandbox.Launcher.
func (p probe) Launch(ctx context.Context, spec sandbox.Spec, c sandbox.Command, mode sandbox.LaunchMode) (sandbox.Launch, error) {
	ctr, err := p.prepare(ctx, spec, c, p.hidden)
	if err != nil {
		return sandbox.Launch{}, err
	}
	ctr.starts = ctr.runtimeGroup() // as in Start: the check must find a group that cannot be entered
	return ctr.launch(ctx, c, mode)
}

// Start implements sandbox.Kind.
func (k *Runtime) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	i, err := k.start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", k.cfg.Name, spec.Name, err)
	}
	return i, nil
}

func (k *Runtime) start(ctx context.Context, spec sandbox.Spec) (_ *instance, err error) {
	hidden, err := k.variant(ctx, false)
	if err != nil {
		return nil, err
	}
	ctr, err := k.prepare(ctx, spec, sandbox.Command{Args: []string{"/tare", "internal", "agent"}}, hidden)
	if err != nil {
		return nil, err
	}
	i := &instance{container: ctr}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Stop(context.WithoutCancel(ctx)))
		}
	}()
	cmd := ctr.command("run", "--bundle", ctr.bundle, ctr.spec.Name)
	i.agent, err = spawn.StartAgent(ctx, ctr.rooted(ctr.runtimeGroup()), cmd)
	if err != nil {
		return nil, err
	}
	if spec.MemoryLimit > 0 {
		i.oom = watchOOM(ctr.hierarchy, ctr.cgroup())
	}
	return i, nil
}

// Launch implements sandbox.Launcher. Whole is `RUNTIME run`, from before its
// start until it has ended; Phased is create, start, the end of the container's
// first process, delete. The exit code is known only of Whole.
func (k *Runtime) Launch(ctx context.Context, spec sandbox.Spec, c sandbox.Command, mode sandbox.LaunchMode) (l sandbox.Launch, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s %s: %w", k.cfg.Name, spec.Name, err)
		}
	}()
	ctr, err := k.prepareFor(ctx, spec, c)
	if err != nil {
		return l, err
	}
	return ctr.launch(ctx, c, mode)
}

// prepareFor is prepare of a container whose first process is a command of the caller.
func (k *Runtime) prepareFor(ctx context.Context, spec sandbox.Spec, c sandbox.Command) (*container, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("no command given")
	}
	hidden, err := k.variant(ctx, false)
	if err != nil {
		return nil, err
	}
	return k.prepare(ctx, spec, c, hidden)
}

// prepare makes everything that a container needs before its runtime is called:
// its groups, its bundle, the runtime's state directory.
func (k *Runtime) prepare(ctx context.Context, spec sandbox.Spec, c sandbox.Command, hidden bool) (_ *container, err error) {
	binary, err := k.binary()
	if err != nil {
		return nil, err
	}
	ctr := &container{
		kind: k, spec: spec, binary: binary, hidden: hidden,
		state: filepath.Join(RootDir(), k.cfg.Name), bundle: filepath.Join(spec.Dir, "bundle"),
	}
	// Without limits: they are the container's own, as with any user of the
	// runtime, and so seen by a runtime that scales itself by them.
	ctr.group, ctr.hierarchy, err = spawn.Group(spec.Name, cgroup.Limits{})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ctr.remove(context.WithoutCancel(ctx)))
		}
	}()
	if err := ctr.hierarchy.Check(spawn.Limits(spec)); err != nil {
		return nil, err
	}
	// The runtime's own processes are apart from the container's: with cgroup
	// version 2 a group that has children cannot have processes.
	if _, err := ctr.hierarchy.Create(ctr.runtimeGroup(), cgroup.Limits{}); err != nil {
		return nil, err
	}
	if err := k.openState(ctr); err != nil {
		return nil, err
	}
	if ctr.devices, err = loop.Open(spec.Mounts); err != nil {
		return nil, err
	}
	return ctr, ctr.writeBundle(c)
}

// stopWithin bounds Stop, see container.end.
const stopWithin = 30 * time.Second

var (
	_ sandbox.Launcher  = (*Runtime)(nil)
	_ sandbox.Chooser   = (*Runtime)(nil)
	_ sandbox.Definable = (*Runtime)(nil)
)
