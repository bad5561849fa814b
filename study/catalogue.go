package study

import (
	"maps"
	"slices"

	"tare/param"
	"tare/record"
)

// Catalogue is what a study can be made of. It is data, so that this package
// imports no workload and no sandbox, and reads old studies on any machine.
type Catalogue struct {
	Workloads  map[string]WorkloadInfo
	Sandboxes  map[string]SandboxInfo // by kind
	Bases      []Base                 // what a study may define sandboxes like; the first where it does not say
	Native     string                 // the kind that isolates nothing: the baseline unless said
	Collectors []string
	// Others are the parameters of a sandbox that is none of Sandboxes, or in results of another site: its
	// name may be all that is known. Nil: there are no others, but where Stored says so.
	Others func(level string) []param.Param
	// Elsewhere are parameters of sandboxes that another place has. They are factors here too, and
	// apply to nothing.
	Elsewhere []param.Param
	// Lacks says of a level of the factor sandbox that is none of Sandboxes what is wrong with it, and what to write instead. Nil: the usual words.
	Lacks func(level string) (what, instead string)
	// Nodes says that the place may have several nodes, so that copies can be spread over them.
	Nodes bool
	// Stored accepts what a study of results may have: combinations of options that are
	// refused since, and sandboxes and collectors that only another tare knows.
	Stored bool
	// ReadFile reads a file that a study names (param.File): the path is as written,
	// relative to the study file, the error fit for a user. Nil: studies have only the files in
	// their own section files, as a stored one has.
	ReadFile func(path string) ([]byte, error)
}

// SandboxInfo describes one kind of sandbox.
type SandboxInfo struct {
	Params []param.Param
	// Traits are those of a sandbox with these parameters, and of one with the usual ones
	// for nil. Nil: nothing is known.
	Traits func(param.Values) record.Traits
	// CheckOptions says why a sandbox with such parameters starts on no host; the values have
	// passed param.Fill. Nil: every combination is possible.
	CheckOptions func(param.Values) error
	// NoteOptions says what is doubtful about parameters that CheckOptions passes; "" or nil: nothing.
	NoteOptions func(param.Values) string
}

// traits calls Traits, where it is there.
func (i SandboxInfo) traits(v param.Values) record.Traits {
	if i.Traits == nil {
		return record.Traits{}
	}
	return i.Traits(v)
}

// Base is a word for the key kind of a definition in the section sandboxes.
type Base struct {
	Name, About string
	Keys        []param.Param // of the definition, beside kind
	// Define describes the sandbox of a definition whose values have passed param.Fill. The
	// error says what to write.
	Define func(name string, keys param.Values) (SandboxInfo, error)
}

// base returns the one of that name, "" for the first.
func (c Catalogue) base(name string) (Base, bool) {
	i := slices.IndexFunc(c.Bases, func(b Base) bool { return b.Name == name || name == "" })
	if i < 0 {
		return Base{}, false
	}
	return c.Bases[i], true
}

func (c Catalogue) baseNames() []string {
	var out []string
	for _, b := range c.Bases {
		out = append(out, b.Name)
	}
	return out
}

// WorkloadInfo describes one kind of workload. Nil functions mean: no
// responses, nothing to refuse.
type WorkloadInfo struct {
	Params    []param.Param
	Responses func(param.Values) []record.Response
	Check     func(param.Values) error // of values that have passed param.Fill
	// Copies says why so many copies of it cannot run at once, with values that Check passes. Nil: they can.
	Copies func(v param.Values, n int) error
	// Notes are doubts about parameters that Check passes, each at a place in a file; nil: none.
	Notes     func(param.Values) []param.FileError
	Endpoints int  // roles that can be isolated apart; isolate applies from 2 on
	Launches  bool // its roles make sandboxes of their own
	Stores    bool // some of its parameters have it keep files or data on a disk
}

// pathBridge is the level of FactorLinkPath that is the default.
const pathBridge = "bridge"

