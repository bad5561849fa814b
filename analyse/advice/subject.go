package advice

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tare/analyse/cause"
	"tare/record"
	"tare/sizing"
	"tare/study"
)

// Families lists those that rules are for.
func Families() []string {
	return []string{string(record.FamilyVM), string(record.FamilyGVisor), string(record.FamilyContainer), string(record.FamilyNative)}
}

// Factors that a rule looks at beside those that package study names: parameters of
// the sandbox vm.
const (
	factorVCPUs  = "default_vcpus"
	factorRootfs = "rootfs"
	factorQueues = "network_queues"
	factorSizing = "sizing"
	// factorIOThreads is how many threads serve the disks beside the VMM's main loop.
	factorIOThreads = "io_threads"
	// factorDiskQueues is how many queues each of these disks has.
	factorDiskQueues = "disk_queues"
	// factorOverhead is what sizing rs adds to a limit.
	factorOverhead = "overhead_vcpus"
)

const (
	none        = "none" // no limit
	anyCPU      = "any"
	all         = "all"      // of the host's processors
	virtiofs    = "virtiofs" // of rootfs, unless said
	platform    = "platform="
	hostNetwork = "network=host"
	ptrace      = "ptrace"
	systrap     = "systrap"
)

// subject is a finding with what the rules ask of its cell.
type subject struct {
	f       *cause.Finding
	at      int // index of the finding
	family  record.Family
	args    []string // flags of the runtime, without dashes; nil: unknown
	path    string   // network, disk, launch, none; "" unknown
	limit   float64  // cores; 0 none
	vcpus   int      // at boot; 0 all of the host's
	kata    sizing.Runtime
	queues  int     // pairs of the network card's
	workers int     // 0 unknown
	cores   float64 // used; 0 unknown
	arpFull bool    // it talks to more neighbours than the limit of the ARP table that the study gave the host
	cluster bool    // the trials ran in a cluster's pods, where nobody calls the runtime from a command line
	gains   bool    // measured: more processors surely serve its own cell better, whatever the workers
}

func (b *builder) subject(i int) *subject {
	f := &b.in.Findings[i]
	s := &subject{f: f, at: i, vcpus: 1, cluster: b.in.OnCluster}
	s.family, s.args = b.familyOf(f)
	if v, ok := f.Cell.Get(study.FactorCPULimit); ok && v != none {
		s.limit, _ = strconv.ParseFloat(v, 64)
	}
	if v, ok := f.Cell.Get(factorVCPUs); ok {
		if s.vcpus, _ = strconv.Atoi(v); s.vcpus < 0 {
			s.vcpus = 0
		}
	}
	s.kata = b.kata(s)
	s.queues = s.vcpus
	if s.static() {
		s.queues = 1
	}
	if v, ok := f.Cell.Get(factorQueues); ok && v != "auto" {
		s.queues, _ = strconv.Atoi(v)
	}
	s.path, s.workers = b.load(f)
	// Other families have a table of their own.
	s.arpFull = (s.family == record.FamilyContainer || s.family == record.FamilyNative) && b.arpFull(f)
	s.cores = b.coresOf(f)
	s.gains = b.serves(s)
	return s
}

// familyOf tells what a cell's sandbox is, and the flags of its runtime: by its traits, and
// where nothing is known by the thread that is full. Virtual machines alone have vCPUs.
func (b *builder) familyOf(f *cause.Finding) (record.Family, []string) {
	level, _ := f.Cell.Get(study.FactorSandbox)
	t := b.in.Traits[level]
	if _, ok := f.Cell.Get(factorVCPUs); ok {
		t.Family = record.FamilyVM
	}
	if t.Family == "" {
		switch record.ThreadRole(f.Role) {
		case record.RoleVhost, record.RoleIOThread, record.RoleVirtiofsd, record.RoleVMM, record.RoleVCPU:
			t.Family = record.FamilyVM
		case record.RoleSentry, record.RoleGofer:
			t.Family = record.FamilyGVisor
		default:
			t.Family = record.FamilyContainer
		}
	}
	return t.Family, t.Flags
}

// workload is that of a cell; an empty one where nothing is known.
func (b *builder) workload(f *cause.Finding) study.Workload {
	if b.in.Workload == nil {
		return study.Workload{}
	}
	return b.in.Workload(f.Stratum)
}

