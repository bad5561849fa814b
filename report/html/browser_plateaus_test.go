package html_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tare/analyse"
	"tare/record"
)

// withSteps gives each workload of a study two treatments whose loads grow in six steps: one adds page cache, the other
// releases some, and its pods come late in the end.
func withSteps(r *analyse.Result) {
	for _, c := range r.Compared {
		sandbox, _ := c.Cell.Get("sandbox")
		if sandbox != "runc" && sandbox != "runsc" || slices.ContainsFunc(r.LoadSteps, func(x analyse.LoadStep) bool { return x.Cell.Key() == c.Cell.Key() }) {
			continue
		}
		for step := 1; step <= 6; step++ {
			cache := float64(step) * 162 * (1 << 20)
			if sandbox == "runsc" {
				cache = float64(3-step) * 20 * (1 << 20)
			}
			r.LoadSteps = append(r.LoadSteps, analyse.LoadStep{Cell: c.Cell, Step: step, Trials: 3, Values: []analyse.LoadValue{
				{Name: "objects", Unit: record.Count, Median: float64(40 * step)},
				{Name: "node_page_cache", Unit: record.Byte, Median: cache},
				{Name: "pod_start_p99", Unit: record.Second, Median: 2.5 * float64(step), AtLeast: sandbox == "runsc" && step == 6}}})
		}
	}
}

// withLate has pods come late in three comparisons: in the treatment, in the baseline, and in both.
func withLate(r *analyse.Result) {
	withSteps(r)
	for i := range r.Compared {
		c := &r.Compared[i]
		if sandbox, _ := c.Cell.Get("sandbox"); c.Response.Name == "latency" {
			c.Level.AtLeast = sandbox == "runsc"
			c.Base.AtLeast = sandbox == "crun" && c.Workload == "w0" || sandbox == "runsc" && c.Workload == "w1"
		}
	}
}

// TestPlateaus: a load that grows has a chart of each figure that was read, with a line of six bumps for each treatment. Values of
// both signs are in it, and a lower bound says that it is one. A cost says which of its sides are lower bounds.
func TestPlateaus(t *testing.T) {
	b := browse(t)
	b.show(shape{workloads: 2, sizes: 1, plain: true, also: withLate}.document(t), "")
	for _, costs := range []string{"td.heat .r", "table.figures td[data-col=cost]"} {
		signs := eval[[]string](b, `[...document.querySelectorAll("`+costs+`")].map((e) => e.textContent.match(/^[<>≷] (?=[0-9])/)).filter(Boolean).map((m) => m[0].trim()).sort()`)
		if want := []string{"<", ">", "≷"}; !slices.Equal(signs, want) {
			t.Errorf("%s: lower bounds have the signs %q, want %q", costs, signs, want)
		}
	}
	b.drawAll()
	const charts = `[...document.querySelectorAll("#steps [data-chart^=plateaus]")]`
	labels := eval[[]string](b, charts+`.map((e) => e.getAttribute("aria-label"))`)
	want := []string{
		"node_page_cache at 40, 80, 120, 160, 200, 240 objects: runc 162 MiB, 324 MiB, 486 MiB, 648 MiB, 810 MiB, 972 MiB; runsc 40.0 MiB, 20.0 MiB, 0 B, -20.0 MiB, -40.0 MiB, -60.0 MiB",
		"pod_start_p99 at 40, 80, 120, 160, 200, 240 objects: runc 2.50 s, 5.00 s, 7.50 s, 10.0 s, 12.5 s, 15.0 s; runsc 2.50 s, 5.00 s, 7.50 s, 10.0 s, 12.5 s, > 15.0 s",
	}
	if !slices.Equal(labels, want) {
		t.Fatalf("the charts say %q, want %q", labels, want)
	}
	drawn := eval[string](b, fmt.Sprintf(`(() => { const [o, late] = %s.map((e) => echarts.getInstanceByDom(e.querySelector(".chart-canvas")).getOption());
		return [o.series.filter((s) => s.data.length === 6).map((s) => s.name).join(), o.yAxis[0].min < -60 * 2 ** 20, o.yAxis[0].max > 972 * 2 ** 20, o.yAxis[0].axisLabel.customValues.map((v) => v / 2 ** 20).join(),
			late.series[1].data.map((p) => p.itemStyle.borderWidth || 0).join()].join(" "); })()`, charts))
	if want := "runc,runsc true true 0,256,512,768,1024 0,0,0,0,0,1.5"; drawn != want {
		t.Errorf("drawn is %q, want %q", drawn, want)
	}
	// The second workload is folded.
	b.do(`document.querySelector('#steps details[data-fold^="plateaus-"]').open = true`)
	b.wait("its charts", charts+`.length === 4`)
	if s := eval[string](b, `document.querySelector("#steps .keys").innerText`); !strings.Contains(s, "runc") || strings.Contains(s, "crun") {
		t.Errorf("the legend is %q", s)
	}
	if out := eval[[]string](b, cut); len(out) > 0 {
		t.Errorf("these stand out: %q", out)
	}
	b.show(shape{workloads: 1, sizes: 1, plain: true, also: func(r *analyse.Result) {
		withSteps(r)
		r.LoadSteps = slices.DeleteFunc(r.LoadSteps, func(x analyse.LoadStep) bool { return x.Step > 1 })
	}}.document(t), "")
	if n := eval[int](b, charts+`.length`); n > 0 || eval[int](b, `document.querySelectorAll("#steps table").length`) == 0 {
		t.Errorf("%d charts of a load with one step, which does not grow, or no table of it", n)
	}
	b.show(small(t), "")
	if n := eval[int](b, charts+`.length`); n > 0 {
		t.Errorf("%d charts of plateaus without a load that grows", n)
	}
	if !eval[bool](b, `document.getElementById("steps")?.hidden ?? true`) {
		t.Error("a study without a load that grows shows an empty part for it")
	}
	b.quiet("file://")
}
