package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"syscall"
	"time"

	"tare/plan"
	"tare/record"
	"tare/sandbox"
	"tare/volume"
	"tare/workload"
)

// endpoint is one role's sandbox, or the pattern of the sandboxes that it makes.
type endpoint struct {
	role    workload.Role
	image   Image // of the role; zero if it has none
	kind    sandbox.Kind
	want    sandbox.Want
	spec    sandbox.Spec
	inst    sandbox.Instance
	started time.Time     // when inst was there
	cost    record.Labels // of its start and stop times
	begun   time.Time     // when its command began, if it was gated,
	within  time.Duration // known to so much
	ended   time.Time     // likewise, when it ended
	clock   sandbox.Clock // of inst, as it was at clockAt
	clockAt time.Time
}

// networked tells whether a role's sandboxes have a place on the bridge; its workload has so many ends.
func networked(ends int, r workload.Role) bool {
	return r.Networked || r.Probe != nil || ends > 1 && r.Mode == workload.Exec
}

// prepare makes the places that the sandboxes need.
func (t *trial) prepare(ctx context.Context) error {
	apart := t.apart()
	for _, role := range t.all() {
		name, _ := record.CopyOf(role.Name)
		if err := t.prepareRole(ctx, role, apart[name]); err != nil {
			return err
		}
	}
	return t.fill(ctx)
}

// fill fills the nodes of the trial as its roles say. It empties those that a trial before has filled.
func (t *trial) fill(ctx context.Context) error {
	f, ok := t.maker.Place.(Filler)
	if !ok {
		return nil
	}
	most := map[string]int{}
	for _, ep := range t.endpoints {
		most[ep.want.Node] = max(most[ep.want.Node], ep.role.Fill)
	}
	for _, ep := range t.endpoints {
		said, err := f.Fill(ctx, t.name, ep.want.Node, most[ep.want.Node])
		if err != nil {
			return &failure{kind: "start", role: ep.role.Name, err: fmt.Errorf("the node cannot be filled: %w", withCause(ctx, err))}
		}
		if said != "" {
			t.rec.Facts[ep.role.Name+record.FactFilled] = said
		}
	}
	return nil
}

// apart is the processors of each role that meets another over the network, where the cell
// asks for ends apart: copies share those of the first, as they do without. A place that has too few
// lets the scheduler place them, and says so.
func (t *trial) apart() map[string]string {
	var names []string
	for i := range t.roles[:t.ends()] {
		if t.roles[i].Mode == workload.Exec && networked(t.ends(), t.roles[i]) {
			names = append(names, t.roles[i].Name)
		}
	}
	if !t.res.Apart || len(names) < 2 {
		return nil
	}
	lists, err := t.maker.Place.Apart(len(names))
	if err != nil {
		t.rec.Warnings = append(t.rec.Warnings, record.Warning{Code: "not-apart", Text: "the ends share processors: " + err.Error()})
		return nil
	}
	out := map[string]string{}
	for i, name := range names {
		out[name] = lists[i]
	}
	return out
}

// prepareRole prepares a role's sandbox. The list cpus is what it is pinned to; "" for what the
// cell says.
func (t *trial) prepareRole(ctx context.Context, role workload.Role, cpus string) error {
	kind, want := t.wantOf(role)
	ep := &endpoint{role: role, want: want}
	var err error
	if ep.kind, err = t.maker.kind(kind); err != nil {
		return err
	}
	ep.cost = record.MakeLabels(record.LabelEndpoint, role.Name, record.LabelSandbox, kind)
	traits := ep.kind.Traits(nil).Traits
	maps.Copy(t.rec.Facts, traits.Facts(role.Name))
	t.rec.Facts[role.Name+record.FactWhere] = record.Where(kind, traits)
	if role.Image != "" {
		var err error
		if ep.image, err = t.maker.Place.Image(role.Image); err != nil {
			return &failure{kind: "start", role: role.Name, err: err}
		}
		t.rec.Facts[role.Name+".image"] = role.Image
		if ep.image.Digest != "" {
			t.rec.Facts[role.Name+"."+record.FactImageDigest] = ep.image.Digest
		}
	}
	if cpus != "" {
		ep.want.CPUs = cpus
	}
	if ep.want.CPUs != "" {
		t.rec.Facts[role.Name+record.FactCPUs] = ep.want.CPUs
	}
	t.endpoints = append(t.endpoints, ep)
	if m, ok := ep.kind.(sandbox.Manifester); ok {
		text, err := m.Manifest(ep.want)
		if err != nil {
			return err
		}
		t.manifests = append(t.manifests, text)
	}
	ep.spec, err = t.prepareSandbox(ctx, ep.want)
	if d, ok := t.maker.Place.(Describer); ok && err == nil {
		for _, m := range stored(ep.spec) {
			if text := d.Storage(m); text != "" {
				t.rec.Facts[role.Name+"."+record.FactStorage+m.Name] = text
			}
		}
	}
	return err
}

