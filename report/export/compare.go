package export

import (
	"io"
	"strconv"

	"tare/analyse/compare"
)

// Gated is what gates say of a comparison.
type Gated struct {
	Gates    []string         `json:"gates"`
	Power    float64          `json:"power"` // that a gate needs to judge a row
	Breaches []compare.Breach `json:"breaches"`
	Doubts   []compare.Doubt  `json:"doubts"` // rows that a gate cannot judge
	Held     []compare.Held   `json:"held"`   // gates that nothing broke and that could judge all rows
}

// CompareDocument is what CompareJSON writes: the comparison's fields at the top,
// beside the version and what gates say.
type CompareDocument struct {
	Schema int `json:"schema"`
	*compare.Result
	Gated
}

// CompareJSON writes a comparison of two results, indented.
func CompareJSON(w io.Writer, res *compare.Result, said *Gated) error {
	doc := CompareDocument{Schema: Schema, Result: res, Gated: *said}
	doc.Gates = append([]string{}, doc.Gates...) // [] rather than null
	doc.Breaches = append([]compare.Breach{}, doc.Breaches...)
	doc.Doubts = append([]compare.Doubt{}, doc.Doubts...)
	doc.Held = append([]compare.Held{}, doc.Held...)
	return encode(w, doc)
}

// CompareCSV writes one line for each row and question that it has an answer to;
// asked tells the one that its verdict counts by. Fields that a line does not
// have are empty.
func CompareCSV(w io.Writer, res *compare.Result, said *Gated) error {
	broken, doubted := make(map[int]int), make(map[int]int)
	for _, b := range said.Breaches {
		broken[b.Row]++
	}
	for _, d := range said.Doubts {
		doubted[d.Row]++
	}
	rows := [][]string{{"workload", "cell", "baseline", "response", "unit", "better", "question", "asked", "n_a", "n_b", "a", "b",
		"ratio", "lo", "hi", "p", "q", "verdict", "changed", "why", "missing", "failed_a", "failed_b", "gates_broken", "gates_unjudged"}}
	for i := range res.Rows {
		r := &res.Rows[i]
		for _, x := range []struct {
			question compare.Question
			c        *compare.Change
		}{{compare.Cost, r.Cost}, {compare.Level, r.Level}} {
			asked := x.question == r.Question
			if x.c == nil && !asked {
				continue
			}
			line := []string{r.Workload, r.Cell.Key(), strconv.FormatBool(r.Baseline), r.Response.Name, string(r.Response.Unit),
				string(r.Response.Better), string(x.question), strconv.FormatBool(asked)}
			line = append(line, side(r.A, x.question, true), side(r.B, x.question, true), side(r.A, x.question, false), side(r.B, x.question, false))
			line = append(line, change(x.c)...)
			missing, gates, unjudged := "", "", ""
			if asked {
				missing, gates, unjudged = r.Missing(), strconv.Itoa(broken[i]), strconv.Itoa(doubted[i])
			} else {
				missing = x.c.Undefined
			}
			rows = append(rows, append(line, missing, failed(r.A), failed(r.B), gates, unjudged))
		}
	}
	return writeAll(w, rows)
}

// side is what one side has of a question: how many blocks, or the figure.
func side(m *compare.Measured, q compare.Question, blocks bool) string {
	switch {
	case m == nil:
		return ""
	case q == compare.Cost && blocks:
		return strconv.Itoa(m.Cost.N)
	case blocks:
		return strconv.Itoa(m.N)
	case q == compare.Cost && m.Cost.Ratio > 0:
		return number(m.Cost.Ratio)
	case q == compare.Cost, m.N == 0:
		return ""
	}
	return number(m.Level)
}

func change(c *compare.Change) []string {
	if c == nil {
		return make([]string, 8)
	}
	out := []string{"", "", "", "", "", string(c.Verdict), strconv.FormatBool(c.Changed), c.Why}
	if c.Ratio > 0 {
		out[0] = number(c.Ratio)
	}
	if c.HasInterval() {
		out[1], out[2], out[3], out[4] = number(c.Lo), number(c.Hi), number(*c.P), number(*c.Q)
	}
	return out
}

func failed(m *compare.Measured) string {
	if m == nil {
		return ""
	}
	return strconv.Itoa(m.Failed)
}
