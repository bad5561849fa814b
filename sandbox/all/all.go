// Package all is the list of the kinds of sandbox. A new kind is one line here.
//
// The data path: 1. Kinds makes the kinds that tare knows; 2. it adds those
// that the study defines over an OCI runtime of the user's; 3. the study's
// levels of the factor "sandbox" are their names.
package all

import (
	"fmt"
	"path/filepath"
	"strings"

	"tare/param"
	"tare/sandbox"
	"tare/sandbox/fake"
	"tare/sandbox/oci"
	"tare/sandbox/process"
	"tare/sandbox/vm"
	"tare/sandbox/vm/boot"
)

// Env is what kinds need to know about this run.
type Env struct {
	StateDir string      // for the trees of checks, such as /var/lib/tare/RUNID; it must not be mounted noexec
	CacheDir string      // for what is worth keeping, such as /var/cache/tare
	Boot     boot.Source // of the kernel that virtual machines boot; nil: there are none
}

// Def is a kind defined by configuration.
type Def struct {
	Name    string // the level's name in the study
	Kind    string // what it is built on: "vm"; "oci", or "" for the same
	Runtime string // name or path of the runtime's binary; of a vm: of a QEMU, or "" for the distribution's
	Args    []string
}

// What a defined kind is built on.
const (
	kindOCI = "oci"
	kindVM  = "vm"
)

// Kinds returns the built-in kinds in the order of documentation, then the
// defined ones. A name that is taken is an error.
func Kinds(env Env, defs []Def) ([]sandbox.Kind, error) {
	runsc := func(platform, about string) oci.Config {
		return oci.Config{
			Name: "runsc-" + platform, About: about, Runtime: "runsc",
			Args:    []string{"--platform=" + platform, "--network=sandbox"},
			Install: "run `make setup` in tare's source, or see https://gvisor.dev/docs/user_guide/install/",
		}
	}
	configs := []oci.Config{
		{
			Name: "runc", Runtime: "runc", Install: "apt-get install runc",
			About: "a container by runc: namespaces, control groups, capabilities",
		},
		{
			Name: "crun", Runtime: "crun", Install: "apt-get install crun",
			About: "a container by crun, runc's task in C",
		},
		runsc("systrap", "gVisor's kernel in user space, system calls caught by seccomp traps"),
		runsc("ptrace", "gVisor's kernel in user space, system calls caught by ptrace"),
		runsc("kvm", "gVisor's kernel in user space, system calls caught by KVM"),
	}
	kinds := []sandbox.Kind{process.New(env.StateDir)}
	for _, c := range configs {
		c.StateDir = env.StateDir
		kinds = append(kinds, oci.New(c))
	}
	machines := vm.Config{Boot: env.Boot, StateDir: env.StateDir, CacheDir: filepath.Join(env.CacheDir, "vm")}
	kinds = append(kinds, vm.New(machines), fake.New())
	names := map[string]bool{}
	for _, k := range kinds {
		names[k.Name()] = true
	}
	for _, d := range defs {
		if err := d.check(names); err != nil {
			return nil, err
		}
		names[d.Name] = true
		if d.Kind == kindVM {
			own := machines
			own.Name, own.Runtime, own.Args = d.Name, d.Runtime, d.Args
			own.CacheDir = filepath.Join(own.CacheDir, "own", d.Name)
			kinds = append(kinds, vm.New(own))
			continue
		}
		kinds = append(kinds, oci.New(oci.Config{
			Name: d.Name, Runtime: d.Runtime, Args: d.Args, StateDir: env.StateDir,
			About:   "a container by " + strings.Join(append([]string{d.Runtime}, d.Args...), " ") + ", as the study defines it",
			Install: "install it, or correct its path in the study",
		}))
	}
	return kinds, nil
}

// HostKernel names the kinds, and the programs of OCI runtimes that a study may
// define one over, whose sandboxes have no kernel of their own.
func HostKernel() []string { return []string{"process", "runc", "crun", "youki"} }

func (d Def) check(taken map[string]bool) error {
	switch {
	case d.Kind != kindOCI && d.Kind != kindVM && d.Kind != "":
		return fmt.Errorf("sandbox %s: there is no kind %q to build on; %s", d.Name, d.Kind, param.Suggest(d.Kind, []string{kindOCI, kindVM}))
	case d.Name == "" || strings.ContainsAny(d.Name, "/ \t\n") || strings.HasPrefix(d.Name, ".") || strings.HasPrefix(d.Name, "-"):
		return fmt.Errorf("sandbox %q: the name becomes a directory; use letters, digits and hyphens", d.Name)
	case taken[d.Name]:
		return fmt.Errorf("sandbox %s: there is one of this name already; choose another", d.Name)
	case d.Runtime == "" && d.Kind != kindVM:
		return fmt.Errorf("sandbox %s: runtime is missing; write the name or path of an OCI runtime, such as youki", d.Name)
	}
	return nil
}
