package trial

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tare/record"
	"tare/sandbox"
	"tare/study"
	"tare/volume"
	"tare/workload"
)

// Skips says which cells cannot run here, and why. It tries each sandbox that the study
// names. The sentinel's cell comes after the study's. The reason why nothing is counted, if
// there is one, comes last.
func (m *Maker) Skips(ctx context.Context) ([]record.Skip, error) {
	c := &checker{maker: m, kinds: map[string]error{}, savers: map[string]error{}}
	var out []record.Skip
	for _, cell := range slices.Concat(m.cells()...) {
		all, err := m.partsOf(cell)
		if err != nil {
			return nil, err
		}
		if why := c.whyNot(ctx, &all); why != "" {
			out = append(out, record.Skip{Cell: cell, Reason: why})
		}
	}
	return append(out, m.uncounted()...), ctx.Err()
}

// checker tries what cells need, each thing once.
type checker struct {
	maker  *Maker
	kinds  map[string]error // what Check said
	savers map[string]error // what CheckCheckpoint said
}

// whyNot says why a cell cannot run, "" if it can.
func (c *checker) whyNot(ctx context.Context, all *parts) string {
	if why := c.maker.spreadNot(&all.res); why != "" && len(all.roles) > 0 {
		return why
	}
	if why := all.shared(); why != "" {
		return why
	}
	for _, p := range all.each() {
		if why := c.partNot(ctx, all, p); why != "" {
			if p == all.victim {
				why = "the victim: " + why
			}
			return why
		}
	}
	return c.roomNot(all)
}

// partNot says why a part cannot run. What costs nothing to find out is asked first.
func (c *checker) partNot(ctx context.Context, all *parts, p *part) string {
	res, roles, ends := p.res, p.roles, p.ends()
	for i := range roles {
		if why := c.roleNot(&roles[i], res.Sandbox); why != "" {
			return why
		}
		if why := addressesNot(&res, &roles[i], ends); why != "" {
			return why
		}
	}
	kinds := []string{res.Sandbox}
	if k := c.maker.Kinds[res.Sandbox]; k != nil && ends > 1 && res.Isolate != study.Both && res.Isolate != "" {
		kinds = append(kinds, k.Traits(nil).Native) // the other end
	}
	for _, k := range kinds {
		if err := c.check(ctx, k); err != nil {
			return named(k, strings.TrimSpace(err.Error()))
		}
	}
	if k, ok := c.maker.Kinds[res.Sandbox].(sandbox.Chooser); ok {
		spec := sandbox.Spec{Want: sandbox.Want{CPULimit: res.CPULimit, MemoryLimit: res.MemoryLimit, CPUs: res.CPUs, Options: res.Options, Volumes: volumesOf(roles[:ends]), Image: imageOf(roles), Beside: c.maker.boxesOf(all, res.Sandbox) - 1, API: slices.ContainsFunc(roles, func(r workload.Role) bool { return r.API })}}
		done := c.maker.trying(res.Sandbox, 0)
		err := k.CheckHere(ctx, spec)
		done()
		if err != nil {
			return named(res.Sandbox, strings.TrimSpace(err.Error()))
		}
	}
	if err := c.maker.Place.Check(Demand{CPUs: res.CPUs, Link: linkOf(&res), Settings: all.res.Settings}); err != nil {
		return strings.TrimSpace(err.Error())
	}
	if slices.ContainsFunc(roles, func(r workload.Role) bool { return r.Mode == workload.Checkpoint }) {
		if err := c.checkSaver(ctx, res.Sandbox); err != nil {
			return named(res.Sandbox, strings.TrimSpace(err.Error()))
		}
	}
	return ""
}

// imageOf is volume.HostRoot if a role runs from it: not every sandbox can have that.
func imageOf(roles []workload.Role) string {
	if slices.ContainsFunc(roles, func(r workload.Role) bool { return r.Image == volume.HostRoot }) {
		return volume.HostRoot
	}
	return ""
}

