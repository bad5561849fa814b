package pbench

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tare/imports"
	"tare/imports/fio"
	"tare/record"
)

var (
	uperfFile = regexp.MustCompile(`^client::(.+)-server::(.+):(\d+)--client_output\.txt$`)
	uperfLine = regexp.MustCompile(`^timestamp_ms:(\d+(?:\.\d+)?)\s+name:Txn2\s+nr_bytes:(\d+)\s+nr_ops:(\d+)`)
)

// figures reads a sample's figures: from the streams, then corrected by the benchmark's output
// if it exists, and checked against the tool's.
func (r *reader) figures(t *imports.Trial, dir string, res *result, params map[string]string) error {
	res.samples(t)
	if err := r.uperf(t, dir, res, params); err != nil {
		return err
	}
	if err := r.fio(t, dir, res); err != nil {
		return err
	}
	for _, m := range res.metrics() {
		all := m.aggregate()
		if all == nil || all.Value == nil {
			continue
		}
		for _, p := range t.Samples {
			if p.Name != m.name || p.Labels != "" {
				continue
			}
			t.Compare(fmt.Sprintf("%s of %s, %s", m.name, imports.Clean(dir), m.unit), *all.Value*m.scale, p.Value, 0.02)
		}
	}
	return nil
}

// counter is a line of uperf's output: the totals up to then.
type counter struct{ ms, bytes, ops float64 }

// parseUperf reads the lines of the measured transaction, in order of time.
func parseUperf(text []byte) []counter {
	var out []counter
	for line := range bytes.Lines(text) {
		g := uperfLine.FindSubmatch(line)
		if g == nil {
			continue
		}
		var v [3]float64
		good := true
		for i := range v {
			var err error
			v[i], err = strconv.ParseFloat(string(g[i+1]), 64)
			good = good && err == nil
		}
		c := counter{v[0], v[1], v[2]}
		if n := len(out); good && (n == 0 || c.ms > out[n-1].ms && c.bytes >= out[n-1].bytes && c.ops >= out[n-1].ops) {
			out = append(out, c)
		}
	}
	return out
}

// uperf computes rates from uperf's counters: those in the time that the tool's series covers,
// or else all.
func (r *reader) uperf(t *imports.Trial, dir string, res *result, params map[string]string) error {
	files, _, err := r.f.List(dir)
	if err != nil {
		return err
	}
	windows := map[string][2]float64{}
	for _, m := range res.metrics() {
		for _, s := range m.single() {
			if n := len(s.Timeseries); !m.latency && n > 1 {
				w := [2]float64{math.Inf(1), 0}
				for _, p := range s.Timeseries {
					w = [2]float64{min(w[0], float64(p.Date)), max(w[1], float64(p.Date))}
				}
				windows[s.key()] = w
			}
		}
	}
	var bytes, ops, first float64
	n := 0
	for _, name := range files {
		g := uperfFile.FindStringSubmatch(name)
		if g == nil {
			continue
		}
		text, err := r.read(path.Join(dir, name))
		if err != nil {
			return err
		}
		c := parseUperf(text)
		if w, ok := windows[g[1]+" "+g[2]+" "+g[3]]; ok {
			c = within(c, w)
		}
		if len(c) < 2 {
			t.LeftOut("%s has no two readings of uperf's counters; the tool's own series are used", imports.Clean(name))
			return nil
		}
		a, z := c[0], c[len(c)-1]
		seconds := (z.ms - a.ms) / 1e3
		bytes, ops, n = bytes+(z.bytes-a.bytes)/seconds, ops+(z.ops-a.ops)/seconds, n+1
		if first == 0 || a.ms < first {
			first = a.ms
		}
		t.Duration = max(t.Duration, offset(z.ms, a.ms))
	}
	if n == 0 {
		return nil
	}
	if t.Start.IsZero() {
		t.Start = moment(first)
	}
	if strings.Contains(params["test_type"], "rr") {
		trans := ops / 2 // a write and a read
		put(t, record.Sample{Name: "transactions", Unit: record.PerSecond, Kind: record.Value, Value: trans})
		// Each instance waits for its answer, so it has one transaction in flight.
		if k, err := strconv.ParseFloat(params["instances"], 64); err == nil && k > 0 && trans > 0 {
			put(t, record.Sample{Name: "latency", Unit: record.Second, Kind: record.Value, Value: k * float64(n) / trans})
		}
		return nil
	}
	put(t, record.Sample{Name: "throughput", Unit: record.BytesPerSecond, Kind: record.Value, Value: bytes})
	return nil
}

// within returns the readings of a window and the one before it: a point of the tool's series
// is the difference to the last reading.
func within(c []counter, w [2]float64) []counter {
	var out []counter
	for i := range c {
		ms := math.Floor(c[i].ms)
		next := i+1 < len(c) && math.Floor(c[i+1].ms) == w[0]
		if next || ms >= w[0] && ms <= w[1] {
			out = append(out, c[i])
		}
	}
	return out
}

// fio reads fio's output. Lines of progress precede the JSON.
func (r *reader) fio(t *imports.Trial, dir string, res *result) error {
	text, err := r.read(path.Join(dir, "fio-result.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if i := bytes.Index(text, []byte("\n{")); i >= 0 {
		text = text[i+1:]
	}
	if err := imports.Shallow(text, maxDepth); err != nil {
		return err
	}
	o, err := fio.Parse(text)
	if err != nil {
		t.LeftOut("fio-result.txt is not fio's JSON; the tool's own series are used")
		return nil
	}
	if o.Version != "" {
		t.Facts["imported.fio"] = imports.Clean(o.Version)
	}
	if strings.HasPrefix(o.Version, "fio-2") { // its logs have other units than those of fio 3, and do not say so
		latency := func(name string) bool { return strings.HasSuffix(name, "latency") }
		t.Samples = slices.DeleteFunc(t.Samples, func(p record.Sample) bool { return latency(p.Name) })
		t.Series = slices.DeleteFunc(t.Series, func(p record.Series) bool { return latency(p.Name) })
		t.LeftOut("the latencies in logs of %s have a unit that is not said; they are left out", imports.Clean(o.Version))
	}
	iops := 0.0
	for _, op := range fio.Ops() {
		if f, ok := fio.Merge(o.All(), op); ok {
			for _, p := range f.Samples(op) {
				put(t, p)
			}
			iops += f.IOPS
		}
	}
	for _, m := range res.metrics() {
		if all := m.aggregate(); m.name == "iops" && all != nil && all.Value != nil && iops > 0 {
			// Five per cent: the logs leave the first and last seconds out.
			t.Compare("iops of "+imports.Clean(dir)+", by fio's own result", *all.Value, iops, 0.05)
		}
	}
	return nil
}