// loadOf is what the rules know of a cell's workload; an empty one of a workload that they do not know.
func (b *builder) loadOf(f *cause.Finding) Load {
	kind := b.workload(f).Kind
	if i := slices.IndexFunc(b.rules.Workloads, func(l Load) bool { return l.Kind == kind }); i >= 0 {
		return b.rules.Workloads[i]
	}
	return Load{}
}

// load says what a cell's workload loads, and how many workers it has.
func (b *builder) load(f *cause.Finding) (path string, workers int) {
	l := b.loadOf(f)
	if l.Workers == "" {
		return l.Path, 0
	}
	text, ok := f.Cell.Get(l.Workers)
	if !ok {
		text, ok = b.workload(f).Params[l.Workers]
	}
	if !ok {
		return l.Path, l.Unless
	}
	n, _ := strconv.Atoi(text) // words such as all: unknown
	return l.Path, n
}

// mostARP is a level of arp-limit that has room for any workload's neighbours but the most.
const mostARP = 8192

// arpFull compares a cell's neighbours (of the workload net) with its level of arp-limit.
func (b *builder) arpFull(f *cause.Finding) bool {
	const factorNeighbours = "neighbours"
	text, ok := f.Cell.Get(factorNeighbours)
	if !ok && b.in.Workload != nil {
		text = b.in.Workload(f.Stratum).Params[factorNeighbours]
	}
	level, _ := f.Cell.Get(record.SettingARPLimit)
	limit, err := strconv.Atoi(level)
	n, _ := strconv.Atoi(text)
	return err == nil && n >= limit && n < mostARP
}

// coresOf are the cores that a cell used, with all its helpers; 0 where nobody knows.
func (b *builder) coresOf(f *cause.Finding) float64 {
	if f.Price != nil && f.Price.Cores > 0 {
		return f.Price.Cores
	}
	if c := b.cost(f.Cell); c != nil {
		return c.Cores
	}
	return b.used[f.Cell.Key()]
}

// platform is gVisor's, "" unknown.
func (s *subject) platform() string {
	for _, a := range s.args {
		if p, ok := strings.CutPrefix(a, platform); ok {
			return p
		}
	}
	return ""
}

// further are the vCPUs to boot with when more are wanted: twice as many, at most the
// workers; 0 when there is no more to be had.
func (s *subject) further(now int) int {
	if now <= 0 {
		return 0
	}
	n := 2 * now
	if s.workers > 0 && !s.gains {
		n = min(n, s.workers)
	}
	if n <= now {
		return 0
	}
	return n
}

// room reports whether the CPU quota has room for twice the vCPUs at boot: the use grows
// at most as they do.
func (s *subject) room() bool {
	return s.limit == 0 || s.cores > 0 && s.vcpus > 0 && s.limit+sizing.Overhead >= 2*s.cores
}

// kata is the runtime whose rule sized a subject's machine.
func (b *builder) kata(s *subject) sizing.Runtime {
	r := sizing.Runtime{VCPUs: s.vcpus, OverheadVCPUs: sizing.DefaultOverheadVCPUs, OverheadMiB: sizing.DefaultOverheadMiB}
	level, _ := s.f.Cell.Get(study.FactorSandbox)
	r.Flavour = sizing.Flavour(b.in.Traits[level].Sizing)
	if v, ok := s.f.Cell.Get(factorSizing); ok {
		r.Flavour = sizing.Flavour(v)
	}
	if v, ok := s.f.Cell.Get(factorOverhead); ok {
		r.OverheadVCPUs, _ = strconv.ParseFloat(v, 64)
	}
	return r
}

// static reports whether the machine boots with all that it has: vCPUs bring no queues then,
// and under a limit default_vcpus counts for nothing.
func (s *subject) static() bool { return s.kata.Flavour == sizing.RS }

// processors are a machine's, at boot and plugged in (docs/verbs/size.md); 0 where it boots
// with all of the host's.
func (s *subject) processors() int {
	if s.vcpus == 0 && !(s.static() && s.limit > 0) {
		return 0
	}
	size, err := sizing.Of(sizing.Pod{CPULimit: s.limit}, s.kata)
	if err != nil {
		return s.vcpus
	}
	return size.VCPUsTotal
}

