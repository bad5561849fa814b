package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
)

// row is one line of the table. Values are in base units; zero means that there is no value.
type row struct {
	Group  string  `json:"group"`
	Figure string  `json:"figure"`
	Unit   string  `json:"unit,omitempty"` // s, B, B/s, 1/s, cores
	Tare   float64 `json:"tare,omitempty"`

	Peer      string  `json:"peer,omitempty"` // what is beside it
	PeerValue float64 `json:"peer_value,omitempty"`

	How    string  `json:"compared,omitempty"` // ratio or difference, of tare to the peer
	Mid    float64 `json:"median,omitempty"`
	Low    float64 `json:"low,omitempty"` // 95 %
	High   float64 `json:"high,omitempty"`
	Rounds int     `json:"rounds,omitempty"`

	Limit  float64 `json:"limit,omitempty"`    // Tare, or |Mid| of a difference, is to be below
	Equal  float64 `json:"equal,omitempty"`    // the ratio is to be within 1 +- this
	Least  float64 `json:"at_least,omitempty"` // what a ratio is to be
	Most   float64 `json:"at_most,omitempty"`
	Within string  `json:"within,omitempty"` // met, missed, undecided
	Note   string  `json:"note,omitempty"`
}

// beside puts the comparison into r.
func (r row) beside(how, peer string, pairs []pair) row {
	f := quotient
	if how == "difference" {
		f = difference
	}
	ours, theirs := sides(pairs)
	c := compare(pairs, f)
	r.Tare, r.Peer, r.PeerValue = quantile(ours, 0.5), peer, quantile(theirs, 0.5)
	r.How, r.Mid, r.Low, r.High, r.Rounds = how, c.Mid, c.Low, c.High, len(pairs)
	return r
}

// below sets the target and whether it is met. A difference must be within it
// with its whole interval; one that is half in it decides nothing.
func (r row) below(limit float64) row {
	r.Limit = limit
	least, most := r.Tare, r.Tare
	if r.How == "difference" {
		low, high := r.Low, r.High
		if r.Rounds < minRounds {
			low, high = math.Inf(-1), math.Inf(1)
		}
		least, most = max(low, -high, 0), max(-low, high)
	}
	switch {
	case most < limit:
		r.Within = "met"
	case least >= limit:
		r.Within = "missed"
	default:
		r.Within = "undecided"
	}
	return r
}

// equal sets the target that a ratio is 1 within a margin. It is met if the whole interval is
// within, and missed if the whole interval is outside.
func (r row) equal(margin float64) row {
	r.Equal = margin
	return r.decided(r.Low >= 1-margin && r.High <= 1+margin, r.High < 1-margin || r.Low > 1+margin)
}

// atLeast sets the target that a ratio is this or more, judged by the whole interval.
func (r row) atLeast(ratio float64) row {
	r.Least = ratio
	return r.decided(r.Low >= ratio, r.High < ratio)
}

// atMost sets the target that a ratio is this or less, judged by the whole interval.
func (r row) atMost(ratio float64) row {
	r.Most = ratio
	return r.decided(r.High <= ratio, r.Low > ratio)
}

// decided records whether an interval meets a target. With too few rounds it is undecided.
func (r row) decided(met, missed bool) row {
	switch {
	case r.Rounds < minRounds:
		r.Within = "undecided"
	case met:
		r.Within = "met"
	case missed:
		r.Within = "missed"
	default:
		r.Within = "undecided"
	}
	return r
}

func writeJSON(w io.Writer, machine []string, rows []row) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Machine []string `json:"machine"`
		Figures []row    `json:"figures"`
	}{machine, rows})
}

func writeMarkdown(w io.Writer, machine []string, rows []row) error {
	var b strings.Builder
	b.WriteString("| figure | tare | beside it | tare compared with it | target | |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		if r.Tare != 0 || r.Note == "" {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.Figure, show(r.Tare, r.Unit), r.peerText(), r.comparedText(), r.targetText(), r.Within)
		}
	}
	b.WriteByte('\n')
	for _, r := range rows {
		if r.Note != "" {
			fmt.Fprintf(&b, "- %s: %s\n", r.Figure, r.Note)
		}
	}
	b.WriteByte('\n')
	for _, m := range machine {
		b.WriteString(m + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r row) peerText() string {
	if r.Peer == "" {
		return ""
	}
	return r.Peer + ": " + show(r.PeerValue, r.Unit)
}

func (r row) comparedText() string {
	number := func(x float64) string { return fmt.Sprintf("%.3g", x) }
	if r.How == "difference" {
		number = func(x float64) string { return strings.Replace("+"+show(x, r.Unit), "+-", "-", 1) }
	}
	switch {
	case r.How == "":
		return ""
	case r.Rounds < minRounds:
		return fmt.Sprintf("%s %s, no interval from %d rounds", r.How, number(r.Mid), r.Rounds)
	}
	return fmt.Sprintf("%s %s (%s to %s), %d rounds", r.How, number(r.Mid), number(r.Low), number(r.High), r.Rounds)
}

func (r row) targetText() string {
	if r.Equal > 0 {
		return fmt.Sprintf("equal within %.3g %%", r.Equal*100)
	}
	if r.Least > 0 {
		return fmt.Sprintf("ratio at least %.4g", r.Least)
	}
	if r.Most > 0 {
		return fmt.Sprintf("ratio at most %.4g", r.Most)
	}
	if r.Limit == 0 {
		return ""
	}
	if r.How == "difference" {
		return "within " + show(r.Limit, r.Unit)
	}
	return "under " + show(r.Limit, r.Unit)
}

// show prints a value of a base unit as people read it.
func show(x float64, unit string) string {
	scaled := func(steps ...any) string { // scale, unit, the largest first
		for i := 0; i < len(steps); i += 2 {
			scale, name := steps[i].(float64), steps[i+1].(string)
			if math.Abs(x) >= scale || i+2 == len(steps) {
				return fmt.Sprintf("%s %s", digits(x/scale), name)
			}
		}
		return ""
	}
	switch unit {
	case "s":
		return scaled(1.0, "s", 1e-3, "ms", 1e-6, "us")
	case "B":
		return scaled(1e9, "GB", 1e6, "MB", 1e3, "kB", 1.0, "B")
	case "B/s":
		return scaled(1e9/8, "Gb/s", 1e6/8, "Mb/s", 1e3/8, "kb/s")
	case "1/s":
		return scaled(1e6, "M/s", 1e3, "k/s", 1.0, "1/s")
	case "cores":
		return digits(x*100) + " % of a core"
	}
	return strings.TrimSpace(digits(x) + " " + unit)
}

// digits prints three significant digits without an exponent.
func digits(x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Sprint(x)
	}
	places := max(0, 2-int(math.Floor(math.Log10(math.Abs(x)))))
	return fmt.Sprintf("%.*f", min(places, 9), x)
}