// stored are a sandbox's volumes, and what it writes to its root.
func stored(s sandbox.Spec) []sandbox.Mount {
	if s.Upper == "" {
		return s.Mounts
	}
	return append(slices.Clone(s.Mounts), sandbox.Mount{Volume: volume.Volume{Name: "root"}, Source: s.Upper})
}

// wantOf is what a role's sandbox is to be, and its kind.
func (t *trial) wantOf(role workload.Role) (kind string, w sandbox.Want) {
	w = sandbox.Want{Trial: t.name, Node: t.node, Role: role.Name, Name: t.name + "-" + role.Name, Image: role.Image, Volumes: role.Volumes}
	kind, isolated := t.kindOf(role)
	if steps := t.steps(role, isolated); steps > 0 {
		w.Node = plan.After(t.maker.Nodes, t.node, steps)
	}
	if isolated {
		res := &t.of(role.Name).res
		w.CPULimit, w.MemoryLimit, w.CPUs = res.CPULimit, res.MemoryLimit, res.CPUs
		w.Options = res.Options
	}
	if role.Mode == workload.Exec { // otherwise each of its sandboxes has its own
		w.Writable, w.Networked, w.Addresses, w.API = t.maker.writes(&role, kind, w.Options), networked(t.of(role.Name).ends(), role), role.Addresses, role.API
	}
	return kind, w
}

// steps is how many nodes after the block's a role runs: copies that are spread take the nodes in turn, and a far end is one
// node further. A victim is on the node of the block, beside the load.
func (t *trial) steps(role workload.Role, isolated bool) int {
	n := 0
	if record.IsVictim(role.Name) {
		return n
	}
	if t.res.Spread {
		n = t.copyOf(role.Name) - 1
	}
	if t.far(role, isolated) {
		n++
	}
	return n
}

// far reports whether a role runs on the other one of two nodes. The isolated end stays on the node of the
// block, so that the nodes change places from block to block. If all ends are isolated, the first one stays.
func (t *trial) far(role workload.Role, isolated bool) bool {
	if t.res.LinkPath != record.PathNodes || len(t.maker.Nodes) < 2 || t.ends() < 2 {
		return false
	}
	first, _ := record.CopyOf(t.roles[0].Name)
	name, _ := record.CopyOf(role.Name)
	return !isolated || t.isolates(first) && name != first
}

// prepareSandbox asks the place for what a sandbox needs.
func (t *trial) prepareSandbox(ctx context.Context, want sandbox.Want) (sandbox.Spec, error) {
	spec, err := t.maker.Place.Prepare(ctx, want)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return spec, &failure{kind: "disk", role: want.Role, err: fmt.Errorf("%w; free some space, or choose another disk with --data", err)}
	case err != nil:
		return spec, &failure{kind: "start", role: want.Role, err: err}
	}
	return spec, nil
}

// prepareNth prepares the i-th sandbox of a role that launches several.
func (t *trial) prepareNth(ctx context.Context, ep *endpoint, i int, what string) (sandbox.Spec, error) {
	want := ep.want
	want.Name += "-" + strconv.Itoa((t.turn-1)*ep.role.Count+i) + what
	want.Writable, want.Networked = t.maker.writes(&ep.role, ep.kind.Name(), want.Options), networked(t.of(ep.role.Name).ends(), ep.role)
	if c, ok := t.maker.Place.(Copier); ok && ep.role.Cold {
		var err error
		if want.Copy, err = c.Copy(ctx, want.Image, want.Node); err != nil {
			return sandbox.Spec{}, &failure{kind: "start", role: want.Role, err: withCause(ctx, err)}
		}
	}
	return t.prepareSandbox(ctx, want)
}

