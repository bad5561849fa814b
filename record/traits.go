package record

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Family says what isolates the workload in a sandbox.
type Family string

// Families. A sandbox of no known family is treated as a container.
const (
	FamilyNative    Family = "native"    // nothing: the workload is a process of the host
	FamilyContainer Family = "container" // the host's kernel, by namespaces and control groups
	FamilyGVisor    Family = "gvisor"    // a kernel in user space
	FamilyVM        Family = "vm"        // a virtual machine
	FamilyFake      Family = "fake"      // nothing runs; the figures are invented
)

// Answer is yes, no, or unknown.
type Answer string

// Answers. Unknown is the zero value.
const (
	Unknown Answer = ""
	Yes     Answer = "yes"
	No      Answer = "no"
)

// Traits say what a kind of sandbox is. Analysis reads them instead of names. The zero
// value means that nothing is known.
type Traits struct {
	Family    Family   `json:"family,omitempty"`
	Runtime   string   `json:"runtime,omitempty"`    // name of the program that makes the sandbox: runc; "" for none
	Platform  string   `json:"platform,omitempty"`   // how gVisor catches system calls: systrap, ptrace, kvm
	Flags     []string `json:"flags,omitempty"`      // of the runtime, without the leading dashes: platform=kvm
	OwnKernel Answer   `json:"own_kernel,omitempty"` // whether a kernel other than the host's answers system calls
	Emulated  Answer   `json:"emulated,omitempty"`   // whether software emulates its processors; Unknown: a start finds out
	Sizing    string   `json:"sizing,omitempty"`     // which of Kata's runtimes sizes its virtual machine, as in package sizing: go, rs
	Native    string   `json:"native,omitempty"`     // the kind that runs what is not to be isolated, beside such a sandbox
}

// These end the names of a trial's facts about a role. ROLE.where is WhereNative, or the name of
// the sandbox that the role ran in; ROLE.cpus is the list of processors that it was pinned to; ROLE.filled is how
// many idle pods were on its node, of how many that the node takes.
const (
	FactWhere  = ".where"
	FactCPUs   = ".cpus"
	FactFilled = ".filled"
	// PART.outside names the pods of others that a load passes through, and that are read beside it: controller.outside. After NotRead it
	// says why none is.
	FactOutside = ".outside"
	NotRead     = "not read: "
	WhereNative = "native"
)

// Where is the value of that fact of a kind.
func Where(kind string, t Traits) string {
	if t.Family == FamilyNative {
		return WhereNative
	}
	return kind
}

// FactFamily ends the name of the fact ROLE.family. The facts of the other traits of a role's
// sandbox are named alike.
const (
	FactFamily         = ".family"
	FactSandboxRuntime = ".runtime"
	// FactSizing is the same of Traits.Sizing, without the dot: an instance that finds it out says so.
	FactSizing = "sizing"
)

// facts are the traits that a trial records, by the ends of the facts' names, as texts.
// Emulated is not among them: the fact FactAccelerator tells what was found.
func (t *Traits) facts(flags *string) map[string]*string {
	return map[string]*string{
		FactFamily: (*string)(&t.Family), FactSandboxRuntime: &t.Runtime, ".platform": &t.Platform,
		".own_kernel": (*string)(&t.OwnKernel), ".flags": flags, "." + FactSizing: &t.Sizing,
	}
}

// TraitFacts lists the ends of the names of the facts that TraitsOf reads.
func TraitFacts() []string { return slices.Collect(maps.Keys(new(Traits).facts(nil))) }

// Facts returns the traits as facts of a trial.
func (t Traits) Facts(role string) map[string]string {
	out, flags := map[string]string{}, strings.Join(t.Flags, " ")
	for end, v := range t.facts(&flags) {
		if *v != "" {
			out[role+end] = *v
		}
	}
	return out
}

// TraitsOf reads the traits of a trial's sandbox from the trial's facts: those of the first
// role, by name, that was isolated; else of the first. It reports false when no fact tells a
// family, as in results of before there were traits.
func TraitsOf(facts map[string]string) (out Traits, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		role, is := strings.CutSuffix(name, FactFamily)
		if !is || ok && out.Family != FamilyNative {
			continue
		}
		flags := ""
		out, ok = Traits{}, true
		for end, v := range out.facts(&flags) {
			*v = facts[role+end]
		}
		out.Flags = strings.Fields(flags)
		if out.Runtime != "" {
			out.Runtime = filepath.Base(out.Runtime) // a started sandbox records the program's path
		}
	}
	return out, ok
}