// spreadNot says why copies cannot be spread, "" if they can.
func (m *Maker) spreadNot(res *study.Resolved) string {
	if !res.Spread || res.Copies < 2 || len(m.Nodes) > 1 {
		return ""
	}
	return fmt.Sprintf("%s %s needs two nodes of a cluster, and there is one; write %[1]s: one, or add a node", study.FactorCopiesOn, study.CopiesSpread)
}

// boxesOf is how many isolated sandboxes of a kind a trial has at once, on the node that has most.
func (m *Maker) boxesOf(all *parts, kind string) (n int) {
	for _, p := range all.each() {
		if p.res.Sandbox == kind {
			n += p.boxes(len(m.Nodes))
		}
	}
	return n
}

// volumesOf are the volumes of all roles.
func volumesOf(roles []workload.Role) (out []volume.Volume) {
	for i := range roles {
		out = append(out, roles[i].Volumes...)
	}
	return out
}

// roleNot says what a role misses.
func (c *checker) roleNot(r *workload.Role, kind string) string {
	d := Demand{Addresses: r.Addresses, API: r.API, Simulated: r.Simulated, Claims: r.Claims, Fill: r.Fill, Beside: max(1, r.Burst), Image: r.Image, Own: slices.Contains(r.Args, workload.ImageCommand), Saved: r.Mode == workload.Checkpoint, Memory: r.Mode == workload.Idle, Volumes: r.Volumes}
	if r.Image == "" {
		d.Tools = r.Needs
	}
	if r.Cold {
		d.Cold = r.Launches()
	}
	if err := c.maker.Place.Check(d); err != nil {
		return err.Error()
	}
	k, ok := c.maker.Kinds[kind]
	if !ok || r.Mode == workload.Exec {
		return ""
	}
	if _, ok := k.(sandbox.Launcher); !ok {
		return notLaunchable(kind)
	}
	if _, ok := k.(sandbox.Checkpointer); !ok && r.Mode == workload.Checkpoint {
		return notSaveable(kind)
	}
	return ""
}

// addressesNot says why a role does not get the addresses that it asks for.
func addressesNot(res *study.Resolved, r *workload.Role, ends int) string {
	switch {
	case r.Addresses == 0:
		return ""
	case res.Workload.Turns > 0:
		return "neighbours: the sandboxes of a block would wait for their turns with their entries in the one ARP table; leave turns out for this workload"
	case res.Traits.OwnKernel == record.Yes && study.Isolated(res.Isolate, r.Name, ends):
		return fmt.Sprintf("%s: the kernel in the sandbox has one address, so it cannot be %d neighbours; isolate the other end (isolate: client)", res.Sandbox, r.Addresses)
	}
	return ""
}

// check asks a kind whether it works here.
func (c *checker) check(ctx context.Context, kind string) error {
	if err, ok := c.kinds[kind]; ok {
		return err
	}
	k, err := c.maker.kind(kind)
	if err == nil {
		defer c.maker.trying(kind, k.Traits(nil).CheckWithin)()
		err = k.Check(ctx)
	}
	c.kinds[kind] = err
	return err
}

// checkSaver asks a kind that can save sandboxes whether that works here.
func (c *checker) checkSaver(ctx context.Context, kind string) error {
	err, ok := c.savers[kind]
	if k, is := c.maker.Kinds[kind].(sandbox.Checkpointer); is && !ok {
		defer c.maker.trying(kind, 0)()
		err = k.CheckCheckpoint(ctx)
		c.savers[kind] = err
	}
	return err
}

// trying tells whoever wants to hear that a kind is being tried, until what it returns is
// called.
func (m *Maker) trying(kind string, within time.Duration) (done func()) {
	if m.Trying == nil {
		return func() {}
	}
	return m.Trying(kind, within)
}

// named puts the sandbox's name before what its Check says, unless Check has
// said it, as most do.
func named(kind, text string) string {
	if rest, ok := strings.CutPrefix(text, kind); ok && strings.HasPrefix(strings.TrimPrefix(rest, ":"), " ") {
		return text
	}
	return kind + ": " + text
}
