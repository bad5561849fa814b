package analyse

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tare/ordered"
	"tare/param"
	"tare/record"
	"tare/study"
)

// Certificate says whether a treatment and its baseline were alike in all but the compared factor,
// by what was in force on their nodes. Both sides of a block are compared.
type Certificate struct {
	Stratum   string   `json:"stratum"`   // Stratum.Key
	Treatment string   `json:"treatment"` // Treatment.Key
	Blocks    int      `json:"blocks"`    // that have both
	Same      []string `json:"same,omitempty"`
	Differ    []string `json:"differ,omitempty"`  // "CPU limit 0.5 cores, none natively"
	Program   string   `json:"program,omitempty"` // the runtime that both sides ran with the same settings, though their sandboxes have different names
	Unread    []string `json:"unread,omitempty"`  // what a node's observer would have read of both sides
	// Copies says where the copies of the treatment were, and BaseCopies where those of the baseline were; nil: neither has several, or
	// the trials name no nodes.
	Copies     *Copies `json:"copies,omitempty"`
	BaseCopies *Copies `json:"baseline_copies,omitempty"`
}

// Copies is where the copies of a cell were, by all of its trials that count.
type Copies struct {
	Count  int      `json:"count"` // of a trial
	AtOnce int      `json:"nodes"` // that a trial had copies on; the fewest, if trials differ
	Most   int      `json:"most"`  // copies on one node
	On     []string `json:"on"`    // nodes that had copies, in any trial
}

// term is a fact that both sides of a comparison should share.
type term struct {
	fact   string // ends the name of a trial's fact: ROLE.fact
	name   string
	factor string // that may make it differ; "" for none
	show   func(string) string
	seen   bool // only an observer of the node sees it
}

func terms() []term {
	plain := func(v string) string { return v }
	return []term{
		{record.FactNode, "node", study.FactorCopiesOn, plain, false},
		{record.FactCPULimit, "CPU limit in force", study.FactorCPULimit, unlessNone(func(n float64) string { return strconv.FormatFloat(n, 'g', 4, 64) + " cores" }), true},
		{record.FactMemoryLimit, "memory limit in force", study.FactorMemoryLimit, unlessNone(func(n float64) string { return param.FormatSize(int64(n)) }), true},
		{record.FactImageDigest, "image", "", plain, false},
		{record.FactKernel, "node's kernel", "", plain, false},
		{record.FactOS, "node's OS", "", plain, false},
		{record.FactRuntime, "container runtime", "", plain, false},
		{record.FactHandler, "runtime handler", study.FactorSandbox, plain, false},
		{record.FactRoot, "root file system", "", plain, true},
		{record.FactNetwork, "network", "", plain, false},
		{record.FactDevice, "network device", "", plain, false},
		{record.FactQOS, "QoS class", "", plain, false},
		{record.FactPriority, "priority", "", plain, false},
	}
}

func unlessNone(show func(float64) string) func(string) string {
	return func(v string) string {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return v
		}
		return show(n)
	}
}