// Factors describes the factors that tare itself knows, for `tare list` and the
// schema; the sandbox's and the workload's levels depend on the study.
func Factors() []param.Param {
	return []param.Param{
		{Name: FactorIsolate, Type: param.Enum, Default: isolateDefault, Words: []string{"server", "client", Both},
			Help: "which side of a client-server workload is in the sandbox; the other side is a native process"},
		{Name: FactorCPULimit, Type: param.Float, Default: "none", Min: param.LeastCPULimit, Max: param.MostCPULimit, Words: []string{"none"}, Milli: true,
			Help: "CPU time that the sandbox may use, in cores: 0.5, or 500m as Kubernetes writes it"},
		{Name: FactorMemoryLimit, Type: param.Size, Default: "none", Min: 1 << 20, Max: 1 << 46, Words: []string{"none"},
			Help: "memory the sandbox may use"},
		{Name: FactorCPUs, Type: param.CPUs, Default: AnyCPU, Words: []string{AnyCPU, ApartCPUs},
			Help: "processors the sandbox is pinned to, such as 0-1; apart gives each end of a workload that has several its own cores"},
		{Name: FactorLinkDelay, Type: param.Duration, Default: "none", Min: 50e-6, Max: 1, Words: []string{"none"},
			Help: "delay added to every packet between the two sides of a workload, each way"},
		{Name: FactorLinkRate, Type: param.Rate, Default: "none", Min: 8000, Max: 12.5e9, Words: []string{"none"},
			Help: "rate of the link between the two sides, each way, such as 100Mbit"},
		{Name: FactorLinkPath, Type: param.Enum, Default: pathBridge, Words: []string{pathBridge, record.PathWire, record.PathVXLAN, record.PathGeneve, record.PathWireGuard, record.PathIPsec, record.PathNodes},
			Help: "what joins the two sides: one bridge (on a cluster: one node), two bridges and a wire, two bridges and a tunnel (vxlan, geneve, or encrypted: vxlan-wireguard, geneve-ipsec), or the network between two nodes of a cluster"},
		{Name: FactorCopies, Type: param.Int, Default: "1", Min: 1, Max: MostCopies,
			Help: "sets of the workload's sandboxes that run the same load at once, each with volumes of its own"},
		{Name: FactorCopiesOn, Type: param.Enum, Default: copiesOnOne, Words: []string{copiesOnOne, CopiesSpread},
			Help: "where the copies are: on one host or node, or on a cluster, on its nodes in turn"},
		{Name: FactorBeside, Type: param.Enum, Default: BesideLoad, Words: []string{BesideNothing, BesideLoad},
			Help: "what runs beside the study's victim: nothing, or the load; for studies with the section victim"},
		{Name: FactorVictimSandbox, Type: param.String,
			Help: "the sandbox that the study's victim runs in; for studies with the section victim"},
		{Name: record.SettingMigrationCost, Type: param.Duration, Default: record.SettingHost, Min: 0, Max: 1, Words: []string{record.SettingHost},
			Help: "a setting of the host's kernel during the trial: how long after it ran a thread counts as cache-hot, so that it stays on its processor (sched_migration_cost_ns)"},
		{Name: record.SettingARPLimit, Type: param.Int, Default: record.SettingHost, Min: 16, Max: 1 << 20, Words: []string{record.SettingHost},
			Help: "a setting of the host's kernel during the trial: most entries of the ARP table of all network namespaces together (gc_thresh3 of net.ipv4.neigh.default; gc_thresh2 is half of it, gc_thresh1 an eighth)"},
	}
}

// owners returns the sandboxes among names that have the parameter.
func (d *draft) owners(name string, names []string) []string {
	var out []string
	for _, n := range names {
		if _, ok := param.Find(d.study.sandbox(d.cat, n).Params, name); ok {
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
	for _, k := range c.Sandboxes {
		for _, p := range k.Params {
			set[p.Name] = true
		}
	}
	for _, p := range c.Elsewhere {
		set[p.Name] = true
	}
	return sortedKeys(set)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
