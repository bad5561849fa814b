package words

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// Modelled stands at the top of, and under, all that a model has made.
const Modelled = "modelled, not measured"

// ModelledPatch stands on top of a patch that a model's figures led to: it is a comment
// in YAML, TOML and shell.
const ModelledPatch = "# from a model, not measured"

// ModelledAbout says it at length, once.
const ModelledAbout = "Modelled, not measured: every figure here comes from a model of the sandbox path, none from a real machine. It rehearses a study; it says nothing about a host."

// Doubtful is the confidence below which a cause has a question mark.
const Doubtful = 0.75

// CauseName is how reports show a kind of cause.
type CauseName struct {
	ID      cause.Name `json:"id"`
	Word    string     `json:"word"`              // or two, as maps have it
	About   string     `json:"about,omitempty"`   // what it is; "" of one that is not known here
	Hue     uint32     `json:"hue,omitempty"`     // 0xRRGGBB; 0: it has no colour
	Hatched bool       `json:"hatched,omitempty"` // which tells it from its kin of the same hue
}

// CauseNameOf is the name of a kind. The hues are of Paul Tol's light scheme
// (https://personal.sron.nl/~pault/), which people with any of the common deficiencies
// tell apart; kinds that are kin share one.
func CauseNameOf(k cause.Name) CauseName {
	n := map[cause.Name]CauseName{
		cause.Quota:        {About: "the cgroup's CPU quota holds it back", Hue: 0xEE8866},
		cause.Helper:       {About: "a helper thread of the sandbox is saturated or takes most of the time", Hue: 0xEEDD88},
		cause.Guest:        {About: "all processors that the sandbox may use are busy", Hue: 0x77AADD},
		cause.GuestOne:     {About: "one processor is busy with a workload of a single thread", Hue: 0x77AADD, Hatched: true},
		cause.Emulation:    {About: "software emulates the guest's processor, so that all of its work takes longer", Hue: 0xCC6677},
		cause.Host:         {About: "the host's processors are all busy", Hue: 0x99DDFF},
		cause.Steal:        {About: "a hypervisor below the host takes its processors away", Hue: 0x882255},
		cause.SoftIRQ:      {About: "one of the host's processors is busy with interrupts", Hue: 0x999933},
		cause.Other:        {About: "none of the resources that were read explains it", Hue: 0x777777},
		cause.Link:         {About: "the network link is at its limit", Hue: 0x44BB99},
		cause.Device:       {About: "the disk is at its limit", Hue: 0x44BB99, Hatched: true},
		cause.IOLimit:      {About: "the cgroup's limit of disk traffic holds it back", Hue: 0xEE8866, Hatched: true},
		cause.Depth:        {About: "too few requests are in flight: the disk would do more", Hue: 0xDDCC77, Hatched: true},
		cause.Fsync:        {About: "most of the time is spent waiting until what was written is on the disk", Hue: 0x332288, Hatched: true},
		cause.PageCache:    {About: "one side's requests never reached a disk, so the two sides do not do the same", Hue: 0xDDDDDD, Hatched: true},
		cause.Gofer:        {About: "each use of a file is a round trip to the process that opens files for the sandbox", Hue: 0xEEDD88, Hatched: true},
		cause.Path:         {About: "every round trip has a fixed extra delay; no thread is saturated", Hue: 0xFFAABB},
		cause.Saturation:   {About: "requests wait in queues under load, with no thread saturated", Hue: 0xBBCC33},
		cause.Imbalance:    {About: "one of the guest's processors handles the interrupts", Hue: 0xAAAA00},
		cause.Interception: {About: "system calls: the sandbox intercepts each, which takes time", Hue: 0xC9A3E6},
		cause.Connections:  {About: "the server takes no more connections: they wait at its port", Hue: 0xBBCC33, Hatched: true},
		cause.Behind:       {About: "requests wait for servers or a network behind, where nothing that was read is busy", Hue: 0xFFAABB, Hatched: true},
		cause.None:         {About: "nothing of the sandbox or its host limits it"},
		cause.Untold:       {About: "several causes would explain it equally well"},
		cause.Unknown:      {About: "readings are missing"},
	}[k]
	n.ID, n.Word = k, k.Word()
	return n
}

