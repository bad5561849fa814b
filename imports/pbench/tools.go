package pbench

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"tare/imports"
	"tare/internal/window"
	"tare/record"
)

var (
	cpuFile = regexp.MustCompile(`^cpu([0-9]+|all)_cpu(?:[0-9]+|all)\.csv$`) // of mpstat
	sarFile = regexp.MustCompile(`^per_cpu_cpu_([0-9]+)\.csv$`)
)

// leastShown is the part of a processor, in per cent, that a process must have used
// once to have a series: a machine has hundreds that never do.
const leastShown = 1

// tools reads the tools that ran during a sample: for machines of a known end as the series and
// figures of the collectors, for others as series with the tools' names.
func (r *reader) tools(t *imports.Trial, dir string, res *result, benchmark string) error {
	_, groups, err := r.f.List(dir)
	if err != nil {
		return err
	}
	x := &gathering{reader: r, t: t, benchmark: benchmark, endpoints: r.endpointsOf(res),
		vmm: map[string]bool{}, guests: map[string][]record.Series{}, whole: map[string][]record.Series{}}
	for _, g := range groups {
		if !strings.HasPrefix(g, "tools-") {
			continue
		}
		_, hosts, err := r.f.List(path.Join(dir, g))
		if err != nil {
			return err
		}
		for _, h := range hosts {
			if err := x.machine(path.Join(dir, g, h), h); err != nil {
				return err
			}
		}
	}
	x.finish(r.tree.Quota)
	return nil
}

// endpointsOf returns where the endpoints were, from the mapping. Without a mapping, a machine with the
// name of the benchmark's server or client belongs to that end.
func (r *reader) endpointsOf(res *result) map[string]Endpoint {
	if len(r.endpoints) > 0 {
		return r.endpoints
	}
	names := map[string]map[string]bool{"server": {}, "client": {}}
	for _, m := range res.metrics() {
		for _, s := range m.single() {
			names["server"][s.Server], names["client"][s.Client] = true, true
		}
	}
	out := map[string]Endpoint{}
	for endpoint, of := range names {
		delete(of, "")
		if one := slices.Collect(maps.Keys(of)); len(one) == 1 {
			out[endpoint] = Endpoint{Host: one[0]}
		}
	}
	if out["server"].Host == out["client"].Host {
		return nil // their usage cannot be separated
	}
	return out
}

// gathering is the tools' output of one trial.
type gathering struct {
	*reader
	t         *imports.Trial
	benchmark string
	endpoints map[string]Endpoint
	said      []record.Series            // under the collectors' names
	vmm       map[string]bool            // ends whose host showed a virtual machine
	guests    map[string][]record.Series // by endpoint, from inside it
	whole     map[string][]record.Series // by endpoint, of its host
}

// read returns a tool's CSV; nil and a warning if it cannot be read.
func (x *gathering) read(at, file string) (*table, error) {
	text, err := x.f.Read(path.Join(at, file), maxFile)
	if err != nil {
		return nil, err
	}
	out, err := parseTable(text)
	if err != nil {
		x.warn("%s: %v", path.Join(path.Base(path.Dir(path.Dir(at))), path.Base(path.Dir(at)), file), err)
		return nil, nil
	}
	return out, nil
}

func (x *gathering) warn(format string, args ...any) {
	x.t.LeftOut("%s", imports.Clean(fmt.Sprintf(format, args...)))
}

// tables returns the wanted CSVs of a tool, by name.
func (x *gathering) tables(dir, tool string, wanted func(string) bool) (map[string]*table, error) {
	at := path.Join(dir, tool, "csv")
	files, _, err := x.f.List(at)
	if err != nil {
		return nil, err
	}
	out := map[string]*table{}
	for _, f := range files {
		if wanted(f) {
			t, err := x.read(at, f)
			if err != nil {
				return nil, err
			}
			if t != nil {
				out[f] = t
			}
		}
	}
	return out, nil
}

// machine reads the tools of one machine.
func (x *gathering) machine(dir, name string) error {
	_, host, labelled := strings.Cut(name, ":") // a label of the tool group may precede it
	is := func(a string) bool { return a != "" && (a == name || labelled && a == host) }
	known := false
	for _, endpoint := range slices.Sorted(maps.Keys(x.endpoints)) {
		e := x.endpoints[endpoint]
		switch {
		case is(e.Host):
			known = true
			if err := x.host(dir, name, endpoint, e); err != nil {
				return err
			}
		case is(e.Guest):
			known = true
			if err := x.guest(dir, endpoint); err != nil {
				return err
			}
		}
	}
	if known {
		return nil
	}
	return x.unknown(dir, name)
}

