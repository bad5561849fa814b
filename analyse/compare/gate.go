package compare

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"tare/param"
	"tare/record"
	"tare/study"
)

// Gate says what must not be true of any row. It is an expression of
// github.com/expr-lang/expr over the names of Variables, of type bool, or the
// short form "worse than 5%". Make it with NewGate.
type Gate struct {
	Text    string
	program *vm.Program
}

// Breach is a row of which a gate's expression is true.
type Breach struct {
	Gate string `json:"gate"`
	Row  int    `json:"row"` // index into Result.Rows
}

// Variable is a name that gates know.
type Variable struct{ Name, Help string }

// Variables lists the names that gates know beside the factors, whose hyphens are
// written _ there (cpu_limit), and whose levels are text.
func Variables() []Variable {
	return []Variable{
		{"worse", "the change as a ratio in which more than 1 is worse: 1.05 is 5 % worse; not a number for a response without a better side"},
		{"worse_lo", "the end of its interval that is nearer to better: above 1.05, it is surely 5 % worse"},
		{"worse_hi", "the other end: above 1.05, it may be 5 % worse"},
		{"ratio", "B divided by A, never inverted: above 1 is more, as in --json and --csv"},
		{"lo", "lower end of its interval"},
		{"hi", "upper end of its interval"},
		{"p", "p-value, two-sided"},
		{"q", "lowest false discovery rate at which the row counts as changed"},
		{"changed", "true: different, even after the correction for the number of rows"},
		{"verdict", `"worse" or "slower", "better" or "faster", "higher", "lower", "equivalent", "undecided"`},
		{"question", `what the ratio compares: "cost" or "level"`},
		{"baseline", "true: a cell of the baseline"},
		{"workload", "label of the workload"},
		{"response", "name of the response"},
		{"missing", "true: there is no ratio (failed, skipped, only on one side, no value)"},
		{"only_in", `"A" or "B" for what the other study does not have, else ""`},
		{"failed_a", "failed trials of the cell in A"},
		{"failed_b", "failed trials of the cell in B"},
		{"n_a", "blocks with a value of the cell in A"},
		{"n_b", "blocks with a value of the cell in B"},
		{"factor", `every level by its factor: factor["cpu-limit"]`},
	}
}

var short = regexp.MustCompile(`^\s*(surely\s+)?worse\s+than\s+([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*%\s*$`)

// likeShort is what was meant to be short.
var likeShort = regexp.MustCompile(`^\s*(surely\s+)?(worse|better|slower|faster)\s+than\b`)

// maxGate bounds an expression, in bytes: nobody writes a longer one by hand.
const maxGate = 4096

// NewGate reads an expression over the variables and the factors of the studies.
// An error begins with name:line:column.
//
// A text that a variable is held against with ==, != or in must be one that it can
// have, and so must the key of factor: else the gate could never be broken.
//
// "worse than 5%" is `changed and worse > 1.05`, and "surely worse than 5%"
// `changed and worse_lo > 1.05`.
func NewGate(name, text string, studies ...*study.Study) (*Gate, error) {
	if len(text) > maxGate {
		return nil, fmt.Errorf("%s:1:1: an expression may have at most %d characters", name, maxGate)
	}
	code := text
	if m := short.FindStringSubmatch(text); m != nil {
		of, by := "worse", m[2]
		if m[1] != "" {
			of = "worse_lo"
		}
		x, err := strconv.ParseFloat(by, 64)
		if err != nil {
			return nil, fmt.Errorf("%s:1:1: %q is not a number: %w", name, by, err)
		}
		code = fmt.Sprintf("changed and %s > %s", of, strconv.FormatFloat(1+x/100, 'f', -1, 64))
	}
	env := environment(&Row{}, factorsOf(studies...))
	known := newChecker(studies)
	p, err := expr.Compile(code, expr.Env(env), expr.AsBool(), expr.Patch(known))
	switch {
	case likeShort.MatchString(text) && err != nil:
		return nil, fmt.Errorf("%s:1:1: %q is not understood; write it as worse than 5%% or surely worse than 5%%, or an expression such as worse > 1.05", name, strings.TrimSpace(text))
	case err != nil:
		return nil, explain(name, err, env)
	case known.err != nil:
		return nil, explain(name, known.err.Bind(file.NewSource(code)), env)
	}
	return &Gate{Text: text, program: p}, nil
}

var unknownName = regexp.MustCompile(`unknown name (\w+)`)

