// Package text prints results and plans for people at a terminal.
//
// The data path: 0. package words says the answer in sentences, in short; 1. an
// analyse.Result becomes a grid: a row for each stratum and
// response, a column for each treatment; 2. the grid chooses the layout that fits
// the terminal (table.go); 3. legend, stopping, failures, warnings, what the host
// could not do and what measuring cost follow as lists. A verdict is a sign and,
// where the terminal has it, a colour, never a colour alone.
package text

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/record"
	"tare/report/terminal"
	"tare/report/words"
)

// Options of the output.
type Options struct {
	Width int          // columns of the terminal; 0: 80; at least 40 are used
	Ink   terminal.Ink // of the Writer that receives the text; zero for no colours
	Dir   string       // the results folder, named in the next steps; "" for none

	modelled bool // tables say so below
}

func (o Options) width() int {
	if o.Width <= 0 {
		return 80
	}
	return max(o.Width, 40) // narrower than that no table can be read
}

// Write prints a result. The hosts are those of the sessions that measured;
// one that comes again is printed once.
func Write(w io.Writer, res *analyse.Result, hosts []record.Host, opt Options) error {
	var b strings.Builder
	para := func(s, indent string) { b.WriteString(wrap(s, opt.width(), indent) + "\n") }
	title := fmt.Sprintf("%s: %s compared with %s, %s", res.Study, res.Compare, res.Baseline, words.Count(res.Trials, "trial"))
	if res.Failed > 0 {
		title += fmt.Sprintf(", %d of them failed", res.Failed)
	}
	para(title, "  ")
	opt.modelled = res.Modelled
	writeModelled(&b, res, opt)
	lines := hostLines(hosts)
	for _, h := range lines[:min(len(lines), maxEntries)] {
		para(h, "  ")
	}
	l := list{b: &b, opt: opt}
	for _, w := range hostWarnings(hosts) {
		l.add(w)
	}
	l.end()
	b.WriteString("\n")
	if len(res.Compared) == 0 {
		b.WriteString("Nothing has been measured.\n")
	} else {
		writeAnswer(&b, res, opt)
		if with := words.With(res, fixedLevels(res)); with != "" {
			para(with, "  ")
		}
		b.WriteString(resultGrid(res).render(opt))
		b.WriteString("\n" + legend(res, opt))
		if d := words.Discoveries(res); d != "" {
			para(d, "  ")
		}
		if d := words.Exaggerated(res); d != "" {
			para(d, "  ")
		}
	}
	writeAccelerators(&b, res, opt)
	writeTables(&b, res, opt)
	writeCauses(&b, res, opt)
	writeAdvice(&b, res, opt)
	writeCPUCosts(&b, res, opt)
	writeQuotas(&b, res, opt)
	writeStructural(&b, res, opt)
	writePublished(&b, res, opt)
	writeEnds(&b, res, opt)
	writeStops(&b, res, opt)
	writeEpochs(&b, res, opt)
	writeFailures(&b, res, opt)
	writeSteady(&b, res, opt)
	writeWarnings(&b, res, opt)
	writeSkips(&b, res.Skips, opt)
	writeBoots(&b, res, opt)
	writeOverheads(&b, res, opt)
	b.WriteString("\n")
	para(ending(res, opt), "  ")
	_, err := io.WriteString(w, b.String())
	return err
}

// doubtful follows the sign of a row that is called different and does not hold
// among all rows.
const doubtful = "~"

// sign is how a verdict is shown.
type sign struct {
	mark   string
	colour text.Colors
}

func signOf(v stat.Verdict) sign {
	switch v {
	case stat.Faster:
		return sign{"▲", text.Colors{text.FgGreen}}
	case stat.Slower:
		return sign{"▼", text.Colors{text.FgRed}}
	case stat.Higher:
		return sign{"↑", text.Colors{text.FgCyan}}
	case stat.Lower:
		return sign{"↓", text.Colors{text.FgCyan}}
	case stat.Equivalent:
		return sign{"=", text.Colors{text.Bold}}
	}
	return sign{"?", text.Colors{text.FgYellow}}
}

func resultGrid(res *analyse.Result) grid {
	g := grid{keys: 3, header: []string{"workload", "response", "n"}}
	col := make(map[string]int)
	// The baseline first: the others are read against it.
	for _, base := range []bool{true, false} {
		for _, t := range res.Treatments {
			if t.Baseline == base {
				col[t.Key] = len(g.header)
				g.header = append(g.header, words.Treatment(res, t.Cell))
			}
		}
	}
	last, fixed := "", fixedLevels(res)
	for _, row := range res.Rows() {
		cells := make([]gridCell, len(g.header))
		if name := words.Stratum(res, row[0].Workload, row[0].Shared, fixed); name != last {
			cells[0].first, last = name, name
		}
		cells[1].first = row[0].Response.Name
		cells[2].first = blocks(row)
		for i := range row {
			if c, ok := col[row[i].Treatment]; ok {
				cells[c] = comparisonCell(&row[i])
			}
		}
		g.rows = append(g.rows, cells)
	}
	return g
}

