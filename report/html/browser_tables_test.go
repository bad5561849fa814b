package html_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/analyse"
	"tare/analyse/cpucost"
	"tare/analyse/stat"
	"tare/analyse/summary"
	"tare/record"
	"tare/report/document"
	"tare/report/section"
	"tare/report/words"
)

// withTables is the small document with a summary table of every kind of cell, what
// CPU work costs, and a virtual machine without hardware virtualization.
func withTables(t testing.TB) *document.Document {
	d := shape{workloads: 2, sizes: 3, responses: []string{"throughput", "latency"}}.document(t)
	r := d.Result
	level := func(f, v string) record.Level { return record.Level{Factor: f, Value: v} }
	r.Accelerators = []analyse.Accelerator{{Sandbox: "runsc", Name: "runsc (TCG)", Trials: map[string]int{"tcg": 12}}}
	d.Machines = words.Accelerators(r)
	row := func(name string, vcpus string, cells ...summary.Cell) summary.Row {
		c := record.Cell{level("sandbox", name)}
		if vcpus != "" {
			c = append(c, level("default_vcpus", vcpus))
		}
		return summary.Row{Cell: c, Cells: cells}
	}
	cell := func(value, ratio float64, v stat.Verdict) summary.Cell {
		return summary.Cell{Combinations: 3, Estimate: stat.Estimate{N: 12, Value: value, Base: 1e9, Ratio: ratio, Lo: ratio * 0.95, Hi: ratio * 1.05}, Verdict: v}
	}
	base := row("process", "", summary.Cell{Combinations: 3, Estimate: stat.Estimate{N: 12, Value: 1e9, Base: 1e9}}, summary.Cell{Combinations: 3, Estimate: stat.Estimate{N: 12, Value: 8e8, Base: 8e8}},
		summary.Cell{Combinations: 3, Estimate: stat.Estimate{N: 12, Value: 9e8, Base: 9e8}})
	base.Baseline = true
	few := cell(4e8, 0.5, stat.Slower)
	few.Combinations, few.Fewer = 2, true
	mean := row("runsc", "", cell(4.5e8, 0.45, stat.Slower), few, cell(9e8, 1.003, stat.Equivalent))
	mean.Mean, mean.Of = true, 2
	r.Tables = []summary.Table{{Name: "bandwidth", Response: record.Response{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher}, Factors: []string{"sandbox", "default_vcpus"},
		Column: "size", Columns: []summary.Column{{Level: "1KiB", Combinations: 3}, {Level: "2KiB", Combinations: 3}, {Level: "4KiB", Combinations: 3}},
		Over: []summary.Levels{{Factor: "workload", Levels: []string{"w0", "w1"}}},
		Rows: []summary.Row{base,
			row("runsc", "1", cell(4e8, 0.4, stat.Slower), few, cell(9e8, 1.002, stat.Equivalent)),
			row("runsc", "2", cell(1.2e9, 1.2, stat.Faster), cell(7.9e8, 0.99, stat.Undecided), summary.Cell{Why: "the <b>host</b> has no KVM"}), mean}}}
	for _, c := range r.Compared {
		if c.Response.Name != "throughput" || c.Level.N == 0 {
			continue
		}
		x := cpucost.Cost{CellKey: record.CellKey{Workload: c.Workload, Stratum: c.Stratum, Shared: c.Shared, Treatment: c.Treatment, Cell: c.Cell, Baseline: c.Baseline}, Response: c.Response, Unit: "GB", Endpoints: []string{"server"},
			Trials: 4, Cores: 1.2, Rate: c.Level.Typical, Value: 0.4, Roles: []cpucost.Role{{Role: "workload", Part: 1, Cores: 1.2, Value: 0.4}}}
		if strings.Contains(c.Treatment, "runsc") {
			x.Value, x.Estimate, x.Verdict = 1, stat.Estimate{N: 4, Ratio: 2.5, Lo: 2.3, Hi: 2.7}, stat.Slower
			x.Roles = []cpucost.Role{{Role: "vcpu", Part: 0.7, Cores: 0.84, Value: 0.7}, {Role: "vhost", Part: 0.3, Cores: 0.36, Value: 0.3}}
		}
		if strings.Contains(c.Treatment, "crun") {
			x = cpucost.Cost{CellKey: record.CellKey{Workload: c.Workload, Stratum: c.Stratum, Shared: c.Shared, Treatment: c.Treatment, Cell: c.Cell}, Response: c.Response, Unit: "GB", Missing: "no collector counted its CPU"}
		}
		r.CPUCosts = append(r.CPUCosts, x)
		r.Quotas = append(r.Quotas, cpucost.Quota{CellKey: record.CellKey{Workload: c.Workload, Stratum: c.Stratum, Shared: c.Shared, Treatment: c.Treatment}, Endpoint: "server", Trials: 4, Quota: 1.25, Cores: 1,
			Roles: []cpucost.Role{{Role: "vcpu", Part: 0.75, Cores: 0.75}, {Role: "<b>vmm", Part: 0.25, Cores: 0.25}}, Throttled: 0.4, Time: 0.125})
	}
	agent := 0.034
	r.Overheads = append(r.Overheads, analyse.Overhead{Sandbox: "runsc", Trials: 4, Agent: &agent})
	r.Boots = []analyse.Boot{{Treatment: "sandbox=runsc", Starts: 4, Start: 4 * time.Second, Lo: 3800 * time.Millisecond, Hi: 4500 * time.Millisecond,
		Phases: []analyse.PhaseTime{{Name: "kernel", Trials: 4, Median: 3 * time.Second, Lo: 2900 * time.Millisecond, Hi: 3200 * time.Millisecond}}}}
	d.Notes = append(d.Notes, document.Note{ID: "tables", Title: "Summary tables", Text: "How."}, document.Note{ID: "cpucost", Title: "CPU per unit of work", Text: "How."})
	rebuild(d)
	return d
}