// explain puts the position first, as compilers do, and names what was meant.
func explain(name string, err error, env map[string]any) error {
	var at *file.Error
	if !errors.As(err, &at) {
		return fmt.Errorf("%s:1:1: %w", name, err)
	}
	msg := at.Message
	if m := unknownName.FindStringSubmatch(msg); m != nil {
		msg = fmt.Sprintf("there is no %q; %s", m[1], param.Suggest(m[1], slices.Sorted(maps.Keys(env))))
	} else if at.Line == 0 { // of the whole expression: it is not bool
		msg += ": a gate is true or false, such as worse > 1.05"
	}
	return fmt.Errorf("%s:%d:%d: %s%s", name, max(1, at.Line), at.Column+1, msg, strings.TrimRight(at.Snippet, "\n"))
}

// Comparable counts the rows that have an interval. If none has, no gate can be judged.
func (r *Result) Comparable() int {
	n := 0
	for i := range r.Rows {
		if r.Rows[i].Change().HasInterval() {
			n++
		}
	}
	return n
}

// Check returns the rows that break a gate, gate by gate, in the order of the
// rows. Where a row has no figure it is not a number, and no comparison with it
// is true: who wants to fail on what is missing writes `missing`.
//
// It refuses a gate whose limit lies within the margin: there, nothing counts as changed,
// so that nothing could break the gate. Which of the two is meant, only the user knows.
func (r *Result) Check(gates []*Gate) ([]Breach, error) {
	out := []Breach{}
	names := r.factors()
	for _, g := range gates {
		for i := range r.Rows {
			if t := r.trial(g, i, 0, names); r.Rows[i].Change() != nil {
				if l := t.hidden(); l > 0 {
					return nil, fmt.Errorf("the gate %q has its limit at %.4g, within the margin of %.3g %%: changes within the margin count as none, so this gate would miss some; "+
						"give a --margin of %.3g%% or less, or a limit beyond the margin", g.Text, l, 100*r.Margin, 100*math.Floor(1e4*math.Expm1(math.Abs(math.Log(l)))+1e-3)/1e4)
				}
			}
			v, err := expr.Run(g.program, environment(&r.Rows[i], names))
			if err != nil {
				return nil, fmt.Errorf("the gate %q cannot be evaluated for %s, %s: %w", g.Text, r.Rows[i].Cell, r.Rows[i].Response.Name, err)
			}
			if broken, _ := v.(bool); broken {
				out = append(out, Breach{Gate: g.Text, Row: i})
			}
		}
	}
	return out, nil
}

// factors are those of all rows.
func (r *Result) factors() []string {
	var names []string
	for i := range r.Rows {
		names = append(names, factors(r.Rows[i].Cell)...)
	}
	return unique(names)
}

func factorsOf(studies ...*study.Study) []string {
	var out []string
	for _, st := range studies {
		for i := range st.Strata {
			for _, c := range st.Strata[i].Cells {
				out = append(out, factors(c)...)
			}
		}
	}
	return unique(out)
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_]`)

// environment is what a gate sees of a row. The compiler takes the types from it.
func environment(r *Row, factors []string) map[string]any {
	nan := math.NaN()
	level := make(map[string]string)
	env := make(map[string]any)
	for _, f := range factors {
		v, _ := r.Cell.Get(f)
		level[f] = v
		env[notInName.ReplaceAllString(f, "_")] = v
	}
	ratio, lo, hi, p, q := nan, nan, nan, nan, nan
	verdict, changed := "undecided", false
	if c := r.Change(); c != nil {
		verdict, changed = string(c.Verdict), c.Changed
		if c.Ratio > 0 {
			ratio = c.Ratio
		}
		if c.HasInterval() {
			lo, hi, p, q = c.Lo, c.Hi, *c.P, *c.Q
		}
	}
	worse, worseLo, worseHi := nan, nan, nan
	switch r.Response.Better {
	case record.Lower:
		worse, worseLo, worseHi = ratio, lo, hi
	case record.Higher:
		worse, worseLo, worseHi = 1/ratio, 1/hi, 1/lo
	}
	a, b := cmp.Or(r.A, &Measured{}), cmp.Or(r.B, &Measured{})
	// After the factors: a factor with one of these names is in `factor` alone.
	maps.Copy(env, map[string]any{
		"worse": worse, "worse_lo": worseLo, "worse_hi": worseHi, "ratio": ratio, "lo": lo, "hi": hi, "p": p, "q": q,
		"changed": changed, "verdict": verdict, "question": string(r.Question), "baseline": r.Baseline,
		"workload": r.Workload, "response": r.Response.Name, "missing": r.Missing() != "", "only_in": r.OnlyIn,
		"failed_a": a.Failed, "failed_b": b.Failed, "n_a": a.N, "n_b": b.N, "factor": level,
	})
	return env
}
