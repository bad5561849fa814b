package export

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"tare/ordered"
	"tare/record"
	"tare/report/terminal"
	"tare/store"
	"tare/study"
)

// Bench says what GoBench puts into words around the trials.
type Bench struct {
	Study     string
	Compare   string                       // the compared factor
	Baseline  string                       // its level
	Sessions  []store.Session              // a trial names its own by ID
	Responses map[string][]record.Response // what is compared, by the level of the factor workload
}

// GoBench writes each good trial, those that counted system calls left out, as a line of the Go benchmark format
// (https://go.googlesource.com/proposal/+/master/design/14313-benchmark-format.md),
// which benchstat reads: the cell as BenchmarkTrial/FACTOR=LEVEL..., each
// compared response as a value of the unit RESPONSE-UNIT (latency-sec/op), study
// and machine as configuration, the directions that are better as Unit lines.
// Values that are not finite are left out, for benchstat would take them. The
// baseline's lines come first: benchstat compares with what it meets first.
//
// What ran the virtual machines' processors stands once, for the whole file, as
// accelerator: vm=tcg. As a key of single lines it would set these apart from the
// baseline's, which have none, and benchstat would compare neither.
func GoBench(w io.Writer, b Bench, trials Trials) error {
	buf := bufio.NewWriter(w)
	config(buf, "study", b.Study)
	accel, err := accelerators(trials)
	if err != nil {
		return fmt.Errorf("write Go benchmarks: %w", err)
	}
	if accel != "" {
		config(buf, "accelerator", accel)
	}
	b.units(buf)
	last, n := place{session: -1}, 0
	for _, base := range []bool{true, false} {
		for t, err := range trials {
			if err == nil {
				_, err = buf.Write(nil) // a writer that failed says so again
			}
			if err != nil {
				return fmt.Errorf("write Go benchmarks: %w", err)
			}
			if base {
				n++
			} else if n--; n < 0 {
				break // added since the first pass
			}
			if level, _ := t.Cell.Get(b.Compare); t.Status == record.OK && (level == b.Baseline) == base && !study.IsCounting(t.Cell) {
				last = b.line(buf, &t, last)
			}
		}
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("write Go benchmarks: %w", err)
	}
	return nil
}

// accelerators names those of each level of the factor sandbox that is a virtual
// machine, in the order in which they are met: vm=tcg; several joined by "+".
func accelerators(trials Trials) (string, error) {
	var levels []string
	kinds := make(map[string][]string)
	for t, err := range trials {
		if err != nil {
			return "", err
		}
		how := accelerator(&t)
		level, ok := t.Cell.Get(study.FactorSandbox)
		if how == "" || !ok || t.Status != record.OK {
			continue
		}
		if kinds[level] == nil {
			levels = append(levels, level)
		}
		for k := range strings.SplitSeq(how, "+") {
			kinds[level] = ordered.Add(kinds[level], k)
		}
	}
	for i, l := range levels {
		slices.Sort(kinds[l])
		levels[i] = l + "=" + strings.Join(kinds[l], "+")
	}
	return strings.Join(levels, " "), nil
}

// place is where a trial ran: the index of its session, -1 for none, and of the node
// there.
type place struct{ session, node int }

// line writes a trial, after its machine if that is not the last one's, and
// returns its place.
func (b *Bench) line(w io.Writer, t *record.Trial, last place) place {
	var values strings.Builder
	workload, _ := t.Cell.Get("workload")
	for _, r := range b.Responses[workload] {
		if v, ok := t.Sample(r.Name); ok && finite(v) && !t.BelowNoise(r.Name) {
			fmt.Fprintf(&values, "\t%s %s", number(v), benchUnit(r))
		}
	}
	if values.Len() == 0 {
		return last
	}
	s := b.place(t)
	if s != last {
		h := record.Host{} // unknown: the keys are unset
		if s.session >= 0 {
			h = b.Sessions[s.session].Hosts()[s.node]
		}
		machine(w, &h)
	}
	fmt.Fprintf(w, "%s\t1%s\n", benchName(t.Cell), values.String())
	return s
}

// place finds a trial's. A node that its session does not name is the first.
func (b *Bench) place(t *record.Trial) place {
	p := place{session: slices.IndexFunc(b.Sessions, func(s store.Session) bool { return s.ID == t.Session })}
	if p.session >= 0 {
		p.node = max(0, slices.IndexFunc(b.Sessions[p.session].Nodes, func(n record.Node) bool { return n.Name == t.Node }))
	}
	return p
}

// units tells benchstat which direction is better, where that is the same in
// all workloads that have the unit.
func (b *Bench) units(w io.Writer) {
	better := make(map[string]record.Better)
	var order []string
	for _, l := range slices.Sorted(maps.Keys(b.Responses)) {
		for _, r := range b.Responses[l] {
			u := benchUnit(r)
			old, ok := better[u]
			if !ok {
				order = append(order, u)
				better[u] = r.Better
			} else if old != r.Better {
				better[u] = record.Neither
			}
		}
	}
	for _, u := range order {
		if x := better[u]; x == record.Higher || x == record.Lower {
			fmt.Fprintf(w, "Unit %s better=%s\n", u, x)
		}
	}
}

// benchUnit makes a unit of a response, so that those of one trial are told
// apart and each gets a table of its own.
func benchUnit(r record.Response) string {
	unit := escapeSpace(string(r.Unit), "")
	switch r.Unit {
	case record.Second:
		unit = "sec/op" // benchstat's word; it scales it to us and ns
	case record.Fraction:
		unit = "ratio"
	}
	return escapeSpace(r.Name, "") + "-" + unit
}

// benchName writes a cell as a benchmark with configuration in its name.
// What would end the name or one of its parts is written as %XX.
func benchName(c record.Cell) string {
	name := "BenchmarkTrial"
	for _, l := range c {
		name += "/" + escapeSpace(l.Factor, "/=") + "=" + escapeSpace(l.Value, "/")
	}
	// Digits after a last hyphen would be read as GOMAXPROCS.
	if i := strings.LastIndexByte(name, '-'); i >= 0 && i < len(name)-1 && strings.Trim(name[i+1:], "0123456789") == "" {
		name = name[:i] + "%2D" + name[i+1:]
	}
	return name
}

func escapeSpace(s, also string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "?") {
		if r == '%' || unicode.IsSpace(r) || !unicode.IsGraphic(r) || strings.ContainsRune(also, r) {
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// machine writes what makes results of two machines not the same. Every key is
// written each time: one that is left out would keep its last value.
func machine(w io.Writer, h *record.Host) {
	config(w, "host", h.Hostname)
	config(w, "os", h.OS)
	config(w, "kernel", h.Kernel)
	config(w, "arch", h.Arch)
	config(w, "cpu", h.CPUModel)
	threads := ""
	if h.Threads > 0 {
		threads = fmt.Sprint(h.Threads)
	}
	config(w, "threads", threads)
	config(w, "virtualization", h.Virtualization)
}

// config writes a configuration line; an empty value unsets the key.
func config(w io.Writer, key, value string) {
	fmt.Fprintf(w, "%s: %s\n", key, strings.Join(strings.Fields(terminal.Line(value)), " "))
}
