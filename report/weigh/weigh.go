// Package weigh shows what `tare weigh` found: few lines, the answer in words, for the commands of
// one study in each sandbox.
//
// The data path: 1. Of makes a Row of each command in each sandbox from an analysis; 2. Cost says
// in words what a row's time comes to, where more is always worse; 3. Text, Live and Markdown lay
// the rows out.
package weigh

import (
	"cmp"
	"slices"
	"strings"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// Row is one command in one sandbox.
type Row struct {
	Command  string // "" where there is one command only
	Sandbox  string
	Baseline bool
	Figures  []Figure // those that the user asked for first, then those of every command
	Start    float64  // seconds that the sandbox takes to start, apart from the work; 0: not known
	Cause    string   // of a cost, in half a sentence; "" where it is not known
	Failure  string   // how it failed, where there is no figure; "" where there is one
	Said     string   // the last line that it then printed
	N        int      // blocks with a value of the first figure
}

// Figure is what was measured of a command, or read from what it printed.
type Figure struct {
	Response record.Response
	Value    float64 // in the unit of Response; 0: not known
	Estimate stat.Estimate
	Verdict  stat.Verdict
	Called   bool // the verdict is a difference

	BelowTicks bool // it was less than ten ticks of the clock that counts it
}

// Wall is the name of the figure that every command has: the time of a run.
const Wall = "wall"

// first is the figure that decides.
func (w *Row) first() *Figure {
	if len(w.Figures) == 0 {
		return &Figure{}
	}
	return &w.Figures[0]
}

// figure returns the one of that name, nil if there is none.
func (w *Row) figure(name string) *Figure {
	i := slices.IndexFunc(w.Figures, func(f Figure) bool { return f.Response.Name == name })
	if i < 0 {
		return nil
	}
	return &w.Figures[i]
}

// Of makes the rows, in the study's order: command by command, sandbox by sandbox. What cannot run
// here has none.
func Of(r *analyse.Result) []Row {
	starts := map[string]float64{}
	for _, o := range r.Overheads {
		starts[o.Sandbox] = cmp.Or(o.Life, o.Start).Seconds()
	}
	var out []Row
	at := map[string]int{} // by cell
	for i := range r.Compared {
		c := &r.Compared[i]
		if c.Skipped != "" {
			continue
		}
		key := c.Cell.Key()
		n, known := at[key]
		if !known {
			n = len(out)
			at[key] = n
			sandbox, _ := c.Cell.Get(study.FactorSandbox)
			command, _ := c.Shared.Get("command")
			out = append(out, Row{Command: command, Sandbox: sandbox, Baseline: c.Baseline, Start: starts[sandbox]})
		}
		out[n].take(r, c)
	}
	return out
}

// take adds what a comparison says.
func (w *Row) take(r *analyse.Result, c *analyse.Comparison) {
	f := Figure{Response: c.Response, Estimate: c.Estimate, Verdict: c.Verdict, Called: c.Called()}
	if c.Level.N > 0 {
		f.Value = c.Level.Typical
	}
	f.BelowTicks = c.Level.BelowNoise > 0 && (c.Response.Name == "user" || c.Response.Name == "system")
	w.Figures = append(w.Figures, f)
	if !c.First {
		return
	}
	w.N = c.Level.N
	if c.Level.N == 0 {
		w.Failure, w.Said = failure(r, c)
	}
	i := slices.IndexFunc(r.Causes, func(f cause.Finding) bool { return f.Cell.Key() == c.Cell.Key() })
	if i >= 0 && r.Causes[i].Costs {
		w.Cause = because(&r.Causes[i])
	}
}

// failure says how the last trial of a cell failed, and the last line that the command printed.
func failure(r *analyse.Result, c *analyse.Comparison) (how, last string) {
	key := c.Cell.Key()
	for i := len(r.Failures) - 1; i >= 0; i-- {
		if f := &r.Failures[i]; f.Cell.Key() == key {
			how, said := Failure(&f.Failure)
			return how, said[strings.LastIndex(said, "\n")+1:]
		}
	}
	return "", ""
}

// because says a cause in half a sentence. Where no resource is full, natively or in the sandbox, what
// is left is what the sandbox does itself: only a study with `calls` tells system calls apart.
func because(f *cause.Finding) string {
	switch f.Cause {
	case cause.Helper:
		return strings.TrimSpace("a thread of the sandbox is full: " + f.Role)
	case cause.Untold:
		var among []string
		for _, k := range f.Among {
			if s := short(k); s != "" {
				among = append(among, s)
			}
		}
		return cmp.Or(strings.Join(among, ", or "), itself)
	case cause.None, cause.Other:
		return itself
	case cause.Unknown:
		return "cause unknown, no readings"
	}
	return short(f.Cause)
}

const itself = "the sandbox's own work"

func short(k cause.Name) string {
	return map[cause.Name]string{
		cause.Quota:        "its CPU limit holds it back",
		cause.Guest:        "its processors are full",
		cause.GuestOne:     "one processor is full",
		cause.Emulation:    "its processor is emulated",
		cause.Host:         "the host is busy",
		cause.Steal:        "a hypervisor takes processor time",
		cause.SoftIRQ:      "interrupts fill a processor",
		cause.Link:         "the network is full",
		cause.Device:       "the disk is full",
		cause.IOLimit:      "its disk limit holds it back",
		cause.Depth:        "too few requests are in flight",
		cause.Fsync:        "it waits for fsync",
		cause.PageCache:    "one side reads from memory",
		cause.Gofer:        "files are a round trip away",
		cause.Path:         "the way to the kernel is longer",
		cause.Saturation:   "its threads wait for each other",
		cause.Imbalance:    "one processor takes all interrupts",
		cause.Interception: "system calls cost more",
	}[k]
}
