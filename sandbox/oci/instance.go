package oci

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"tare/host/spawn"
	"tare/param"
	"tare/record"
	"tare/sandbox"
)

// instance is a running container with an agent.
type instance struct {
	*container
	agent *spawn.Agent
	oom   *oomWatch
}

// Exec implements sandbox.Instance.
func (i *instance) Exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	kills, counted := i.group.OOMKills()
	events := i.oom.count()
	exit, err := i.agent.Run(ctx, c)
	if err != nil || exit.Signal != "" {
		exit.OOM = i.oom.more(events)
	} else {
		exit.OOM = i.oom.count() > events
	}
	if now, cerr := i.group.OOMKills(); cerr == nil && counted == nil && now > kills {
		exit.OOM = true
	}
	switch {
	case err != nil && exit.OOM:
		return exit, fmt.Errorf("%s %s: %w", i.kind.cfg.Name, i.spec.Name, i.outOfMemory(err))
	case err != nil:
		return exit, fmt.Errorf("%s %s: %w", i.kind.cfg.Name, i.spec.Name, err)
	}
	return exit, nil
}

// outOfMemory adds to an error why it came to it; nil stays nil.
func (c *container) outOfMemory(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the kernel killed the sandbox because it ran out of memory (its limit is %s): %w", param.FormatSize(c.spec.MemoryLimit), err)
}

// LimitReached implements sandbox.Limited.
func (i *instance) LimitReached() bool {
	reached, err := i.hierarchy.Open(i.cgroup()).LimitReached()
	return err == nil && reached
}

// Addr implements sandbox.Instance.
func (i *instance) Addr() netip.Addr { return i.spec.Network.Addr.Addr() }

// Scope implements sandbox.Instance.
func (i *instance) Scope() sandbox.LocalScope {
	return sandbox.LocalScope{
		Cgroups: []string{i.group.Rel(), i.cgroup()}, Limited: i.cgroup(), Roles: ThreadRoles(i.binary),
	}
}

// ThreadRoles tells the roles of the threads of a container. What runs under the
// runtime's own name watches over the container. gVisor renames its processes
// runsc-sandbox and runsc-gofer, and runs the user's code in children of the
// sentry that have no arguments (systrap and ptrace).
func ThreadRoles(binary string) sandbox.ThreadRoles {
	return sandbox.ThreadRoles{
		{Role: record.RoleSentry, Program: "runsc-sandbox"},
		{Role: record.RoleGofer, Program: "runsc-gofer"},
		{Role: record.RoleShim, Program: filepath.Base(binary)},
		sandbox.AgentRule(),
	}
}

// Facts implements sandbox.Instance.
func (i *instance) Facts() map[string]string {
	f := map[string]string{"sandbox": i.kind.cfg.Name, "runtime": i.binary, "runtime_version": i.kind.version()}
	if i.hidden {
		f["workaround"] = "the runtime does not see the host's version 2 cgroup tree"
	}
	return f
}

// leaveWithin is how long a container may take to end by itself.
const leaveWithin = 2 * time.Second

// leave asks the agent, which is the container's first process, to end. The runtime's `run` then deletes the
// container, as it does for everybody's. `runc delete --force` would take a tenth of a second longer: it asks at that
// interval whether the process that it has killed is gone.
func (i *instance) leave(ctx context.Context) {
	if i.agent == nil {
		return
	}
	i.agent.Hangup()
	ctx, done := context.WithTimeout(ctx, leaveWithin)
	defer done()
	_ = i.agent.Wait(ctx) // what does not leave is ended
}

// Stop implements sandbox.Instance.
func (i *instance) Stop(ctx context.Context) error {
	i.oom.close()
	i.leave(ctx)
	err := i.end(ctx, func(ctx context.Context) error {
		if i.agent == nil {
			return nil
		}
		return i.agent.Wait(ctx)
	})
	if i.agent != nil && err == nil {
		err = i.agent.Close(ctx)
	}
	if err != nil {
		return fmt.Errorf("stopping %s %s: %w; `tare clean` tries again", i.kind.cfg.Name, i.spec.Name, err)
	}
	return nil
}
