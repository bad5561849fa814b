package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/collect"
	collectall "tare/collect/all"
	collecthost "tare/collect/host"
	"tare/host"
	"tare/host/cgroup"
	"tare/host/network"
	"tare/host/rootfs"
	"tare/internal/rootless"
	"tare/param"
	"tare/record"
	"tare/sandbox/vm"
	"tare/workload"
	workloadall "tare/workload/all"
)

// finding is one line of the doctor's report. Problem is "" when all is well.
type finding struct {
	Area    string        `json:"area"` // host, setting, sandbox, machine, image, workload, collector; on a cluster those of package cluster
	Name    string        `json:"name"`
	Family  record.Family `json:"family,omitempty"` // of a sandbox
	Detail  string        `json:"detail,omitempty"`
	Problem string        `json:"problem,omitempty"`

	Optional bool `json:"optional,omitempty"` // studies work in spite of the problem
}

type findings []finding

func (f *findings) add(area, name, detail string, err error) {
	x := finding{Area: area, Name: name, Detail: detail}
	if err != nil {
		x.Problem = strings.TrimSpace(err.Error())
	}
	*f = append(*f, x)
}

func (a *app) doctorVerb() *cobra.Command {
	var asJSON, wait bool
	var on string
	var k clusterFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this host or a cluster can and cannot do",
		Args:  exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch on {
			case "":
			case onCluster:
				return a.examineCluster(cmd.Context(), k, asJSON)
			default:
				return coded(exitUsage, "--on %s: write --on k8s to look at a cluster, or leave it out to look at this host", on)
			}
			found, h, err := a.examine(cmd.Context(), wait, asJSON)
			if err != nil {
				return err
			}
			if asJSON {
				err = a.printJSON(map[string]any{"host": h, "findings": found})
			} else {
				a.printFindings(found, h)
			}
			if err == nil && !enough(found) {
				err = coded(exitHost, "the baseline (process) and at least one other sandbox must work before costs can be weighed")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&wait, "wait", false, waitHelp)
	cmd.Flags().StringVar(&on, "on", "", "k8s: look at a Kubernetes cluster (default: this host)")
	k.addImage(cmd.Flags())
	return cmd
}

// enough says whether there is something to compare.
func enough(found []finding) bool {
	base, others := false, false
	for _, f := range found {
		works := f.Area == "sandbox" && f.Problem == ""
		base = base || works && f.Family == record.FamilyNative
		others = others || works && f.Family != record.FamilyNative && f.Family != record.FamilyFake
	}
	return base && others
}

func (a *app) examine(ctx context.Context, wait, asJSON bool) (out findings, h record.Host, err error) {
	ctx, stop := a.interruptible(ctx)
	defer stop()
	t := a.newTries(ctx, asJSON)
	defer func() { err = t.interrupted(err) }()
	add := out.add
	here := a.sandboxes()
	h = collecthost.Describe(ctx, "/", collecthost.Tools())
	if !rootless.Root() {
		err := rootless.Check()
		if err == nil {
			err = errors.New(rootless.Limits)
		}
		add("host", "root", "", err)
	}
	if os.Geteuid() == 0 {
		// The checks start real containers: a running study must not feel them.
		lock, err := here.Hold(ctx, "doctor", wait)
		if err != nil {
			return nil, h, err
		}
		defer func() { _ = lock.Release() }()
		defer here.SweepIfEnded(ctx)
		if rootless.Root() {
			where, release, err := here.Groups(ctx)
			defer func() { _ = release() }()
			add("host", "control groups", where, err)
		}
	}
	lacks(add)
	add("host", "network", "a bridge in a namespace of its own", network.Check())
	for _, s := range here.Settings().Findings() {
		add("setting", s.Name, s.Detail, s.Err)
	}
	if err := out.sandboxes(ctx, here, t); err != nil {
		return nil, h, err
	}
	h = proven(h, machineCache(), thisBoot())
	if err := a.examineImages(add); err != nil {
		return nil, h, err
	}
	for _, w := range workloadall.Workloads() {
		add("workload", w.Name(), w.About(), missingTools(w))
	}
	for _, c := range append(collectall.Collectors(), collectall.Counting()) {
		err, about := c.Check(), c.About()
		if s, ok := c.(collect.Sourced); ok && err == nil {
			about += "; " + s.Source()
		}
		add("collector", c.Name(), about, err)
	}
	return out, h, nil
}