// fixedLevels are the levels that every stratum has.
func fixedLevels(res *analyse.Result) record.Cell {
	return words.Fixed(func(yield func(record.Cell) bool) {
		for i := range res.Compared {
			if !yield(res.Compared[i].Shared) {
				return
			}
		}
	})
}

// blocks is n of a row: from the least to the most of its comparisons.
func blocks(row []analyse.Comparison) string {
	lo, hi := -1, 0
	for i := range row {
		if c := &row[i]; !c.Baseline && c.Skipped == "" {
			n := c.Estimate.N
			if lo < 0 || n < lo {
				lo = n
			}
			hi = max(hi, n)
		}
	}
	switch {
	case lo < 0:
		return "-"
	case lo == hi:
		return strconv.Itoa(lo)
	}
	return fmt.Sprintf("%d–%d", lo, hi)
}

func comparisonCell(c *analyse.Comparison) gridCell {
	e := &c.Estimate
	switch out := c.Outcome(); out {
	case analyse.Skipped, analyse.BelowNoise, analyse.NoValue:
		return gridCell{first: string(out)}
	case analyse.GivenUp, analyse.Failed:
		return gridCell{first: string(out), colour: text.Colors{text.FgRed}}
	case analyse.Baseline:
		return gridCell{first: words.Value(c.Level.Typical, c.Response.Unit)}
	case analyse.NoRatio:
		level := words.Value(c.Level.Typical, c.Response.Unit)
		switch {
		case c.Base.BelowNoise > 0:
			return gridCell{first: level, second: "no ratio"}
		case e.N == 0:
			return gridCell{first: level} // without a baseline there is still something to say
		}
		return gridCell{first: level + " ?", second: "no ratio"}
	}
	s := signOf(c.Verdict)
	out := gridCell{first: words.Ratio(e.Ratio) + " " + s.mark, colour: s.colour}
	if c.Doubtful() {
		out.first += doubtful
	}
	if e.HasInterval() {
		out.second = words.Ratio(e.Lo) + "–" + words.Ratio(e.Hi)
	} else {
		out.second = fmt.Sprintf("need n≥%d", stat.MinN)
	}
	return out
}

// legend explains the table, with the signs that are in it.
func legend(res *analyse.Result, opt Options) string {
	seen := make(map[stat.Verdict]bool)
	doubts := false
	for i := range res.Compared {
		c := &res.Compared[i]
		if cell := comparisonCell(c).first; strings.HasSuffix(strings.TrimSuffix(cell, doubtful), signOf(c.Verdict).mark) {
			seen[c.Verdict] = true
			doubts = doubts || strings.HasSuffix(cell, doubtful)
		}
	}
	s := fmt.Sprintf("%s: the value. Others: ratio to it in the same block and its %s %% interval. n: blocks.",
		res.Baseline, strconv.FormatFloat(100*res.Confidence, 'g', 4, 64))
	lines := wrap(s, opt.width(), "") + "\n"
	var signs []string
	for _, v := range []stat.Verdict{stat.Faster, stat.Slower, stat.Higher, stat.Lower, stat.Equivalent, stat.Undecided} {
		if !seen[v] {
			continue
		}
		g := signOf(v)
		g.mark = paint(opt, g.colour, g.mark)
		word := g.mark + " " + string(v)
		switch v { // more memory is not slower
		case stat.Faster:
			word = g.mark + " better"
		case stat.Slower:
			word = g.mark + " worse"
		}
		if v == stat.Equivalent {
			word += fmt.Sprintf(" (within %s %%)", strconv.FormatFloat(100*res.Margin, 'g', 3, 64))
		}
		signs = append(signs, word)
	}
	if doubts {
		signs = append(signs, doubtful+" does not hold among so many rows")
	}
	if len(signs) > 0 {
		lines += wrapItems(signs, opt.width(), "") + "\n"
	}
	return lines
}

// hostLines describes the machines, each once.
func hostLines(hosts []record.Host) []string {
	var out []string
	seen := make(map[string]bool)
	for _, h := range hosts {
		if h.CPUModel == "" && h.Cores == 0 && h.MemoryBytes == 0 { // imported results do not say
			h.Hostname = strings.TrimSpace(h.Hostname + " (what it is, is not known)")
			if line := "host " + h.Hostname; !seen[line] {
				seen[line] = true
				out = append(out, line)
			}
			continue
		}
		s := "host " + h.Hostname + ": " + h.CPUModel
		memory := ""
		if h.MemoryBytes > 0 { // a model has none
			memory = words.Value(float64(h.MemoryBytes), record.Byte)
		}
		for _, part := range []struct{ name, value string }{
			{"", words.Count(h.Cores, "core")}, {"", memory}, {"", h.OS}, {"Linux", h.Kernel}, {"cgroups", h.Cgroups},
			{"virtualization", h.Virtualization}, {"KVM", h.KVM},
		} {
			if part.value != "" {
				s += ", " + strings.TrimSpace(part.name+" "+part.value)
			}
		}
		if seen[s] {
			continue
		}
		seen[s] = true
		out = append(out, s)
	}
	return out
}

func hostWarnings(hosts []record.Host) []string {
	var out []string
	for _, h := range hosts {
		for _, w := range h.Warnings {
			if s := w.Code + ": " + w.Text; !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}
