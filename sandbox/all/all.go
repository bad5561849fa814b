// Package all is the list of the kinds of sandbox. A new kind is one line here.
//
// The data path: 1. Kinds makes the kinds that tare knows; 2. a study may define
// others like those that Bases returns; 3. the study's levels of the factor
// "sandbox" are their names.
package all

import (
	"path/filepath"
	"slices"

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

// Kinds returns the kinds in the order of documentation.
func Kinds(env Env) []sandbox.Kind {
	kinds := append([]sandbox.Kind{process.New(env.StateDir)}, oci.Known(env.StateDir)...)
	return append(kinds,
		vm.New(vm.Config{Boot: env.Boot, StateDir: env.StateDir, CacheDir: filepath.Join(env.CacheDir, "vm")}),
		fake.New(),
	)
}

// Bases returns, of the kinds that a study may define others like, the first of each word.
// The first of all is meant where a definition has no kind.
func Bases(kinds []sandbox.Kind) []sandbox.Definable {
	var out []sandbox.Definable
	for _, k := range kinds {
		d, ok := k.(sandbox.Definable)
		if ok && !slices.ContainsFunc(out, func(o sandbox.Definable) bool { return word(o) == word(d) }) {
			out = append(out, d)
		}
	}
	return out
}

func word(d sandbox.Definable) string {
	w, _ := d.Base()
	return w
}