// TestQuotaAndBoot: what is in no chart is in a table.
func TestQuotaAndBoot(t *testing.T) {
	d := withTables(t)
	b := browse(t)
	b.show(d, "")
	b.drawAll()
	for id, want := range map[string][]string{
		"quota": {"throttled", "80 %", "40.0 %", "125 ms/s", "<b>vmm", "0.750", "0.250"},
		"cost":  {"agent in guest", "3.40 %"},
		"boots": {"Steps of a sandbox's start", "kernel", "3.00 s", "2.90–3.20 s", "in no step"},
	} {
		got := eval[string](b, fmt.Sprintf(`document.getElementById(%q).textContent`, id))
		for _, s := range want {
			if !strings.Contains(got, s) {
				t.Errorf("%s lacks %q: %s", id, s, got)
			}
		}
	}
	if label := eval[string](b, `document.querySelector("#boots [aria-label^='Steps']").getAttribute("aria-label")`); !strings.Contains(label, "4.00 s: kernel 3.00 s") {
		t.Errorf("the chart of starts says %q", label)
	}
}

// TestSummaryTables: the figures are the document's; every cell says in words what it
// is, by pointer and by key.
func TestSummaryTables(t *testing.T) {
	d := withTables(t)
	b := browse(t)
	b.show(d, "")
	b.drawAll()
	var want, got [][]string
	tab := d.Result.Tables[0]
	for _, r := range tab.Rows {
		var line []string
		for _, c := range r.Cells {
			text := "–"
			if c.Combinations > 0 {
				text = words.Value(c.Estimate.Value, tab.Response.Unit)
			}
			if c.Fewer {
				text += "†"
			}
			if c.Estimate.Ratio > 0 {
				x, _, _ := c.Estimate.Cost(tab.Response.Better)
				text += "|" + words.Times(x) + " " + section.SignOf(c.Estimate.Shown(c.Verdict, tab.Response.Better)).Mark
			}
			line = append(line, text)
		}
		want = append(want, line)
	}
	got = eval[[][]string](b, `[...document.querySelectorAll("#tables tbody tr")].map((tr) => [...tr.querySelectorAll("td.heat")].map((td) => [td.querySelector(".r").textContent, td.querySelector(".iv").textContent].filter(Boolean).join("|")))`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	heads := eval[[]string](b, `[...document.querySelectorAll("#tables tbody th")].map((x) => x.textContent)`)
	if d := cmp.Diff([]string{"process", "runsc (TCG) default_vcpus=1", "runsc (TCG) default_vcpus=2", "runsc (TCG): geometric mean of 2"}, heads); d != "" {
		t.Error(d)
	}
	// The colour is the ratio's side; equivalent, undecided and no value have none of it.
	ground := eval[[]string](b, `[...document.querySelectorAll("#tables td.heat")].map((td) => td.dataset.kind + " " + (td.style.backgroundColor ? "coloured" : "plain"))`)
	if s := strings.Join(ground, ","); s != "baseline plain,baseline plain,baseline plain,worse coloured,worse coloured,equivalent plain,better coloured,undecided plain,no-value plain,worse coloured,worse coloured,equivalent plain" {
		t.Errorf("colours: %s", s)
	}
	// By keys: one stop, arrows, and what is told follows.
	b.do(`document.querySelector("#tables td.heat").focus()`)
	b.press(kb.ArrowDown)
	b.press(kb.ArrowRight)
	says := eval[string](b, `document.querySelector("#tables .says").textContent`)
	if want := "runsc (TCG) default_vcpus=1, size 2KiB: 400 MB/s against 1.00 GB/s; 2.00 × the cost, interval 1.90 to 2.11, costs more; raw ratio 0.50; 2 combinations, fewer than there are, n 12."; says != want {
		t.Errorf("it says %q, want %q", says, want)
	}
	if s := eval[string](b, `document.activeElement.querySelector(".hidden").textContent.trim()`); s != says {
		t.Errorf("a screen reader hears %q", s)
	}
	text := eval[string](b, `document.getElementById("tables").textContent`)
	for _, s := range []string{"the <b>host</b> has no KVM", "over workload w0, w1", d.Machines, "higher is better"} {
		if !strings.Contains(text, s) {
			t.Errorf("the section does not say %q", s)
		}
	}
	if s := eval[string](b, `document.querySelector("#summary thead").textContent`); !strings.Contains(s, "runsc (TCG)") {
		t.Errorf("the heat map's columns are %q", s)
	}
	b.quiet("file://")
}

// TestBarsOfATable: in both styles each comparison is one bar with its value.
func TestBarsOfATable(t *testing.T) {
	d := withTables(t)
	d.Result.Tables[0].Column, d.Result.Tables[0].Columns = "workload", []summary.Column{{Level: "w0"}, {Level: "w1"}}
	for i := range d.Result.Tables[0].Rows {
		d.Result.Tables[0].Rows[i].Cells = d.Result.Tables[0].Rows[i].Cells[:2]
	}
	d.Result.Tables[0].Over = []summary.Levels{{Factor: "size", Levels: []string{"1KiB", "2KiB", "4KiB"}}}
	b := browse(t)
	b.show(d, "")
	b.drawAll()
	want := map[string]bool{}
	for _, c := range d.Result.Compared {
		if c.Response.Name == "throughput" && c.Level.N > 0 {
			v := c.Estimate.Value
			if c.Baseline {
				v = c.Level.Typical
			}
			want[fmt.Sprintf("%.8g", v)] = true
		}
	}
	for _, style := range []string{"groups", "hatching"} {
		b.do(fmt.Sprintf(`(() => { const s = document.getElementById("bars-bandwidth-style"); s.value = %q; s.dispatchEvent(new Event("change")); s.scrollIntoView({block: "center"}); })()`, style))
		b.drawAll()
		got := eval[[]float64](b, `echarts.getInstanceByDom(document.querySelector('[data-chart="bars bandwidth"] .chart-canvas')).getOption().series[0].data.map((x) => x[1])`)
		groups := eval[int](b, `echarts.getInstanceByDom(document.querySelector('[data-chart="bars bandwidth"] .chart-canvas')).getOption().xAxis[0].data.length`)
		if n := map[string]int{"groups": 6, "hatching": 3}[style]; groups != n || len(got) != len(want) {
			t.Errorf("%s: %d groups with %d bars, want %d with %d", style, groups, len(got), n, len(want))
		}
		look(b, "tables", "bars-"+style)
		for _, v := range got {
			if !want[fmt.Sprintf("%.8g", v)] {
				t.Errorf("%s: a bar of %v", style, v)
			}
		}
	}
	b.quiet("file://")
}

// TestLowerBounds: the page says which times are lower bounds: in the table, in the cells of all costs and at the bars of a table.
func TestLowerBounds(t *testing.T) {
	for _, late := range []bool{false, true} {
		d := withTables(t)
		for i := range d.Result.Compared {
			if c := &d.Result.Compared[i]; c.Response.Name == "throughput" {
				c.Level.AtLeast, c.Base.AtLeast = late && !c.Baseline, false
			}
		}
		rebuild(d)
		b := browse(t)
		b.show(d, "")
		b.drawAll()
		b.do(`document.querySelector('[data-chart="bars bandwidth"]').scrollIntoView({block: "center"})`)
		const signs = `(() => { const list = []; echarts.getInstanceByDom(document.querySelector('[data-chart="bars bandwidth"] .chart-canvas')).getZr().storage.getDisplayList(true).forEach((x) => { if (x.style && x.style.text === ">") list.push(1); }); return list.length; })()`
		if got := eval[int](b, signs); (got > 0) != late {
			t.Errorf("late %t: %d bars have the sign", late, got)
		}
		for where, find := range map[string]string{
			"legend of the bars": `document.querySelector('[data-bars="bandwidth"]').textContent.includes("> pods or claims did not get there")`,
			"words of the bars":  `document.querySelector('[data-chart="bars bandwidth"]').getAttribute("aria-label").includes(" > ")`,
			"table":              `[...document.querySelectorAll("#table td")].some((x) => x.textContent.startsWith("> "))`,
			"all costs":          `[...document.querySelectorAll("#summary td")].some((x) => x.textContent.includes("> "))`,
		} {
			if got := eval[bool](b, find); got != late {
				t.Errorf("late %t: the sign is in the %s: %t", late, where, got)
			}
		}
	}
}

// barsOf reads the values of the bars under the table bandwidth, and their chart's groups.
func barsOf(b *browser) (values []float64, groups []string) {
	const option = `echarts.getInstanceByDom(document.querySelector('[data-chart="bars bandwidth"] .chart-canvas')).getOption()`
	b.do(`document.querySelector('[data-chart="bars bandwidth"]').scrollIntoView({block: "center"})`)
	b.drawAll()
	return eval[[]float64](b, option+`.series[0].data.map((x) => x[1])`), eval[[]string](b, option+`.xAxis[0].data`)
}

// TestBarsOfRows: a level that the table has rows of has its own bars, in groups or to be
// chosen. No bar takes the place of another.
func TestBarsOfRows(t *testing.T) {
	without := func(c record.Cell, factor string) record.Cell {
		return slices.DeleteFunc(slices.Clone(c), func(l record.Level) bool { return l.Factor == factor })
	}
	for _, tc := range []struct {
		name    string
		rows    []string
		column  string
		lack    []string // sizes whose cells have none
		caption string
		groups  int
		choose  string // this factor, and each of its levels has half of the bars
	}{
		{"rows and columns", []string{"sandbox", "size"}, "workload", nil, "throughput by size and workload", 6, ""},
		{"rows alone", []string{"sandbox", "size", "workload"}, "", nil, "throughput by size and workload", 6, ""},
		{"averaged over", []string{"sandbox", "size"}, "", nil, "throughput by size, with workload %s", 3, "workload"},
		{"one lacks it", []string{"sandbox", "size"}, "workload", []string{"4KiB"}, "throughput by size and workload", 6, ""},
		{"same place", []string{"sandbox"}, "workload", []string{"2KiB", "4KiB"}, "throughput by workload", 2, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := withTables(t)
			tab := &d.Result.Tables[0]
			tab.Factors, tab.Column, tab.Columns, tab.Over = tc.rows, tc.column, []summary.Column{{Level: "w0"}, {Level: "w1"}}, nil
			if tc.column == "" {
				tab.Columns = []summary.Column{{}}
			}
			for i := range tab.Rows {
				tab.Rows[i].Cells = tab.Rows[i].Cells[:len(tab.Columns)]
			}
			var want []float64
			for i := range d.Result.Compared {
				c := &d.Result.Compared[i]
				if size, _ := c.Cell.Get("size"); slices.Contains(tc.lack, size) {
					c.Cell = without(c.Cell, "size")
				}
				if c.Response.Name != "throughput" || c.Level.N == 0 {
					continue
				}
				if c.Baseline {
					want = append(want, c.Level.Typical)
				} else {
					want = append(want, c.Estimate.Value)
				}
			}
			b := browse(t)
			b.show(d, "")
			b.drawAll()
			levels := []string{""}
			if tc.choose != "" {
				levels = []string{"w0", "w1"}
			}
			var got []float64
			for _, v := range levels {
				caption := tc.caption
				if tc.choose != "" {
					b.do(fmt.Sprintf(`(() => { const s = document.getElementById("bars-bandwidth-0"); s.value = %q; s.dispatchEvent(new Event("change")); })()`, v))
					caption = fmt.Sprintf(caption, v)
				}
				values, groups := barsOf(b)
				if len(values) != len(want)/len(levels) || len(groups) != tc.groups {
					t.Errorf("%s: %d bars in groups %q, want %d in %d groups", v, len(values), groups, len(want)/len(levels), tc.groups)
				}
				if s := eval[string](b, `document.querySelector('[data-bars="bandwidth"] figcaption').textContent`); s != caption {
					t.Errorf("the caption is %q, want %q", s, caption)
				}
				got = append(got, values...)
			}
			slices.Sort(got)
			slices.Sort(want)
			if d := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); d != "" {
				t.Errorf("bars (-want +got):\n%s", d)
			}
			look(b, "tables", "bars-rows-"+strings.ReplaceAll(tc.name, " ", "-"))
			b.quiet("file://")
		})
	}
}