// unknown keeps the output of mpstat and pidstat of a machine that belongs to no end.
func (x *gathering) unknown(dir, name string) error {
	cpus, err := x.tables(dir, "mpstat", cpuFile.MatchString)
	if err != nil {
		return err
	}
	for _, f := range slices.Sorted(maps.Keys(cpus)) {
		for i, mode := range cpus[f].names {
			x.keep(cpus[f].gauge(record.Series{Name: "host_cpu", Unit: record.Fraction, Labels: record.MakeLabels("host", imports.Clean(name),
				record.LabelCPU, cpuFile.FindStringSubmatch(f)[1], record.LabelMode, imports.Clean(mode))}, i, 0.01, x.t.Start))
		}
	}
	procs, err := x.tables(dir, "pidstat", isPidstat)
	if err != nil {
		return err
	}
	vmm := false
	for _, p := range procs {
		for i, column := range p.names {
			one, ok := parseProcess(column)
			vmm = vmm || ok && one.vmm()
			if p.top(i, x.t.Start) >= leastShown {
				x.keep(p.gauge(record.Series{Name: "host_thread_cpu", Unit: record.Cores,
					Labels: record.MakeLabels("host", imports.Clean(name), "thread", imports.Clean(column))}, i, 0.01, x.t.Start))
			}
		}
	}
	if vmm {
		x.warn("a virtual machine ran on %s, but it is not known which end of the workload was in it, so its CPU shows no cause; write ends: {server: {host: %s}} in a --map file", name, name)
	}
	return nil
}

func isPidstat(file string) bool { return file == "cpu_usage_percent_cpu.csv" }

// keep adds series while there is room. Figures are computed from all series.
func (x *gathering) keep(s record.Series) {
	switch {
	case len(s.T) == 0 || x.full:
		return
	case x.points+len(s.T) > imports.MaxPoints/2:
		x.full = true
		x.set.Host.Warnings = append(x.set.Host.Warnings, record.Warning{Code: imports.CodeLeftOut,
			Text: fmt.Sprintf("the tools' series have more than %d points: those of later samples are left out, their figures are not", imports.MaxPoints/2)})
		return
	}
	x.points += len(s.T)
	x.t.Series = append(x.t.Series, s)
}

// finish turns the gathered output into the trial's series and figures.
func (x *gathering) finish(quota float64) {
	endpoints := slices.Sorted(maps.Keys(x.endpoints))
	slices.Reverse(endpoints) // a host's series have no end: if both were read, keep the server's
	for _, endpoint := range endpoints {
		if x.whole[endpoint] != nil {
			x.said = append(x.said, x.whole[endpoint]...)
			break
		}
	}
	slices.Reverse(endpoints)
	for _, endpoint := range endpoints {
		e := x.endpoints[endpoint]
		if x.vmm[endpoint] || e.Host == "" { // otherwise the tools inside read the host's processors
			x.said = append(x.said, x.guests[endpoint]...)
		}
		if e.Native {
			x.t.Facts[endpoint+record.FactWhere] = record.WhereNative
			x.t.Facts[endpoint+record.FactFamily] = string(record.FamilyNative)
		}
		level := func(name string, u record.Unit, v float64) {
			if v > 0 {
				x.said = append(x.said, record.Series{Name: name, Unit: u, Kind: record.Gauge, Labels: record.MakeLabels(record.LabelEndpoint, endpoint),
					T: []time.Duration{0, x.t.Duration}, V: []float64{v, v}})
			}
		}
		if quota > 0 && !e.Native && len(x.said) > 0 {
			level(record.CPUQuota, record.Cores, quota)
		}
		if e.link > 0 && len(x.guests[endpoint]) > 0 {
			level(record.LinkRate, record.BytesPerSecond, e.link)
		}
	}
	lines := make([]*window.Series, 0, len(x.said))
	to := x.t.Duration
	for i := range x.said {
		s := &x.said[i]
		if len(s.T) > 1 {
			lines = append(lines, &window.Series{Series: *s, Stamped: true})
			if x.t.Duration == 0 {
				to = max(to, s.T[len(s.T)-1])
			}
		}
		x.keep(*s)
	}
	for _, p := range window.Figures(lines, window.Span{To: to}) {
		put(x.t, p)
	}
}
