package html_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/record"
	"tare/report/document"
	"tare/report/words"
)

// vmSeries is what a trial in a virtual machine has: roles of the host's threads,
// a quota that is nearly used up, and the guest's processors. cores is how many.
func vmSeries(cores int, quota float64) document.ReadSeries {
	return func(tr *record.Trial, use func([]record.Series)) error {
		const n = 41
		var out []record.Series
		at := func(name string, unit record.Unit, kind record.SampleType, v func(i int) float64, labels ...string) {
			x := record.Series{Name: name, Labels: record.MakeLabels(labels...), Unit: unit, Kind: kind}
			for i := range n {
				x.T, x.V = append(x.T, time.Duration(i)*50*time.Millisecond), append(x.V, v(i))
			}
			out = append(out, x)
		}
		for k, role := range []string{"vcpu", "vhost", "virtiofsd", "vmm", string(record.RoleUnattributed)} {
			at(record.CPUTime, record.Second, record.Counter, func(i int) float64 {
				t := float64(i) * 0.05
				return t*[]float64{0.7, 0.28, 0.02, 0.12, 0.01}[k] + 0.001*float64(1+k)*(1-math.Cos(3*t))
			}, "end", "server", "role", role)
		}
		at(record.CPUTime, record.Second, record.Counter, func(i int) float64 { return float64(i) * 0.05 * 0.4 }, "end", "client", "role", "workload")
		at(record.CPUTime, record.Second, record.Counter, func(i int) float64 { return float64(i) * 0.05 * 0.03 }, "role", "harness")
		at(record.CPUQuota, record.Cores, record.Gauge, func(int) float64 { return quota }, "end", "server")
		at("cgroup_periods", record.Count, record.Counter, func(i int) float64 { return float64(i) }, "end", "server")
		at("cgroup_throttled_periods", record.Count, record.Counter, func(i int) float64 { return math.Floor(float64(i) * 0.75) }, "end", "server")
		for c := range cores {
			for k, mode := range []string{"user", "system", "softirq", "steal", "idle"} {
				share := []float64{0.05, 0.15, 0.25 / float64(1+c), 0.04, 0}[k]
				if mode == "idle" {
					share = 1 - 0.05 - 0.15 - 0.25/float64(1+c) - 0.04
				}
				at(record.GuestCPU, record.Second, record.Counter, func(i int) float64 { return float64(i) * 0.05 * share }, "end", "server", "cpu", strconv.Itoa(c), "mode", mode)
			}
		}
		at(record.GuestRunnable, record.Count, record.Gauge, func(i int) float64 { return float64(1 + i%3) }, "end", "server")
		at(record.GuestMemory, record.Byte, record.Gauge, func(i int) float64 { return 1.5e9 - 1e6*float64(i) }, "end", "server")
		use(out)
		return nil
	}
}

