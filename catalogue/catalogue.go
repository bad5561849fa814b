// Package catalogue describes to package study, as data, what a study can be made of.
//
// The data path: 1. the families list their workloads, kinds of sandbox and collectors;
// 2. Of takes from each what a study's checks need; 3. study.Parse reads a study with it.
package catalogue

import (
	"slices"

	"tare/collect"
	"tare/param"
	"tare/record"
	"tare/sandbox"
	sandboxall "tare/sandbox/all"
	"tare/study"
	"tare/volume"
	"tare/workload"
)

// Of describes them. The first kind that isolates nothing is Catalogue.Native.
func Of(workloads []workload.Workload, kinds []sandbox.Kind, collectors []collect.Collector) study.Catalogue {
	cat := study.Catalogue{Workloads: map[string]study.WorkloadInfo{}, Sandboxes: map[string]study.SandboxInfo{}}
	for _, w := range workloads {
		cat.Workloads[w.Name()] = describe(w)
	}
	for _, k := range kinds {
		cat.Sandboxes[k.Name()] = Sandbox(k)
		if cat.Native == "" && k.Traits(nil).Native == k.Name() {
			cat.Native = k.Name()
		}
	}
	for _, d := range sandboxall.Bases(kinds) {
		cat.Bases = append(cat.Bases, Base(d))
	}
	for _, c := range collectors {
		cat.Collectors = append(cat.Collectors, c.Name())
	}
	return cat
}

// Base describes what a study may define sandboxes like.
func Base(d sandbox.Definable) study.Base {
	word, about := d.Base()
	return study.Base{Name: word, About: about, Keys: d.Keys(),
		Define: func(name string, keys param.Values) (study.SandboxInfo, error) {
			k, err := d.Define(name, keys)
			if err != nil {
				return study.SandboxInfo{}, err //nolint:wrapcheck // study says of which sandbox it is
			}
			return Sandbox(k), nil
		}}
}

// Sandbox describes one kind.
func Sandbox(k sandbox.Kind) study.SandboxInfo {
	info := study.SandboxInfo{Params: k.Params(), Traits: func(v param.Values) record.Traits { return k.Traits(v).Traits }}
	if c, ok := k.(sandbox.Chooser); ok {
		info.CheckOptions = func(v param.Values) error { return c.CheckOptions(v) }
	}
	if n, ok := k.(sandbox.Noter); ok {
		info.NoteOptions = func(v param.Values) string { return n.NoteOptions(v) }
	}
	return info
}

func describe(w workload.Workload) study.WorkloadInfo {
	info := study.WorkloadInfo{
		Params:    w.Params(),
		Responses: func(v param.Values) []record.Response { return w.Responses(v) },
		Check:     func(v param.Values) error { _, err := w.Roles(v); return err },
		Copies:    func(v param.Values, n int) error { _, err := workload.Copies(w, v, n); return err },
	}
	if n, ok := w.(workload.Noter); ok {
		info.Notes = n.Notes
	}
	workload.EachRole(w, func(r *workload.Role) {
		info.Stores = info.Stores || slices.ContainsFunc(r.Volumes, func(v volume.Volume) bool { return v.Medium == volume.Disk })
	})
	if v, err := param.Fill(w.Params(), nil); err == nil {
		if roles, err := w.Roles(v); err == nil {
			info.Endpoints = len(roles)
			for _, r := range roles {
				info.Launches = info.Launches || r.Mode != workload.Exec
			}
		}
	}
	return info
}
