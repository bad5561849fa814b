package analyse

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

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
	Program   string   `json:"program,omitempty"` // the runtime, if both sides ran the same one with the same settings under different sandbox names
	Unread    []string `json:"unread,omitempty"`  // facts that are missing because no observer read them
	// Copies says where the copies of the treatment were, and BaseCopies where those of the baseline were; nil: neither has several, or
	// the trials name no nodes.
	Copies     *Copies `json:"copies,omitempty"`
	BaseCopies *Copies `json:"baseline_copies,omitempty"`
}

// term is a fact that both sides of a comparison should share.
type term struct {
	fact   string // ends the name of a trial's fact: ROLE.fact
	name   string
	factor string // that may make it differ; "" for none
	show   func(string) string
	seen   bool // only an observer on the node can read it
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
		{record.FactStorageClass, "storage class", factorStorageClass, plain, false},
		{record.FactNetwork, "network", "", plain, false},
		{record.FactDevice, "network device", "", plain, false},
		{record.FactQOS, "QoS class", "", plain, false},
		{record.FactPriority, "priority", "", plain, false},
		{record.FactPriorityLevel, "priority level of the API", "", plain, false},
	}
}

// factorStorageClass is a parameter of pods, which may be a factor.
const factorStorageClass = "storage-class"

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
			if c.Blocks > 0 {
				c.Differ = append(c.Differ, a.otherLevels(s, cell)...)
			}
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
	fromMemory, fromDisk := 0, 0 // blocks in which memory answered one side alone: the treatment's, the baseline's
	for _, block := range slices.Sorted(maps.Keys(own)) {
		t, b := own[block], base[block]
		if b == nil {
			continue
		}
		c.Blocks++
		for _, x := range terms() {
			x.compare(b, t, seen, differ)
		}
		switch is, was := t.Warned(record.WarnPageCache), b.Warned(record.WarnPageCache); {
		case is && !was:
			fromMemory++
		case was && !is:
			fromDisk++
		}
	}
	switch {
	case 2*fromMemory > c.Blocks:
		c.Differ = append(c.Differ, "memory answered its requests, a disk those of the baseline")
	case 2*fromDisk > c.Blocks:
		c.Differ = append(c.Differ, "a disk answered its requests, memory those of the baseline")
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

// otherLevels are the levels in which a cell differs from its stratum's baseline beside the compared one, of factors that both
// have: the storage class where not all sandboxes have that. A cell with the baseline's level of the compared factor that
// differs in one other factor shows the effect of this factor alone.
func (a *analysis) otherLevels(s *study.Stratum, cell record.Cell) (out []string) {
	compared := false
	for _, l := range cell {
		was, both := s.Cells[s.Baseline].Get(l.Factor)
		switch {
		case !both || was == l.Value:
		case l.Factor == a.study.Compare || slices.Contains(a.study.Tuned(), l.Factor) || follows(s, l.Factor, a.study.Compare):
			compared = true
		default:
			out = append(out, fmt.Sprintf("%s %s, in the baseline %s", l.Factor, l.Value, was))
		}
	}
	if !compared && len(out) == 1 {
		return nil
	}
	return out
}

// follows reports whether each level of another factor has one level of this factor in a stratum: the study moves them together.
func follows(s *study.Stratum, factor, other string) bool {
	level := map[string]string{}
	for _, c := range s.Cells {
		of, _ := c.Get(other)
		is, _ := c.Get(factor)
		if first, seen := level[of]; seen && first != is {
			return false
		}
		level[of] = is
	}
	return true
}

// sameProgram returns the runtime if both sides ran the same one with the same settings, in each role of each block that has
// both sides. It returns "" if the runtimes differ or one of them is unknown.
func sameProgram(base, own map[int]*record.Trial) (out string) {
	for block, t := range own {
		b := base[block]
		if b == nil {
			continue
		}
		known := false
		for name := range t.Facts {
			role, is := strings.CutSuffix(name, "."+record.FactNode) // each pod has this fact
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
