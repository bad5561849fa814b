package plot

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse/stat"
	"tare/record"
)

// twoWorkloads are rr and stream, of the same responses with a help text each.
func twoWorkloads() Source {
	src := sizes().source()
	for i := range src.Result.Compared {
		c := &src.Result.Compared[i]
		conns, _ := c.Cell.Get("connections")
		c.Cell = c.Cell.Without("connections")
		c.Response.Help = "of rr"
		if conns == "16" {
			c.Workload, c.Response.Help = "stream", "of stream"
			c.Cell = append(record.Cell{{Factor: "workload", Value: "stream"}}, c.Cell.Without("workload")...)
		}
		c.Shared = c.Cell.Without("sandbox")
	}
	return src
}

func TestSameResponseOfSeveralWorkloads(t *testing.T) {
	small := []record.Level{{Factor: "size", Value: "1B"}}
	figs := build(t, twoWorkloads(), Options{By: []string{"workload", "sandbox"}, Kind: Bar, Value: Cost, Only: small})
	got := map[string]string{}
	for _, f := range figs {
		got[f.Name] = f.Title + "; " + f.Subtitle
		if !strings.Contains(f.Alt, f.Title) || !strings.Contains(f.Alt, "stream, runsc: ") {
			t.Errorf("%s: %s", f.Name, f.Alt)
		}
	}
	want := map[string]string{
		"all-rate-cost-size-1B":    "cost in rate by workload and sandbox; size=1B; more is worse",
		"all-latency-cost-size-1B": "cost in latency by workload and sandbox; size=1B; more is worse",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// The response on an axis is named in the title all the same.
	f := build(t, twoWorkloads(), Options{By: []string{"response", "sandbox"}, Only: small})[0]
	if f.Title != "rr: cost in rate and latency by response and sandbox" || f.Subtitle != "size=1B; more is worse" {
		t.Errorf("%q %q", f.Title, f.Subtitle)
	}
}

func TestNameOfTheYAxis(t *testing.T) {
	src := sizes().source()
	for i := range src.Result.Compared {
		src.Result.Compared[i].Response.Unit = record.PerSecond
	}
	for _, far := range []float64{1, 1000} {
		f := build(t, src, Options{By: []string{"size", "response"}, Kind: Line, Only: []record.Level{{Factor: "sandbox", Value: "runc"}, {Factor: "connections", Value: "1"}}})[0]
		for i := range f.Marks {
			m := &f.Marks[i]
			m.Value, m.Lo, m.Hi, m.Points = 3, 2, 4, nil
			if i == 0 {
				m.Value, m.Lo, m.Hi = 3*far, 2*far, 4*far
			}
		}
		want := map[float64]string{1: "rate and latency (/s)", 1000: "rate and latency, log scale"}[far]
		d := recordFigure(t, &f, light())
		if !slices.ContainsFunc(d.texts, func(w written) bool { return w.text == want }) {
			t.Errorf("the y axis is not called %q but %q", want, d.sheet.nameY())
		}
	}
}

func TestHeatMapsNameTheirFactors(t *testing.T) {
	src := sizes().source()
	for _, c := range []struct{ by, want []string }{
		{[]string{"size", "sandbox", "connections"}, []string{"size", "sandbox / connections"}},
		{[]string{"size", "connections"}, []string{"size", "connections"}},
	} {
		f := build(t, src, Options{By: c.by, Kind: Heat, Responses: []string{"rate"}})[0]
		d := recordFigure(t, &f, light())
		for _, want := range c.want {
			if !slices.ContainsFunc(d.texts, func(w written) bool { return w.text == want }) {
				t.Errorf("by %v: nothing says %q", c.by, want)
			}
		}
	}
}

// In greys what is better has a frame, so that it is neither paper nor worse.
func TestBetterInPrint(t *testing.T) {
	for _, theme := range []string{"light", "print"} {
		f := build(t, sizes().source(), Options{By: []string{"size", "sandbox", "connections"}, Kind: Heat, Value: Cost, Responses: []string{"rate"}})[0]
		f.Marks[0].Value, f.Marks[0].Verdict = 2.5, stat.Slower
		f.Marks[1].Verdict = stat.Equivalent
		st := light()
		st.Theme, _ = NewTheme(theme)
		d := recordFigure(t, &f, st)
		n := 0
		for _, s := range d.strokes {
			if s.width == 1.6 && s.path[0].Pos.X < d.sheet.area.Max.X {
				n++
			}
		}
		want := 0
		for _, m := range f.Marks {
			if theme == "print" && m.Value < 1 && m.Verdict != stat.Equivalent && !hollow(&m) {
				want++
			}
		}
		if n != want || theme == "print" && n < 5 {
			t.Errorf("%s: %d frames, not %d", theme, n, want)
		}
	}
}

func TestOneBlockIsOneBlock(t *testing.T) {
	l := sizes()
	l.blocks = 1
	if f := build(t, l.source(), Options{By: []string{"size", "sandbox"}})[0]; !strings.HasPrefix(f.Caption, "n = 1 block;") {
		t.Error(f.Caption)
	}
}

func TestHeadingsOfTheIndex(t *testing.T) {
	for several, src := range map[bool]Source{false: sizes().source(), true: twoWorkloads()} {
		dir := t.TempDir()
		if _, err := Write(t.Context(), build(t, src, Options{}), Output{Dir: dir, Format: "svg", Style: light()}, src); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join(dir, "index.html"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(page), "Several workloads") != several {
			t.Errorf("the index of %v is headed otherwise", src.Result.Study)
		}
		if !several {
			continue
		}
		// The ratio of a rate that rose by 1.3 stands beside what it costs.
		if m := regexp.MustCompile(`>([0-9.]+) × the cost \([^)]*\), faster</td><td>ratio ([0-9.]+)<`).FindStringSubmatch(string(page)); m == nil || !strings.HasPrefix(m[1], "0.7") || !strings.HasPrefix(m[2], "1.3") {
			t.Errorf("no cost with its ratio in the index: %q", m)
		}
	}
}

// TestByteTicks: an axis of bytes that spans many sizes has its marks at powers of two, and not at 4.66 GiB.
func TestByteTicks(t *testing.T) {
	for want, to := range map[string]float64{"1 MiB|2 MiB|4 MiB|8 MiB|16 MiB|32 MiB": 40 << 20, "1 MiB||4 MiB||16 MiB||64 MiB||256 MiB||1 GiB||4 GiB||16 GiB|": 40 << 30} {
		s := scale{lo: 1 << 20, hi: to}
		s.logTicks(record.Byte, Level)
		var labels []string
		for _, x := range s.ticks {
			labels = append(labels, x.label)
		}
		if got := strings.Join(labels, "|"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestMediansOf: one trial has no median.
func TestMediansOf(t *testing.T) {
	if one, three := mediansOf(1, "1 trial"), mediansOf(3, "3 trials"); one != "of 1 trial" || three != "medians of 3 trials" {
		t.Errorf("%q, %q", one, three)
	}
}
