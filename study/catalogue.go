package study

import (
	"errors"
	"fmt"
	"slices"

	"tare/param"
	"tare/record"
)

// KindOCI is the kind that a study's own sandboxes have: any binary with an OCI
// runtime's command line. Catalogue.Sandboxes may hold parameters under this
// name; it is not itself a level, since it names no runtime.
const KindOCI = "oci"

// KindVM is a kind that a study may define over another QEMU, where the catalogue
// has it.
const KindVM = "vm"

// Catalogue is what a study can be made of. It is data, so that this package
// imports no workload and no sandbox, and reads old studies on any machine.
type Catalogue struct {
	Workloads  map[string]WorkloadInfo
	Sandboxes  map[string][]param.Param // kind to its own parameters
	Collectors []string
	// CheckOptions says, by kind, why a sandbox with such parameters starts on no host; the
	// values have passed param.Fill. A kind without one takes every combination.
	CheckOptions map[string]func(param.Values) error
	// HostKernel names the sandboxes, and the programs of OCI runtimes, in which a
	// program's system calls are the host kernel's own, and so can be counted.
	HostKernel []string
	// ReadFile reads a file that a study names (param.File): the path is as written,
	// relative to the study file, the error fit for a user. Nil: studies have only the files in
	// their own section files, as a stored one has.
	ReadFile func(path string) ([]byte, error)
}

// WorkloadInfo describes one kind of workload. Nil functions mean: no
// responses, nothing to refuse.
type WorkloadInfo struct {
	Params    []param.Param
	Responses func(param.Values) []record.Response
	Check     func(param.Values) error // of values that have passed param.Fill
	Ends      int                      // roles that can be isolated apart; isolate applies from 2 on
	Launches  bool                     // its roles make sandboxes of their own
}

// Check finds names that would mean two things in a study file. It is for the
// test of whoever makes a catalogue; Parse prefers tare's own factors, then
// workloads' parameters, then sandboxes'.
func (c Catalogue) Check() error {
	var errs []error
	owner := map[string]string{}
	for _, p := range Factors() {
		owner[p.Name] = "tare itself"
	}
	owner[FactorWorkload], owner[FactorCounting] = "tare itself", "tare itself"
	for _, kind := range sortedKeys(c.Workloads) {
		for _, p := range c.Workloads[kind].Params {
			if slices.Contains(workloadKeys(), p.Name) {
				errs = append(errs, fmt.Errorf("workload %s: parameter %q is a key of every workload; give it another name", kind, p.Name))
			} else if slices.Contains(sentinelKeys(), p.Name) {
				errs = append(errs, fmt.Errorf("workload %s: parameter %q is a key of the section sentinel; give it another name", kind, p.Name))
			} else if o := owner[p.Name]; o == "tare itself" {
				errs = append(errs, fmt.Errorf("workload %s: parameter %q is a factor of %s; give it another name", kind, p.Name, o))
			}
		}
	}
	for _, kind := range sortedKeys(c.Workloads) {
		for _, p := range c.Workloads[kind].Params {
			if owner[p.Name] == "" {
				owner[p.Name] = "workload " + kind
			}
		}
	}
	for _, kind := range sortedKeys(c.Sandboxes) {
		for _, p := range c.Sandboxes[kind] {
			if o := owner[p.Name]; o != "" {
				errs = append(errs, fmt.Errorf("sandbox %s: parameter %q belongs to %s already; give it another name", kind, p.Name, o))
			}
		}
	}
	return errors.Join(errs...)
}

// Factors describes the factors that tare itself knows, for `tare list` and the
// schema; the sandbox's and the workload's levels depend on the study.
func Factors() []param.Param {
	return []param.Param{
		{Name: FactorIsolate, Type: param.Enum, Default: isolateDefault, Words: []string{"server", "client", Both},
			Help: "which end of a workload with two ends is in the sandbox; the other is in the process kind"},
		{Name: FactorCPULimit, Type: param.Float, Default: "none", Min: param.LeastCPULimit, Max: param.MostCPULimit, Words: []string{"none"},
			Help: "CPU time the sandbox may use, in cores"},
		{Name: FactorMemoryLimit, Type: param.Size, Default: "none", Min: 1 << 20, Max: 1 << 46, Words: []string{"none"},
			Help: "memory the sandbox may use"},
		{Name: FactorCPUs, Type: param.CPUs, Default: "any", Words: []string{"any"},
			Help: "processors the sandbox is pinned to, such as 0-1"},
		{Name: FactorLinkDelay, Type: param.Duration, Default: "none", Min: 50e-6, Max: 1, Words: []string{"none"},
			Help: "time that every packet between the two ends of a workload takes longer, each way"},
		{Name: FactorLinkRate, Type: param.Rate, Default: "none", Min: 8000, Max: 12.5e9, Words: []string{"none"},
			Help: "what the link between the two ends carries each way, such as 100Mbit"},
	}
}

// owners returns the kinds of sandbox among names that have the parameter.
func (c Catalogue) owners(name string, names []string, kindOf func(string) string) []string {
	var out []string
	for _, n := range names {
		if _, ok := param.Find(c.Sandboxes[kindOf(n)], name); ok {
			out = append(out, n)
		}
	}
	return out
}

// factorNames lists every word that can name a factor.
func (c Catalogue) factorNames() []string {
	set := map[string]bool{FactorSandbox: true}
	for _, p := range Factors() {
		set[p.Name] = true
	}
	for _, w := range c.Workloads {
		for _, p := range w.Params {
			set[p.Name] = true
		}
	}
	for _, ps := range c.Sandboxes {
		for _, p := range ps {
			set[p.Name] = true
		}
	}
	return sortedKeys(set)
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
