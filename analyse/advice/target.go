package advice

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/record"
	"tare/sizing"
	"tare/study"
)

// Words of Setting.To. Others are levels as they are, or a flag of gVisor: platform=NAME,
// network=host.
const (
	toDouble = "double" // twice as many vCPUs or queues, at most the workers
	toEnough = "enough" // the CPU limit that the cells would use
	toMore   = "more"   // twice the CPU limit, at most the workers
	toFewest = "fewest" // the least level of the study that reaches most of the best one's value
)

// target is where a rule's settings lead, from where the cells are: levels by factor.
type target []record.Level

func (t target) level(factor string) (string, bool) { return record.Cell(t).Get(factor) }

// computed is the target that the rule's arithmetic gives, for all subjects together: what
// is enough for each.
func (b *builder) computed(r *Rule, list []*subject) target {
	var out target
	for _, set := range r.Set {
		level := set.To
		switch set.To {
		case toDouble:
			n := 0
			for _, s := range list {
				now := s.vcpus
				if set.Factor == factorQueues {
					now = s.queues
				}
				next := s.further(now)
				if set.Factor == factorQueues {
					next = min(next, s.processors())
				}
				n = max(n, next)
			}
			level = strconv.Itoa(n)
		case toEnough:
			level = strconv.Itoa(b.enough(list))
		case toFewest:
			level = b.fewest(set.Factor, list)
		case toMore:
			n := 0
			for _, s := range list {
				limit := int(math.Ceil(s.limit))
				next := 2 * limit
				if s.workers > 0 && !s.gains {
					next = min(next, s.workers)
				}
				n = max(n, next, limit+1)
			}
			level = strconv.Itoa(n)
		}
		out = append(out, record.Level{Factor: set.Factor, Value: level})
	}
	return out
}

// enough is the CPU limit, in whole cores, under which none of the subjects would be
// held back: what the same cell used without a limit, where the study measured that; else
// what it used and what its threads were held back, which is what they would have run; else,
// where nobody read that, the baseline's work at this sandbox's price, eight times the limit
// at most; else twice the limit.
func (b *builder) enough(list []*subject) int {
	out := 0
	for _, s := range list {
		need := 2 * s.limit
		free := b.cost(swap(s.f.Cell, study.FactorCPULimit, none))
		switch p := s.f.Price; {
		case free != nil && free.Cores > 0:
			need = free.Cores
		case b.wants[s.f.Cell.Key()] > 0:
			need = b.wants[s.f.Cell.Key()]
		case p != nil && p.Base > 0 && p.Ratio > 0:
			need = min(max(p.Cores, p.Base*p.Ratio), 8*s.limit)
		}
		if s.family == record.FamilyVM {
			need -= sizing.Overhead
		}
		// Held back it was, so that its own limit is not enough, whatever was used elsewhere.
		out = max(out, int(math.Ceil(need)), int(math.Floor(s.limit))+1)
	}
	return out
}

// candidates are the targets that the study may have measured for a group of subjects, the
// least change first.
func (b *builder) candidates(r *Rule, list []*subject) []target {
	out := []target{nil}
	// Under a limit that stays there is room for twice the vCPUs, and for no more.
	bounded := !slices.ContainsFunc(r.Set, func(s Setting) bool { return s.Factor == study.FactorCPULimit }) &&
		slices.ContainsFunc(list, func(s *subject) bool { return s.limit > 0 })
	for _, set := range r.Set {
		var levels []string
		switch set.To {
		case toDouble, toEnough, toMore:
			levels = b.rising(set, list, bounded)
		case toFewest:
			levels = b.fromFewest(set.Factor, list[0])
		default:
			levels = b.named(set, list)
		}
		var next []target
		for _, t := range out {
			for _, l := range levels {
				next = append(next, append(slices.Clone(t), record.Level{Factor: set.Factor, Value: l}))
			}
		}
		out = next
	}
	return out
}

// rising are the study's levels of a factor that are more than all subjects have, in
// their order, up to the workers where those bound what helps; bounded, up to twice.
func (b *builder) rising(set Setting, list []*subject, bounded bool) []string {
	now, most, queues := 0.0, 0.0, 0
	for _, s := range list {
		queues = max(queues, s.processors())
		switch set.Factor {
		case study.FactorCPULimit:
			now = max(now, s.limit)
		case factorQueues:
			now = max(now, float64(s.queues))
		default:
			now = max(now, float64(s.vcpus))
		}
		if s.workers == 0 || s.gains {
			most = math.Inf(1)
		}
		most = max(most, float64(s.workers))
	}
	if set.To == toEnough || set.To == toMore {
		most = math.Inf(1) // a limit bounds, it does not have to be used
	}
	if bounded {
		most = min(most, 2*now)
	}
	if set.Factor == factorQueues {
		most = min(most, float64(queues)) // a pair of queues without a processor is never used
	}
	type numbered struct {
		level string
		n     float64
	}
	var out []numbered
	for _, level := range b.levels(set.Factor) {
		n, err := strconv.ParseFloat(level, 64)
		switch {
		case level == none && set.Factor == study.FactorCPULimit:
			n = math.Inf(1)
		case level == all || err != nil || n < 0 || math.IsInf(n, 0):
			continue // how many that is differs from host to host
		}
		if n > now && (n <= most || math.IsInf(n, 1)) {
			out = append(out, numbered{level, n})
		}
	}
	slices.SortStableFunc(out, func(x, y numbered) int {
		switch {
		case x.n < y.n:
			return -1
		case x.n > y.n:
			return 1
		}
		return 0
	})
	levels := make([]string, len(out))
	for i := range out {
		levels[i] = out[i].level
	}
	return levels
}

// named are the study's levels that a fixed target stands for.
func (b *builder) named(set Setting, list []*subject) []string {
	if set.Factor != study.FactorSandbox {
		if slices.Contains(b.levels(set.Factor), set.To) {
			return []string{set.To}
		}
		return nil
	}
	var out []string
	for _, level := range b.levels(set.Factor) {
		if t := b.in.Traits[level]; t.Family == record.FamilyGVisor && sameBut(list[0].args, t.Flags, set.To) {
			out = append(out, level)
		}
	}
	return out
}

// sameBut reports whether two runtimes have the same flags but for one, which the
// second has: the first without it has another of its name, or none.
func sameBut(from, to []string, flag string) bool {
	name, _, _ := strings.Cut(flag, "=")
	rest := func(args []string) []string {
		out := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == name || strings.HasPrefix(a, name+"=") })
		slices.Sort(out)
		return out
	}
	return slices.Contains(to, flag) && !slices.Contains(from, flag) && slices.Equal(rest(from), rest(to))
}

func (b *builder) levels(factor string) []string {
	for _, f := range b.in.Factors {
		if f.Name == factor {
			return f.Levels
		}
	}
	return nil
}

// moved returns the cell with a target's levels; nil if it lacks one of the factors.
func (t target) moved(c record.Cell) record.Cell {
	for _, l := range t {
		if c = swap(c, l.Factor, l.Value); c == nil {
			return nil
		}
	}
	return c
}