// CauseKind is a cause in a word or two, as maps have it. The role is that of a full
// helper, or what a load passes through that is full, or "".
func CauseKind(k cause.Name, role string) string {
	word := CauseNameOf(k).Word
	switch {
	case k == cause.Helper:
		return strings.TrimSpace(word + " " + role)
	case role == "":
		return word
	case k == cause.GuestOne:
		word = "thread full"
	case k == cause.Host:
		word = "node CPU"
	}
	return role + ": " + word
}

// Cause is a finding's cause in a few words: of several that fit equally well, which.
func Cause(f *cause.Finding) string {
	s := CauseKind(f.Cause, f.Role)
	if len(f.Among) > 0 {
		among := make([]string, len(f.Among))
		for i, k := range f.Among {
			among[i] = CauseKind(k, f.Role)
		}
		s += ": " + strings.Join(among, " or ")
	}
	return s
}

// CauseConfidence is a finding's confidence; "-" where it names no cause.
func CauseConfidence(f *cause.Finding) string {
	if f.Cause == cause.Unknown || f.Cause == cause.Untold || f.Confidence <= 0 {
		return "-"
	}
	return strconv.FormatFloat(100*f.Confidence, 'f', 0, 64) + " %"
}

// CauseCost writes a finding's cost as a multiple of the baseline's; "" without a ratio.
func CauseCost(f *cause.Finding) string {
	if f.Ratio == nil || !(*f.Ratio > 0) {
		return ""
	}
	x, _, _ := stat.Estimate{Ratio: *f.Ratio}.Cost(f.Response.Better)
	return Times(x)
}

// CausePrice says what the work costs in CPU; "" where nothing says.
func CausePrice(p *cause.Price) string {
	if p == nil || !(p.Ratio > 0) {
		return ""
	}
	s := Times(p.Ratio)
	if p.Lo > 0 && p.Hi > 0 {
		s += fmt.Sprintf(" (%s to %s)", Ratio(p.Lo), Ratio(p.Hi))
	}
	return s + fmt.Sprintf(" the CPU time per %s: %s against %s", p.Unit, Value(p.Cores, record.Cores), Value(p.Base, record.Cores))
}

// CauseTally is what several findings come to.
type CauseTally struct {
	Kind       cause.Name // the most frequent of those that cost; where none does, of the undecided; else of all
	Role       string     // of Helper, where all of that kind have the same
	N          int        // cells with it
	Of         int        // cells that it was counted among: those that cost, the undecided, or all
	Costs      int        // cells whose isolation costs
	Undecided  int        // cells of which nothing is decided
	Baseline   bool       // they are the baseline's
	Cells      int
	Confidence float64 // mean of the N
}

// Tally counts the findings of all but the baseline; of the baseline alone, those.
func Tally(list []*cause.Finding) CauseTally {
	out := CauseTally{Cells: len(list)}
	var among, undecided []*cause.Finding
	for _, f := range list {
		switch {
		case f.Costs:
			among = append(among, f)
		case f.Undecided:
			undecided = append(undecided, f)
		}
		out.Baseline = out.Baseline || f.Baseline
	}
	out.Costs, out.Undecided = len(among), len(undecided)
	switch {
	case out.Costs > 0:
	case out.Undecided > 0:
		among = undecided
	default:
		among = list
	}
	out.Of = len(among)
	counts := CauseCounts(among)
	if len(counts) == 0 {
		return out
	}
	out.Kind, out.N = counts[0].Kind, counts[0].N
	roles := make(map[string]bool)
	for _, f := range among {
		if f.Cause == out.Kind {
			roles[f.Role] = true
			out.Role = f.Role
			out.Confidence += f.Confidence / float64(out.N)
		}
	}
	if len(roles) > 1 {
		out.Role = ""
	}
	return out
}

// CauseCount is how many cells have a cause.
type CauseCount struct {
	Kind cause.Name
	N    int
}

