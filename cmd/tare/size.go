package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"tare/sizing"
)

type sizeFlags struct {
	cpuLimit, cpuRequest, memoryLimit string
	vcpus                             string
	memory, hostCPUs                  int
	flavour                           string
	overVCPUs                         float64
	overMemory                        int
	json                              bool
	measure                           measureFlags
}

func (a *app) sizeVerb() *cobra.Command {
	var f sizeFlags
	cmd := &cobra.Command{
		Use:   "size [-]",
		Short: "Show how large the virtual machine around a pod becomes",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && args[0] != "-" {
				return coded(exitUsage, "tare size takes flags, or - for a manifest on standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.size(cmd, len(args) == 1, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.cpuLimit, "cpu-limit", "none", "CPU limit of the pod in cores: 2, 2500m or none")
	fl.StringVar(&f.cpuRequest, "cpu-request", "none", "CPU request; tare ignores it, and says so")
	fl.StringVar(&f.memoryLimit, "memory-limit", "none", "memory limit of the pod: 8Gi or none")
	fl.StringVar(&f.vcpus, "default-vcpus", strconv.Itoa(sizing.DefaultVCPUs), "vCPUs at boot; all, or -1, for as many as --host-cpus")
	fl.IntVar(&f.memory, "default-memory", sizing.DefaultMemoryMiB, "memory at boot in MiB")
	fl.IntVar(&f.hostCPUs, "host-cpus", 0, "processors of the host, which limit the vCPUs (default: no limit)")
	fl.StringVar(&f.flavour, "runtime", string(sizing.Go), "Kata's runtime: go, or rs (runtime-rs, which kata-deploy installs by default since Kata 4); without the flag, the one that a manifest's runtimeClassName names")
	fl.Float64Var(&f.overVCPUs, "overhead-vcpus", sizing.DefaultOverheadVCPUs, "with --runtime rs: vCPUs in addition to a CPU limit")
	fl.IntVar(&f.overMemory, "overhead-memory", sizing.DefaultOverheadMiB, "with --runtime rs: MiB in addition to a memory limit")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	f.measure.add(cmd)
	return cmd
}

func (a *app) size(cmd *cobra.Command, manifest bool, f sizeFlags) error {
	if f.measure.asked {
		if manifest {
			return coded(exitUsage, "--measure takes no manifest: it measures idle sandboxes of its own")
		}
		if !cmd.Flags().Changed("in") && f.measure.on == onCluster {
			f.measure.in = nil // the cluster's
		}
		return a.measureOverhead(cmd.Context(), f.measure, f.json)
	}
	if f.measure.on != "" || f.measure.cluster.given() != "" {
		return coded(exitUsage, "a cluster is for --measure; add it, or leave out the cluster's flags")
	}
	for _, name := range []string{"in", "sizes", "repeat", "wait"} {
		if cmd.Flags().Changed(name) {
			return coded(exitUsage, "--%s is for --measure; add it, or leave --%s out", name, name)
		}
	}
	rt, err := f.runtime()
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("runtime") {
		rt.Flavour = "" // a manifest's RuntimeClass may tell it
	}
	pods := []sizing.Object{{Runtime: rt}}
	given := slices.IndexFunc(podFlags(), cmd.Flags().Changed)
	switch {
	case manifest && given >= 0:
		return coded(exitUsage, "--%s and a manifest exclude each other: the pod's limits are in the manifest", podFlags()[given])
	case manifest || given < 0 && a.piped(cmd.InOrStdin()):
		got, err := sizing.FromManifest(cmd.InOrStdin(), rt)
		switch {
		case err == nil:
			pods = got
			a.noteUntold(pods)
		case manifest || !errors.Is(err, sizing.ErrEmpty): // an empty file or pipe is not a pod, unless it was asked for
			return coded(exitUsage, "stdin:%w", err)
		case isPipe(cmd.InOrStdin()): // what was to write the manifest may have failed
			a.note("standard input was empty, so the size follows the flags; write - to make that an error")
		}
	default:
		if pods[0].Pod, err = podOf(f); err != nil {
			return err
		}
	}
	return a.printSizes(pods, f.json)
}

// noteUntold says for which RuntimeClasses of Kata's the rule is only taken for granted.
func (a *app) noteUntold(pods []sizing.Object) {
	var said []string
	for i := range pods {
		if o := &pods[i]; o.Runtime.Flavour == "" && sizing.IsKata(o.Class) && !slices.Contains(said, o.Class) {
			said = append(said, o.Class)
			a.note("the name of RuntimeClass %s does not tell which of Kata's runtimes it is, so the size follows that in Go; --runtime rs is the other", o.Class)
		}
	}
}

// podFlags are the flags that describe a pod.
func podFlags() []string { return []string{"cpu-limit", "cpu-request", "memory-limit"} }

// podSize is a pod's size as JSON; of several each says which it is.
type podSize struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	sizing.Size
	Rules []sizing.Rule `json:"rules"`
}

// printSizes prints one pod's size, or those of several below their names.
func (a *app) printSizes(pods []sizing.Object, asJSON bool) error {
	var all []podSize
	width := 0
	for i := range pods {
		o := &pods[i]
		s, err := sizing.Of(o.Pod, o.Runtime)
		switch {
		case err != nil && len(pods) > 1:
			return coded(exitUsage, "%s %s: %w", o.Kind, o.Name, err)
		case err != nil:
			return coded(exitUsage, "%w", err)
		}
		p := podSize{Size: s, Rules: sizing.Rules(o.Pod, o.Runtime, s)}
		if len(pods) > 1 {
			p.Kind, p.Name = o.Kind, o.Name
		}
		for _, r := range p.Rules {
			width = max(width, len(r.Value))
		}
		all = append(all, p)
	}
	if asJSON && len(all) == 1 {
		return a.printJSON(all[0])
	}
	if asJSON {
		return a.printJSON(all)
	}
	for i := range all {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		if len(all) > 1 {
			a.line("%s", strings.TrimSpace(all[i].Kind+" "+all[i].Name))
		}
		for _, r := range all[i].Rules {
			a.line("%-17s %-*s %s", r.Name, width, r.Value, r.Rule)
		}
	}
	return nil
}

// runtime reads the flags that describe the runtime and its host.
func (f sizeFlags) runtime() (sizing.Runtime, error) {
	r := sizing.Runtime{Flavour: sizing.Flavour(f.flavour), MemoryMiB: f.memory, HostCPUs: f.hostCPUs, VCPUs: -1, OverheadVCPUs: f.overVCPUs, OverheadMiB: f.overMemory}
	if r.Flavour != sizing.Go && r.Flavour != sizing.RS {
		return r, coded(exitUsage, "--runtime: %q is not possible; write %s or %s", f.flavour, sizing.Go, sizing.RS)
	}
	if f.vcpus != "all" {
		n, err := strconv.Atoi(f.vcpus)
		if err != nil || n == 0 {
			return r, coded(exitUsage, "--default-vcpus: %q is not possible; write a whole number from 1 on, or all", f.vcpus)
		}
		r.VCPUs = n
	}
	if f.memory < sizing.LeastMemoryMiB || f.memory > sizing.MostMemoryMiB { // as the parameter of the sandbox vm
		return r, coded(exitUsage, "--default-memory: %d is not possible; write MiB, %d to %d", f.memory, sizing.LeastMemoryMiB, sizing.MostMemoryMiB)
	}
	if f.hostCPUs < 0 {
		return r, coded(exitUsage, "--host-cpus: %d is not possible; write how many the host has, or 0 for no limit", f.hostCPUs)
	}
	if r.VCPUs < 0 && f.hostCPUs == 0 {
		return r, coded(exitUsage, "--default-vcpus %s stands for all of the host's processors: say how many with --host-cpus", f.vcpus)
	}
	return r, nil
}

// pipePatience is how long something may take to come through a pipe that nobody
// spoke of: one that is merely inherited stays open and mute.
const pipePatience = 3 * time.Second

// piped tells whether somebody gives a file as standard input, or something
// through a pipe.
func (a *app) piped(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	if !isPipe(in) {
		info, err := f.Stat()
		return err == nil && info.Mode().IsRegular()
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}} //nolint:gosec // G115: a descriptor
	n, err := unix.Poll(fds, int(pipePatience.Milliseconds()))
	if n == 0 && err == nil {
		a.note("standard input sent nothing within %v, so the size follows the flags; write - to wait for a manifest", pipePatience)
	}
	return n > 0
}

// isPipe tells a pipe from a file and from a device such as /dev/null, which cron gives.
func isPipe(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// podOf reads the flags that describe a pod.
func podOf(f sizeFlags) (sizing.Pod, error) {
	var p sizing.Pod
	for _, x := range []struct {
		flag, text string
		set        func(cores float64, bytes int64)
	}{
		{"cpu-limit", f.cpuLimit, func(c float64, _ int64) { p.CPULimit = c }},
		{"cpu-request", f.cpuRequest, func(c float64, _ int64) { p.CPURequest = c }},
		{"memory-limit", f.memoryLimit, func(_ float64, b int64) { p.MemoryLimit = b }},
	} {
		if x.text == "none" {
			continue
		}
		q, err := sizing.ParseQuantity(x.text)
		if err != nil {
			return p, coded(exitUsage, "--%s: %w, or none", x.flag, err)
		}
		if x.flag == "memory-limit" {
			if err := sizing.CheckMemory(q); err != nil {
				return p, coded(exitUsage, "--%s: %w, or none", x.flag, err)
			}
		}
		x.set(q.AsApproximateFloat64(), q.Value())
	}
	return p, nil
}
