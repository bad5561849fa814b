package oci

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"tare/param"
	"tare/record"
	"tare/sandbox"
)

// sandboxNetwork has gVisor's own network stack use the interfaces of the namespace.
const sandboxNetwork = "--network=sandbox"

// Known returns the kinds of the runtimes that tare knows, in the order of documentation.
// Their checks make trees below stateDir.
func Known(stateDir string) []sandbox.Kind {
	runsc := func(platform, about string) Config {
		return Config{
			Name: "runsc-" + platform, About: about, Runtime: "runsc",
			Args:    []string{"--platform=" + platform, sandboxNetwork},
			Install: "run `make setup` in tare's source, or see https://gvisor.dev/docs/user_guide/install/",
		}
	}
	var out []sandbox.Kind
	for _, c := range []Config{
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
	} {
		c.StateDir = stateDir
		out = append(out, New(c))
	}
	return out
}

// isRunsc tells gVisor by its program's name.
func isRunsc(binary string) bool { return strings.HasPrefix(filepath.Base(binary), "runsc") }

// TraitsOf tells what a runtime is by its program's name, for it may not be installed. A
// Kubernetes handler is read likewise: its name is free, but projects document these.
func TraitsOf(program string) record.Traits {
	t := record.Traits{Family: record.FamilyContainer, Runtime: program, Native: sandbox.Native}
	switch name := strings.ToLower(program); {
	case isRunsc(name), strings.Contains(name, "gvisor"):
		t.Family, t.OwnKernel, t.Emulated = record.FamilyGVisor, record.Yes, record.No
	case strings.HasPrefix(name, "kata"), strings.HasPrefix(name, "containerd-shim-kata"):
		t.Family, t.OwnKernel = record.FamilyVM, record.Yes
	case slices.Contains([]string{"runc", "crun", "youki"}, name):
		t.OwnKernel, t.Emulated = record.No, record.No
	}
	return t
}

// Traits implements sandbox.Kind. gVisor's clock is calibrated by two readings a second apart
// (pkg/sentry/time, ApproxUpdateInterval). Until then programs read it by a system call each
// instead of through the vDSO: 170 times as slow as natively, then 1.3 times. A trial of a
// second would weigh little else.
func (k *Runtime) Traits(options map[string]string) sandbox.Traits {
	t := sandbox.Traits{Traits: TraitsOf(filepath.Base(k.cfg.Runtime))}
	t.Flags = sandbox.Flags(k.cfg.Args)
	if t.Family == record.FamilyGVisor {
		t.Platform = "systrap"
		for _, f := range t.Flags {
			if p, ok := strings.CutPrefix(f, "platform="); ok {
				t.Platform = p
			}
		}
		v, err := param.Fill(k.Params(), param.Values(options))
		if err != nil {
			v, _ = param.Fill(k.Params(), nil) // the study was checked; defaults always fill
		}
		t.Settle = v.Duration(paramSettle)
	}
	return t
}

// Base implements sandbox.Definable.
func (*Runtime) Base() (word, about string) { return "oci", "a container by an OCI runtime" }

// Keys implements sandbox.Definable.
func (*Runtime) Keys() []param.Param {
	return sandbox.RuntimeKeys("name or path of the runtime's program", "arguments before the runtime's command")
}

// Define implements sandbox.Definable.
func (k *Runtime) Define(name string, keys param.Values) (sandbox.Kind, error) {
	c := Config{Name: name, Runtime: keys.Str(sandbox.KeyRuntime), Args: keys.List(sandbox.KeyArgs), StateDir: k.cfg.StateDir}
	if c.Runtime == "" {
		return nil, errors.New("runtime is missing; write runtime: NAME with the name or path of an OCI runtime, such as youki")
	}
	c.About = "a container by " + strings.Join(append([]string{c.Runtime}, c.Args...), " ") + ", as the study defines it"
	return New(c), nil
}