// moreWorkers reports whether further processors would have something to do: a worker
// each, or what is not a worker, such as the guest's interrupts, where it was measured.
func (s *subject) moreWorkers() bool {
	if s.gains {
		return true
	}
	now := s.vcpus
	if s.family != record.FamilyVM {
		now = int(s.limit) // 0: any
	} else if s.static() && s.limit > 0 {
		return s.workers == 0 || s.workers > s.processors()
	} else if s.limit > 0 && s.f.Cause == cause.Guest {
		now += int(s.limit)
	}
	if s.family == record.FamilyVM && s.vcpus == 0 {
		return false // it has all
	}
	return s.workers == 0 || s.workers > now
}

// conditions are the words of Rule.When; "unruled" is answered in match.
func conditions() map[string]func(*subject) bool {
	level := func(s *subject, factor, unless string) string {
		v, _ := s.f.Cell.Get(factor)
		return cmp.Or(v, unless)
	}
	return map[string]func(*subject) bool{
		"limited":         func(s *subject) bool { return s.limit > 0 },
		"unlimited":       func(s *subject) bool { return s.limit == 0 },
		"room":            (*subject).room,
		"no-room":         func(s *subject) bool { return !s.room() },
		"more-workers":    (*subject).moreWorkers,
		"no-more-workers": func(s *subject) bool { return !s.moreWorkers() },
		"fewer-queues":    func(s *subject) bool { return s.queues < s.processors() },
		"queue-each":      func(s *subject) bool { return !s.static() },
		"queues-apart":    (*subject).static,
		"network":         func(s *subject) bool { return s.path == "network" },
		"not-network":     func(s *subject) bool { return s.path != "network" },
		"launch":          func(s *subject) bool { return s.path == "launch" },
		"not-launch":      func(s *subject) bool { return s.path != "launch" },
		"arp-full":        func(s *subject) bool { return s.arpFull },
		"not-arp-full":    func(s *subject) bool { return !s.arpFull },
		"disk":            func(s *subject) bool { return s.path == "disk" },
		"not-disk":        func(s *subject) bool { return s.path != "disk" },
		"virtiofs":        func(s *subject) bool { return level(s, factorRootfs, virtiofs) == virtiofs },
		"pinned":          func(s *subject) bool { return level(s, study.FactorCPUs, anyCPU) != anyCPU },
		"host":            func(s *subject) bool { return !s.cluster },
		"own-network":     func(s *subject) bool { return !slices.Contains(s.args, hostNetwork) },
		"on-ptrace":       func(s *subject) bool { return s.platform() == ptrace },
		"on-systrap":      func(s *subject) bool { return s.platform() == systrap },
		"unruled":         func(*subject) bool { return true },
	}
}

// fulfils reports whether a rule speaks of a subject; "unruled" apart.
func (r *Rule) fulfils(s *subject) bool {
	if !slices.Contains(r.Causes, s.f.Cause) || len(r.In) > 0 && !slices.Contains(r.In, string(s.family)) {
		return false
	}
	if s.f.Cause == cause.Helper && len(r.Roles) > 0 && !slices.Contains(r.Roles, s.f.Role) {
		return false
	}
	return s.holds(r.When)
}

func (s *subject) holds(when []string) bool {
	known := conditions()
	return !slices.ContainsFunc(when, func(w string) bool { return known[w] == nil || !known[w](s) })
}

// match returns the rules of a subject: those that speak of it, and only where there are
// none those that are for what no other rule is about.
func (b *builder) match(s *subject) []int {
	var out, last []int
	for i := range b.rules.Rules {
		r := &b.rules.Rules[i]
		switch {
		case !r.fulfils(s):
		case slices.Contains(r.When, "unruled"):
			last = append(last, i)
		default:
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		return last
	}
	return out
}

// swap returns the cell with a factor's level changed, nil if it has no such factor.
func swap(c record.Cell, factor, level string) record.Cell {
	i := slices.IndexFunc(c, func(l record.Level) bool { return l.Factor == factor })
	if i < 0 {
		return nil
	}
	out := slices.Clone(c)
	out[i].Value = level
	return out
}