// writes reports whether a role's sandbox can write to its root: because the role does, or because every
// such sandbox has a root of its own.
func (m *Maker) writes(r *workload.Role, kind string, options map[string]string) bool {
	k := m.Kinds[kind]
	return r.Writable || k != nil && k.Traits(options).OwnRoot
}

// launcher is the role's kind as one that can make a command a sandbox's lifecycle.
func (ep *endpoint) launcher() (sandbox.Launcher, error) {
	l, ok := ep.kind.(sandbox.Launcher)
	if !ok {
		return nil, &failure{kind: "start", role: ep.role.Name, err: errors.New(notLaunchable(ep.kind.Name()))}
	}
	return l, nil
}

func notLaunchable(kind string) string {
	return fmt.Sprintf("sandbox %s cannot be launched with a command as its whole lifecycle", kind)
}

// command is a command in the role's sandbox: in its image's environment and directory, as its
// image's user.
func (ep *endpoint) command(args []string, stdout, stderr *output) sandbox.Command {
	var words []string
	for _, a := range args {
		switch a {
		case workload.ImageCommand:
			words = slices.Concat(words, ep.image.Entrypoint, ep.image.Command)
		case workload.ImageEntrypoint:
			words = append(words, ep.image.Entrypoint...)
		default:
			words = append(words, a)
		}
	}
	return sandbox.Command{
		Args: words, Env: slices.Concat(ep.image.Env, ep.role.Env), Dir: cmp.Or(ep.role.Dir, ep.image.Dir), User: ep.image.User,
		Stdout: stdout, Stderr: stderr,
	}
}

// kindOf says where a role runs and whether that is the isolated endpoint; the other
// end runs natively.
func (t *trial) kindOf(role workload.Role) (kind string, isolated bool) {
	box := t.of(role.Name).res.Sandbox
	if t.isolates(role.Name) {
		return box, true
	}
	if k := t.maker.Kinds[box]; k != nil {
		return k.Traits(nil).Native, false
	}
	return box, false
}

// start starts the sandbox of every role that runs in a started one.
func (t *trial) start(ctx context.Context) error {
	for _, ep := range t.endpoints {
		if p, ok := ep.kind.(sandbox.Preparer); ok {
			if err := p.Prepare(ctx, ep.spec); err != nil {
				return ep.startFailed(ctx, err)
			}
		}
	}
	for _, ep := range t.endpoints {
		if ep.role.Mode != workload.Exec {
			continue
		}
		if ep.role.Lifecycle {
			if err := t.lifecycle(ctx, ep); err != nil {
				return err
			}
		}
		began := time.Now()
		inst, err := ep.kind.Start(ctx, ep.spec)
		if err != nil {
			return ep.startFailed(ctx, err)
		}
		ep.inst, ep.started = inst, time.Now()
		t.sample("sandbox_start", ep.cost, took(inst, ep.started.Sub(began)))
		facts := inst.Facts()
		t.note(ep, facts)
		t.whereAccelerated(ep, facts[record.FactAccelerator])
		if err := t.boot(ep); err != nil {
			return err
		}
		t.clock(ctx, ep, clockStart)
	}
	return t.shape()
}

func (ep *endpoint) startFailed(ctx context.Context, err error) error {
	return &failure{kind: "start", role: ep.role.Name, err: fmt.Errorf("%s did not start: %w", ep.kind.Name(), withCause(ctx, err))}
}

// took is how long a start took. An instance that tells its steps has left out what
// was made on the way for others too, such as the snapshot that it came from.
func took(inst sandbox.Instance, whole time.Duration) time.Duration {
	b, ok := inst.(sandbox.Booter)
	if !ok {
		return whole
	}
	var sum time.Duration
	for _, p := range b.Boot() {
		sum += p.Took
	}
	return sum
}

func (t *trial) sample(name string, labels record.Labels, d time.Duration) {
	t.rec.Samples = append(t.rec.Samples, record.Sample{
		Name: name, Labels: labels, Unit: record.Second, Kind: record.Value, Value: d.Seconds(),
	})
}