// sandboxes tries each sandbox, and looks for what virtual machines are made of.
func (f *findings) sandboxes(ctx context.Context, here *host.Site, t *tries) error {
	checks, remove, err := here.MakeChecks()
	if err != nil {
		return err
	}
	defer func() { _ = remove() }()
	machines, err := guestFiles(nil)
	if err != nil {
		return err
	}
	machines.Local = true // looking at a host downloads nothing
	ks, names, err := kindsFrom(checks, nil, machines)
	if err != nil {
		return err
	}
	if err := vm.Forget(machineCache()); err != nil {
		return fmt.Errorf("cannot try KVM again: %w", err)
	}
	for _, n := range names {
		traits := ks[n].Traits(nil)
		done := t.begin(n, traits.CheckWithin)
		f.add("sandbox", n, ks[n].About(), ks[n].Check(ctx))
		(*f)[len(*f)-1].Family = traits.Family
		done()
	}
	for _, p := range vm.Parts(ctx, machines, machineCache()) {
		f.add("machine", p.Name, p.Detail, p.Err)
	}
	return nil
}

// lacks adds what the kernel cannot count or limit here. Studies run without it; the text
// says what they lose.
func lacks(add func(area, name, detail string, err error)) {
	h, err := cgroup.Detect()
	if err != nil {
		add("host", "control groups", "", err)
		return
	}
	for _, l := range h.Lacks() {
		add("host", l.Name, "", errors.New(l.Text))
	}
}

// missingTools names the host programs that a workload needs and this host
// lacks.
func missingTools(w workload.Workload) error {
	v, err := param.Fill(w.Params(), nil)
	if err != nil {
		return err
	}
	roles, err := w.Roles(v)
	if err != nil {
		return err
	}
	var needs []string
	for _, r := range roles {
		needs = append(needs, r.Needs...)
	}
	if missing := absent(needs); len(missing) > 0 {
		return fmt.Errorf("%s is not installed; apt-get install %s", missing[0], missing[0])
	}
	return nil
}

// absent returns those of tools that this host does not have.
func absent(tools []string) []string {
	var out []string
	for _, t := range tools {
		if _, ok := rootfs.Lookup(t); !ok {
			out = append(out, t)
		}
	}
	return out
}

func (a *app) printFindings(found []finding, h record.Host) {
	a.line("%s, kernel %s, %s, %d processors, %d MiB", h.OS, h.Kernel, h.CPUModel, h.Threads, h.MemoryBytes>>20)
	a.line("virtualization %s, KVM %s, cgroups %s", orNone(h.Virtualization), orNone(h.KVM), h.Cgroups)
	for _, tool := range slices.Sorted(maps.Keys(h.Tools)) {
		a.line("  %-10s %s", tool, h.Tools[tool])
	}
	a.printAreas(found)
	if len(h.Warnings) > 0 {
		fmt.Fprintln(a.stdout)
		a.line("warnings")
		for _, w := range h.Warnings {
			a.line("  %s", w.Text)
		}
	}
}

// printAreas prints findings, with a heading for each area.
func (a *app) printAreas(found []finding) {
	area, widest := "", map[string]int{}
	for _, f := range found {
		widest[f.Area] = max(14, widest[f.Area], min(len(f.Name), 24))
	}
	for _, f := range found {
		if f.Area != area {
			area = f.Area
			fmt.Fprintln(a.stdout)
			a.line("%s", area)
		}
		if f.Problem == "" {
			a.line("  ok  %-*s %s", widest[f.Area], f.Name, f.Detail)
		} else {
			a.line("  --  %-*s %s", widest[f.Area], f.Name, f.Problem)
		}
	}
}