func TestCPUCosts(t *testing.T) {
	d := withTables(t)
	b := browse(t)
	b.show(d, "")
	b.drawAll()
	b.do(`for (const x of document.querySelectorAll("#cpucost details")) x.open = true`)
	var want [][]string
	for _, c := range d.Result.CPUCosts {
		if c.Missing != "" {
			continue
		}
		ratio := map[bool]string{true: "baseline", false: "-"}[c.Baseline]
		if e := c.Estimate; !c.Baseline && e.Ratio > 0 {
			ratio = words.Ratio(e.Ratio) + " ▼ " + words.Ratio(e.Lo) + "–" + words.Ratio(e.Hi)
		}
		want = append(want, []string{words.Value(c.Value, record.Second) + " a GB", ratio})
	}
	got := eval[[][]string](b, `[...document.querySelectorAll("#cpucost details tbody tr")].map((tr) => [tr.cells[2].textContent, tr.cells[3].textContent])`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	// Bars are multiples of the baseline, and roles add up to them.
	sums := eval[[]float64](b, `(() => { const o = echarts.getInstanceByDom(document.querySelector('[data-chart="cpu per unit of work"] .chart-canvas')).getOption();
		const bars = o.series.filter((s) => s.type === "bar"); return bars[0].data.map((_, i) => bars.reduce((sum, s) => sum + s.data[i].value, 0)); })()`)
	if len(sums) != len(want) {
		t.Fatalf("%d bars for %d rows", len(sums), len(want))
	}
	i := 0
	for _, c := range d.Result.CPUCosts {
		if c.Missing != "" {
			continue
		}
		if x := c.Value / 0.4; sums[i] < x*0.999 || sums[i] > x*1.001 {
			t.Errorf("bar %d is %v of the baseline, want %v", i, sums[i], x)
		}
		i++
	}
	if s := eval[string](b, `document.getElementById("cpucost").textContent`); !strings.Contains(s, "no collector counted its CPU") || !strings.Contains(s, "vcpu 70 %, vhost 30 %") {
		t.Errorf("the section says %.1500q", s)
	}
	b.quiet("file://")
}

// A study without them has no such parts.
func TestNoTables(t *testing.T) {
	b := browse(t)
	b.show(small(t), "")
	if !eval[bool](b, `["tables", "cpucost"].every((id) => document.getElementById(id).hidden)`) {
		t.Error("there are parts for what nobody asked")
	}
}

// What light and dark, a phone and paper do to tables, costs and time series.
func TestTablesLook(t *testing.T) {
	d := withTables(t)
	vm := shape{workloads: 2, sizes: 3, responses: []string{"throughput", "latency"}, window: true, series: vmSeries(4, 1.25)}.document(t)
	d.Series = vm.Series
	b := browse(t)
	for _, scheme := range []string{"light", "dark"} {
		b.media("", scheme)
		for _, width := range []int64{1280, 360} {
			b.size(width, 900)
			b.show(d, "")
			b.drawAll()
			if bad := eval[[]string](b, contrasts); len(bad) > 0 {
				t.Errorf("%s: too little contrast: %q", scheme, bad)
			}
			if out := eval[[]string](b, cut); len(out) > 0 {
				t.Errorf("%d px: these stand out: %q", width, out)
			}
			for _, id := range []string{"tables", "cpucost", "series"} {
				look(b, id, fmt.Sprintf("%s-%s-%d", id, scheme, width))
			}
		}
	}
	b.media("print", "light")
	b.do(`dispatchEvent(new Event("beforeprint"))`)
	for _, id := range []string{"tables", "cpucost", "series"} {
		look(b, id, id+"-print")
	}
	if eval[bool](b, `[...document.querySelectorAll("#tables .says, #tables .controls")].some((e) => e.checkVisibility())`) {
		t.Error("what can only be used on a screen is printed")
	}
	b.quiet("file://")
}

// look takes a picture of one part, into the directory that TARE_LOOK names.
func look(b *browser, id, name string) {
	dir := os.Getenv("TARE_LOOK")
	if dir == "" {
		return
	}
	b.do(fmt.Sprintf(`document.getElementById(%q).scrollIntoView({behavior: "instant"})`, id))
	b.drawAll()
	box := eval[[]float64](b, fmt.Sprintf(`(() => { const r = document.getElementById(%q).getBoundingClientRect(); return [r.x, r.y + scrollY, r.width, r.height]; })()`, id))
	r := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: new(true),
		Clip: &page.Viewport{X: box[0], Y: box[1], Width: box[2], Height: box[3], Scale: 1}})
	if err := os.WriteFile(dir+"/"+name+".png", r.Data, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// TestTablesWithoutScripts: the file has them as plain tables, with texts escaped.
func TestTablesWithoutScripts(t *testing.T) {
	text, err := os.ReadFile(write(t, withTables(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"<h3>bandwidth: throughput, geometric mean over workload (w0, w1)</h3>", `<th scope="row">runsc (TCG) geometric mean</th>`, "<td>400 MB/s 0.40 ▼ 0.38–0.42</td>", "the &lt;b&gt;host&lt;/b&gt; has no KVM", `<th scope="col">size 2KiB`} {
		if !strings.Contains(string(text), s) {
			t.Errorf("the file does not have %q", s)
		}
	}
}

// TestHeatGoesOn: where the heat map is wider than the page, it shows so until its end is
// reached.
func TestHeatGoesOn(t *testing.T) {
	d := withCauses(t, false)
	b := browse(t)
	b.size(700, 900)
	b.show(d, "")
	b.drawAll()
	const shown = `getComputedStyle(document.querySelector(".sideways")).visibility === "visible" && getComputedStyle(document.querySelector(".heatscroll")).maskImage !== "none"`
	b.do(`document.querySelector(".heatscroll").style.width = "20rem"`)
	b.wait("a heat map that is cut shows that it goes on", shown)
	b.do(`(() => { const s = document.querySelector(".heatscroll"); s.scrollLeft = s.scrollWidth; })()`)
	b.wait("at its end it goes on no more", "!("+shown+")")
	b.do(`(() => { const s = document.querySelector(".heatscroll"); s.scrollLeft = 0; s.style.width = "fit-content"; s.style.maxWidth = "none"; })()`)
	b.wait("one that has room does not go on", "!("+shown+")")
}

// TestBaselineLeavesRoom: the baseline's column holds values without intervals, and is no
// wider than they need, so that six treatments fit a window of 1400 px.
func TestBaselineLeavesRoom(t *testing.T) {
	b := browse(t)
	b.size(1400, 900)
	b.show(small(t), "")
	width := func(kind string) float64 {
		return eval[float64](b, `document.querySelector("#summary td.heat.k-`+kind+`").getBoundingClientRect().width`)
	}
	if base, ratio := width("baseline"), width("worse"); base > 0.75*ratio {
		t.Errorf("the baseline's column has %.0f px, that of a ratio %.0f", base, ratio)
	}
	if over := eval[float64](b, `(() => { const s = document.querySelector("#summary .heatscroll"); return s.scrollWidth - s.clientWidth; })()`); over > 1 {
		t.Errorf("the table is %.0f px wider than its place", over)
	}
}