// TestCPUByRoleAndQuota: each end has its own picture with the sum of its roles, and
// the quota where it has one; figures are those of the document.
func TestCPUByRoleAndQuota(t *testing.T) {
	d := shape{workloads: 1, sizes: 1, window: true, series: vmSeries(2, 1.25)}.document(t)
	b := browse(t)
	b.show(d, "")
	b.drawAll()
	if ends := eval[[]string](b, `[...document.querySelectorAll("#series figure[data-end]:not(.cores)")].map((f) => f.dataset.end)`); strings.Join(ends, ",") != "server,client," {
		t.Fatalf("pictures of %q", ends)
	}
	b.do(`for (const x of document.querySelectorAll("#series details")) x.open = true`)
	rows := eval[map[string][]string](b, `Object.fromEntries([...document.querySelectorAll('#series figure[data-end="server"]:not(.cores) tbody tr')].map((tr) => [tr.cells[0].textContent, [1, 2, 3].map((i) => tr.cells[i].dataset.value)]))`)
	if len(rows) != 7 {
		t.Fatalf("rows %v, want five roles, the sum and the quota", rows)
	}
	mean := func(name string) float64 {
		v, err := strconv.ParseFloat(rows[name][0], 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return v
	}
	sum := 0.0
	for _, role := range []string{"server vcpu", "server vhost", "server virtiofsd", "server vmm", "server unattributed"} {
		sum += mean(role)
	}
	if math.Abs(sum-mean("sum")) > 1e-9*sum || mean("quota") != 1.25 {
		t.Errorf("the sum is %v, its parts add up to %v, the quota is %v", mean("sum"), sum, mean("quota"))
	}
	series := d.Series[0]
	if id := eval[string](b, `document.getElementById("series-trial").value`); id != "" {
		for _, s := range d.Series {
			if fmt.Sprintf("%d-%d", d.Trials.Seq[s.Trial], d.Trials.Attempt[s.Trial]) == id {
				series = s
			}
		}
	}
	if len(series.Window) != 2 || series.Window[0] != 0.4 || series.Window[1] != 1.8 {
		t.Fatalf("the window is %v", series.Window)
	}
	said := eval[string](b, `document.querySelector('#series figure[data-end="server"] .quota').textContent`)
	used, err := strconv.ParseFloat(rows["sum"][2], 64)
	if err != nil {
		t.Fatal(err)
	}
	if want := words.Value(used, record.Cores) + " of 1.25 cores allowed while measured; throttled in 7"; !strings.HasPrefix(said, want) {
		t.Errorf("it says %q, want %q", said, want)
	}
	for _, want := range []string{"a mean over time", "own agent is left out"} { // where it differs from the table of quotas, and where not
		if !strings.Contains(said, want) {
			t.Errorf("it says %q, and not %q", said, want)
		}
	}
	// What is drawn: areas, their sum, the quota from side to side, grey outside of the window.
	drawn := eval[map[string]any](b, `(() => { const o = echarts.getInstanceByDom(document.querySelector('#series figure[data-end="server"] [data-chart="series cpu"] .chart-canvas')).getOption();
		const q = o.series.find((s) => s.name === "quota"), last = o.series[o.series.length - 1];
		return {names: o.series.map((s) => s.name || "").join(), from: q.data[0][0], to: q.data.at(-1)[0], high: q.data[0][1], grey: last.markArea.data.map((a) => a.map((e) => e.xAxis)).join(";"),
			fits: o.yAxis[0].max > 1.25}; })()`)
	if drawn["names"] != "vcpu,vhost,virtiofsd,vmm,unattributed,sum,quota," || drawn["from"] != 0.0 || drawn["to"] != 2.0 || drawn["high"] != 1.25 || drawn["grey"] != "0,0.4;1.8,2" || drawn["fits"] != true {
		t.Errorf("drawn is %v", drawn)
	}
	if n := eval[int](b, `document.querySelectorAll('#series [data-chart="series throttled"]').length`); n != 1 {
		t.Errorf("%d pictures of throttling", n)
	}
	b.quiet("file://")
}

// TestGuestProcessors: a lane each, with what the document says.
func TestGuestProcessors(t *testing.T) {
	for _, n := range []int{2, 80} {
		d := shape{workloads: 1, sizes: 1, window: true, series: vmSeries(n, 1.25)}.document(t)
		b := browse(t)
		b.show(d, "")
		b.drawAll()
		b.do(`for (const x of document.querySelectorAll("#series details")) x.open = true`)
		got := eval[[][]string](b, `[...document.querySelectorAll("#series figure.cores tbody tr")].map((tr) => [...tr.cells].map((c) => c.textContent))`)
		if len(got) != n {
			t.Fatalf("%d processors, want %d", len(got), n)
		}
		for c, row := range got[:2] {
			soft := 0.25 / float64(1+c)
			want := []string{strconv.Itoa(c), words.Value(0.2+soft, record.Fraction), words.Value(soft, record.Fraction), "4 %"}
			want[1], want[2] = strconv.FormatFloat(math.Round(1000*(0.2+soft))/10, 'g', 3, 64)+" %", strconv.FormatFloat(math.Round(1000*soft)/10, 'g', 3, 64)+" %"
			for i := range want {
				if row[i] != want[i] {
					t.Errorf("processor %d: %q, want %q", c, row, want)
					break
				}
			}
		}
		if k := eval[int](b, `echarts.getInstanceByDom(document.querySelector('[data-chart="series cores"] .chart-canvas')).getOption().series[1].data.length`); k != 3*n {
			t.Errorf("%d areas for %d processors", k, n)
		}
		if out := eval[[]string](b, cut); len(out) > 0 {
			t.Errorf("these stand out: %q", out)
		}
		b.quiet("file://")
	}
}

// A quota far above what is used is told and not drawn: all else would be flat.
func TestFarQuota(t *testing.T) {
	d := shape{workloads: 1, sizes: 1, series: vmSeries(1, 80.25)}.document(t)
	b := browse(t)
	b.show(d, "")
	b.drawAll()
	said := eval[string](b, `document.querySelector('#series figure[data-end="server"] .quota').textContent`)
	if !strings.Contains(said, "of 80.2 cores allowed over the trial (the quota is beyond the picture)") {
		t.Errorf("it says %q", said)
	}
	if eval[bool](b, `echarts.getInstanceByDom(document.querySelector('#series figure[data-end="server"] [data-chart="series cpu"] .chart-canvas')).getOption().series.some((s) => s.name === "quota")`) {
		t.Error("it is drawn")
	}
	b.quiet("file://")
}