// certificates are those of all comparisons whose trials tell what was in force, sorted by stratum
// and treatment.
func (a *analysis) certificates() []Certificate {
	var out []Certificate
	for i := range a.study.Strata {
		s := &a.study.Strata[i]
		if s.Baseline < 0 || s.Baseline >= len(s.Cells) {
			continue
		}
		base := a.counting[s.Cells[s.Baseline].Key()]
		for j, cell := range s.Cells {
			if j == s.Baseline {
				continue
			}
			c := Certificate{Stratum: s.Key, Treatment: a.study.Treatment(i, cell).Key()}
			c.compare(base, a.counting[cell.Key()], s.Cells[s.Baseline], cell)
			if len(c.Same)+len(c.Differ) > 0 {
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(x, y Certificate) int {
		return cmp.Or(cmp.Compare(x.Stratum, y.Stratum), cmp.Compare(x.Treatment, y.Treatment))
	})
	return out
}

// compare compares the trials of each block that has both.
func (c *Certificate) compare(base, own map[int]*record.Trial, baseCell, cell record.Cell) {
	differ, seen := map[string]string{}, map[string]bool{}
	for _, block := range slices.Sorted(maps.Keys(own)) {
		t, b := own[block], base[block]
		if b == nil {
			continue
		}
		c.Blocks++
		for _, x := range terms() {
			x.compare(b, t, seen, differ)
		}
	}
	c.Copies, c.BaseCopies = copiesOf(own), copiesOf(base)
	if max(c.Copies.count(), c.BaseCopies.count()) < 2 {
		c.Copies, c.BaseCopies = nil, nil
	}
	if c.Copies.count() > 1 && !reflect.DeepEqual(c.Copies, c.BaseCopies) {
		unlike(own, differ)
	}
	was, _ := baseCell.Get(study.FactorSandbox)
	if is, _ := cell.Get(study.FactorSandbox); is != was {
		c.Program = sameProgram(base, own)
	}
	for _, x := range terms() {
		was, _ := baseCell.Get(x.factor)
		is, _ := cell.Get(x.factor)
		switch {
		case !seen[x.name]:
			if x.seen {
				c.Unread = append(c.Unread, x.name)
			}
		case was != is: // what is compared may differ
		case differ[x.name] != "":
			c.Differ = append(c.Differ, differ[x.name])
		default:
			c.Same = append(c.Same, x.name)
		}
	}
}

func (c *Copies) count() int {
	if c == nil {
		return 0
	}
	return c.Count
}

// copiesOf is where the copies of a cell's trials were; nil if they do not say.
func copiesOf(trials map[int]*record.Trial) *Copies {
	var out *Copies
	for _, t := range trials {
		on := map[string]map[int]bool{} // copies, by node
		count := 0
		for name, node := range t.Facts {
			if role, is := strings.CutSuffix(name, "."+record.FactNode); is {
				_, k := record.CopyOf(role)
				if on[node] == nil {
					on[node] = map[int]bool{}
				}
				on[node][k] = true
				count = max(count, k)
			}
		}
		if count == 0 {
			continue
		}
		if out == nil {
			out = &Copies{AtOnce: len(on)}
		}
		out.Count, out.AtOnce = max(out.Count, count), min(out.AtOnce, len(on))
		for node, of := range on {
			out.Most, out.On = max(out.Most, len(of)), ordered.Add(out.On, node)
		}
	}
	if out != nil {
		slices.Sort(out.On)
	}
	return out
}

// unlike notes the first difference between the nodes of a trial's copies. It matters where the baseline has no such copies, which
// would differ as much.
func unlike(trials map[int]*record.Trial, differ map[string]string) {
	for _, x := range terms() {
		if !slices.Contains([]string{record.FactKernel, record.FactOS, record.FactRuntime}, x.fact) {
			continue
		}
		for _, t := range trials {
			for name, v := range t.Facts {
				copied, is := strings.CutSuffix(name, "."+x.fact)
				role, k := record.CopyOf(copied)
				first := t.Facts[role+"."+x.fact]
				if !is || k == 1 || first == "" || first == v {
					continue
				}
				text := fmt.Sprintf("%s: %s %s, of the first copy %s", copied, x.name, x.show(v), x.show(first))
				if differ[x.name] == "" || text < differ[x.name] {
					differ[x.name] = text
				}
			}
		}
	}
}

// sameProgram is the runtime that both sides ran in each role of each block that has both; "" if they differ, or it is not
// known of all.
func sameProgram(base, own map[int]*record.Trial) (out string) {
	for block, t := range own {
		b := base[block]
		if b == nil {
			continue
		}
		known := false
		for name := range t.Facts {
			role, is := strings.CutSuffix(name, "."+record.FactNode) // each pod has it
			if !is {
				continue
			}
			program := t.Facts[role+"."+record.FactProgram]
			if program == "" || program != b.Facts[role+"."+record.FactProgram] {
				return ""
			}
			known = true
			out, _, _ = strings.Cut(program, " ")
		}
		if !known {
			return ""
		}
	}
	return out
}

// compare notes that both trials have the fact, and the first difference.
func (x *term) compare(base, own *record.Trial, seen map[string]bool, differ map[string]string) {
	for name, v := range own.Facts {
		role, is := strings.CutSuffix(name, "."+x.fact)
		was, both := base.Facts[name]
		if !is || !both {
			continue
		}
		seen[x.name] = true
		text := fmt.Sprintf("%s %s, in the baseline %s", x.name, x.show(v), x.show(was))
		if role != "main" {
			text = role + ": " + text
		}
		if was != v && (differ[x.name] == "" || text < differ[x.name]) {
			differ[x.name] = text
		}
	}
}

// Certificate returns that of a comparison; nil if its trials do not tell what was in force.
func (r *Result) Certificate(c *Comparison) *Certificate {
	i, found := slices.BinarySearchFunc(r.Certificates, c, func(x Certificate, c *Comparison) int {
		return cmp.Or(cmp.Compare(x.Stratum, c.Stratum), cmp.Compare(x.Treatment, c.Treatment))
	})
	if !found {
		return nil
	}
	return &r.Certificates[i]
}

// Unequal reports whether more than the compared factor is known to have differed.
func (r *Result) Unequal(c *Comparison) bool {
	x := r.Certificate(c)
	return x != nil && len(x.Differ) > 0
}
