package trial

import (
	"context"
	"fmt"
	"slices"

	"tare/record"
	"tare/sandbox"
	"tare/workload"
)

// laysOut tells whether something is to be done before anything is measured.
func (t *trial) laysOut() bool {
	return t.dropsCaches() || slices.ContainsFunc(t.all(), func(r workload.Role) bool { return len(r.Before) > 0 })
}

// layOut runs the commands that roles want done before, one after another, and
// then drops the caches of what they wrote.
func (t *trial) layOut(ctx context.Context) error {
	for _, ep := range t.endpoints {
		if len(ep.role.Before) == 0 {
			continue
		}
		if err := t.before(ctx, ep); err != nil {
			return err
		}
	}
	if t.dropsCaches() {
		t.dropCaches()
	}
	return nil
}

// dropsCaches tells whether the workload is measured without what the host has cached.
func (t *trial) dropsCaches() bool {
	return slices.ContainsFunc(t.all(), func(r workload.Role) bool { return r.DropCaches })
}

func (t *trial) dropCaches() {
	if err := t.maker.Place.DropCaches(); err != nil {
		t.rec.Warnings = append(t.rec.Warnings, record.Warning{
			Code: "caches-kept", Text: fmt.Sprintf("the host's page cache was not dropped, so that reads may come from memory: %v", err),
		})
	}
}

// before runs a role's Before to its end: in its sandbox, or, of a role that
// makes sandboxes of its own, as the lifecycle of one more.
func (t *trial) before(ctx context.Context, ep *endpoint) error {
	out := newOutput(ep.role.Name, "before", "") // no stdout: it is not the role's, and not parsed
	out.began = t.elapsed()
	t.outputs = append(t.outputs, out)
	cmd := ep.command(ep.role.Before, out, out)
	var exit sandbox.Exit
	var err error
	if ep.role.Mode == workload.Exec {
		exit, err = ep.inst.Exec(ctx, cmd)
	} else {
		var l sandbox.Launcher
		if l, err = ep.launcher(); err != nil {
			return err
		}
		spec, serr := t.prepareNth(ctx, ep, 0, "before")
		if serr != nil {
			return serr
		}
		var got sandbox.Launch
		got, err = l.Launch(ctx, spec, cmd, sandbox.Whole)
		exit = got.Exit
	}
	return ep.judge(ctx, "what "+ep.role.Name+" does before", exit, err, out, out)
}