// CauseCounts counts, the most frequent first.
func CauseCounts(list []*cause.Finding) []CauseCount {
	n := make(map[cause.Name]int)
	var out []CauseCount
	for _, f := range list {
		if n[f.Cause]++; n[f.Cause] == 1 {
			out = append(out, CauseCount{Kind: f.Cause})
		}
	}
	for i := range out {
		out[i].N = n[out[i].Kind]
	}
	rank := func(k cause.Name) int {
		if i := slices.Index(cause.Names(), k); i >= 0 {
			return i
		}
		return len(cause.Names())
	}
	slices.SortStableFunc(out, func(a, b CauseCount) int {
		return cmp.Or(b.N-a.N, rank(a.Kind)-rank(b.Kind), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// NotDecided and NoCost stand where no cause of a cost does.
const (
	NotDecided = "undecided"
	NoCost     = "no cost"
)

// Word is a tally in a word or two: the cause of a cost; undecided, where no cell is known
// to cost and one at least may; no cost, where all are as good as the baseline or better.
// Of the baseline it is what bounds it.
func (t CauseTally) Word() string {
	switch {
	case t.Cells == 0:
		return "-"
	case t.Costs > 0 || t.Baseline:
		return CauseKind(t.Kind, t.Role)
	case t.Undecided > 0:
		return NotDecided
	}
	return NoCost
}

// Part says how many of several cells the word is of; "" of one, and of no cost.
func (t CauseTally) Part() string {
	n := t.N
	if t.Costs == 0 {
		n = t.Undecided
	}
	switch {
	case n == 0 || t.Cells < 2 || t.Baseline:
		return ""
	case n == t.Cells:
		return fmt.Sprintf("all %d", n)
	}
	return fmt.Sprintf("%d of %d", n, t.Cells)
}

// CauseState says whether a cell's isolation costs.
func CauseState(f *cause.Finding) string {
	switch {
	case f.Baseline:
		return "the baseline"
	case f.Costs:
		return "isolation costs"
	case f.Undecided:
		return NotDecided
	}
	return NoCost
}

// Shown reports whether a finding is one of those that are listed: of a cost, or of a
// cell that looks like one and has a cause.
func Shown(f *cause.Finding) bool {
	return f.Costs || f.Suspect()
}

// CausesSentence counts the causes of all cells but the baseline's.
func CausesSentence(r *analyse.Result) string {
	var costs, open, rest []*cause.Finding
	suspect := 0
	for i := range r.Causes {
		switch f := &r.Causes[i]; {
		case f.Baseline:
		case f.Costs:
			costs = append(costs, f)
		case f.Undecided:
			open = append(open, f)
			if f.Suspect() {
				suspect++
			}
		default:
			rest = append(rest, f)
		}
	}
	list := func(of []*cause.Finding) string {
		var parts []string
		for _, c := range CauseCounts(of) {
			parts = append(parts, fmt.Sprintf("%s %d", CauseKind(c.Kind, ""), c.N))
		}
		return List(parts)
	}
	all := len(costs) + len(open) + len(rest)
	if all == 0 {
		return ""
	}
	subject, why := "Isolation", "isolation"
	if r.Compare != "" && r.Compare != study.FactorSandbox {
		subject, why = "The level of "+r.Compare, "the level of "+r.Compare
	}
	var parts []string
	if len(costs) > 0 {
		parts = append(parts, fmt.Sprintf("%s costs in %d of %s. The causes, each with its number of cases: %s.", subject, len(costs), Count(all, "case"), list(costs)))
	} else if len(r.Tuned) == 0 || len(open) == 0 {
		parts = append(parts, "No case is known to be slower because of "+why+".")
	}
	if len(open) > 0 {
		s := fmt.Sprintf("Whether %d more %s is not sure: too noisy, or too few blocks.", len(open), plural(len(open), "costs", "cost"))
		if len(r.Tuned) > 0 {
			s = Unasked(len(open), "case")
		}
		if suspect > 0 {
			s += fmt.Sprintf(" Of these, %d %s worse by more than a tenth.", suspect, plural(suspect, "looks", "look"))
		}
		parts = append(parts, s+" What seems to limit their speed: "+list(open)+".")
	}
	if len(rest) > 0 {
		parts = append(parts, fmt.Sprintf("%d %s nothing. What limits their speed: %s.", len(rest), plural(len(rest), "costs", "cost"), list(rest)))
	}
	return strings.Join(parts, " ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// CausesMissing says once what was not read, and in how many cells.
func CausesMissing(r *analyse.Result) []string {
	n := make(map[string]int)
	var order []string
	for i := range r.Causes {
		if f := &r.Causes[i]; f.Missing != "" && !f.Baseline {
			if n[f.Missing]++; n[f.Missing] == 1 {
				order = append(order, f.Missing)
			}
		}
	}
	for i, s := range order {
		order[i] = fmt.Sprintf("unknown in %s: %s", Count(n[s], "case"), s)
	}
	return order
}

// CauseWhere names a finding's cell: its work and its treatment.
func CauseWhere(r *analyse.Result, f *cause.Finding, fixed record.Cell) (work, in string) {
	return Stratum(r, f.Workload, f.Shared, fixed), TreatmentOf(r, f.Treatment)
}
