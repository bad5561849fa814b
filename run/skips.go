package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tare/param"
	"tare/record"
	"tare/sandbox"
	"tare/study"
	"tare/workload"
)

// Skips says which cells this host cannot run, and why, by trying each sandbox
// that the study names; the sentinel's cell comes after the study's, and last why
// nothing is counted. missing are the host programs that were not found, processors
// how many the host has.
func (e *Engine) Skips(ctx context.Context, missing []string, processors int) ([]record.Skip, error) {
	c := &checker{engine: e, missing: missing, processors: processors, kinds: map[string]error{}, savers: map[string]error{}}
	var out []record.Skip
	for _, cell := range slices.Concat(e.cells()...) {
		res, roles, err := e.rolesOf(cell)
		if err != nil {
			return nil, err
		}
		if why := c.whyNot(ctx, res, roles); why != "" {
			out = append(out, record.Skip{Cell: cell, Reason: why})
		}
	}
	return append(out, e.uncounted()...), ctx.Err()
}

// checker tries what cells need, each thing once.
type checker struct {
	engine     *Engine
	missing    []string
	processors int
	kinds      map[string]error // what Check said
	savers     map[string]error // what CheckCheckpoint said
	links      map[sandbox.Link]error
}

// whyNot says why a cell cannot run, "" if it can. What costs nothing to find out
// is asked first.
func (c *checker) whyNot(ctx context.Context, res study.Resolved, roles []workload.Role) string {
	for i := range roles {
		if why := c.roleNot(&roles[i], res.Sandbox); why != "" {
			return why
		}
	}
	kinds := []string{res.Sandbox}
	if len(roles) > 1 && res.Isolate != study.Both && res.Isolate != "" && res.Sandbox != study.Native {
		kinds = append(kinds, study.Native) // the other end
	}
	for _, k := range kinds {
		if err := c.check(ctx, k); err != nil {
			return named(k, strings.TrimSpace(err.Error()))
		}
	}
	if k, ok := c.engine.Kinds[res.Sandbox].(sandbox.Chooser); ok {
		spec := sandbox.Spec{CPULimit: res.CPULimit, MemoryLimit: res.MemoryLimit, CPUs: res.CPUs, Options: res.Options}
		done := c.engine.trying(res.Sandbox, 0)
		err := k.CheckHere(ctx, spec)
		done()
		if err != nil {
			return named(res.Sandbox, strings.TrimSpace(err.Error()))
		}
	}
	if err := c.checkLink(linkOf(&res)); err != nil {
		return strings.TrimSpace(err.Error())
	}
	if slices.ContainsFunc(roles, func(r workload.Role) bool { return r.Mode == workload.Checkpoint }) {
		if err := c.checkSaver(ctx, res.Sandbox); err != nil {
			return named(res.Sandbox, strings.TrimSpace(err.Error()))
		}
	}
	if res.CPUs != "" {
		if cpus, err := param.ParseCPUs(res.CPUs); err == nil && cpus[len(cpus)-1] >= c.processors {
			return fmt.Sprintf("cpus %s: this host has the processors 0-%d", res.CPUs, c.processors-1)
		}
	}
	return ""
}

// roleNot says what a role misses.
func (c *checker) roleNot(r *workload.Role, kind string) string {
	if r.Image != "" {
		if why := c.engine.imageMissing(r.Image); why != "" {
			return why
		}
	} else {
		for _, n := range r.Needs {
			if slices.Contains(c.missing, n) {
				return fmt.Sprintf("%s is not installed; apt-get install %s", n, n)
			}
		}
	}
	if r.Data && r.DataInMemory && c.engine.Dirs.Memory == "" {
		return noMemoryDir
	}
	k, ok := c.engine.Kinds[kind]
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

// check asks a kind whether it works here.
func (c *checker) check(ctx context.Context, kind string) error {
	if err, ok := c.kinds[kind]; ok {
		return err
	}
	if k := c.engine.Kinds[kind]; k == nil {
		c.kinds[kind] = fmt.Errorf("there is no sandbox %q", kind)
	} else {
		defer c.engine.trying(kind, sandbox.CheckWithin(k))()
		c.kinds[kind] = k.Check(ctx)
	}
	return c.kinds[kind]
}

// checkSaver asks a kind that can save sandboxes whether that works here.
func (c *checker) checkSaver(ctx context.Context, kind string) error {
	err, ok := c.savers[kind]
	if k, is := c.engine.Kinds[kind].(sandbox.Checkpointer); is && !ok {
		defer c.engine.trying(kind, 0)()
		err = k.CheckCheckpoint(ctx)
		c.savers[kind] = err
	}
	return err
}

// trying tells whoever wants to hear that a kind is being tried, until what it returns is
// called.
func (e *Engine) trying(kind string, within time.Duration) (done func()) {
	if e.Trying == nil {
		return func() {}
	}
	return e.Trying(kind, within)
}

// imageMissing says why a role's image cannot be used, "" if it can.
func (e *Engine) imageMissing(name string) string {
	img, ok := e.Images[name]
	switch {
	case !ok:
		return fmt.Sprintf("image %s was not prepared; `tare image build %s` says why", name, name)
	case img.Missing != "":
		return fmt.Sprintf("image %s: %s", name, img.Missing)
	}
	return ""
}

// named puts the sandbox's name before what its Check says, unless Check has
// said it, as most do.
func named(kind, text string) string {
	if rest, ok := strings.CutPrefix(text, kind); ok && strings.HasPrefix(strings.TrimPrefix(rest, ":"), " ") {
		return text
	}
	return kind + ": " + text
}
