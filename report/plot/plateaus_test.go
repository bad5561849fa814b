package plot

import (
	"slices"
	"strings"
	"testing"

	"tare/analyse"
	"tare/record"
)

// TestPlateaus: a stratum of a load in steps has a graph of each figure that was read, with a line for each treatment, and no graph of others.
func TestPlateaus(t *testing.T) {
	src := ioThreads()
	for _, workload := range []string{"few", "pods"} {
		for i, sandbox := range []string{"vm", "pod"} {
			for step := range 3 {
				values := []analyse.LoadValue{{Name: "objects", Unit: record.Count, Median: float64(10 * (step + 1))}, {Name: "pod_start_p50", Unit: record.Second, Median: 2}}
				if workload == "pods" {
					values = append(values, analyse.LoadValue{Name: "node_page_cache", Unit: record.Byte, Median: float64(i*step) * 1e6})
				}
				src.Result.LoadSteps = append(src.Result.LoadSteps, analyse.LoadStep{Step: step + 1, Trials: 3 - i, Values: values,
					Cell: record.Cell{{Factor: "workload", Value: workload}, {Factor: "sandbox", Value: sandbox}}})
			}
		}
	}
	var got []*Figure
	figs := build(t, src, Options{})
	for i := range figs {
		if figs[i].Plateaus {
			got = append(got, &figs[i])
		}
	}
	if len(got) != 2 || len(got[0].Panels) != 1 || len(got[1].Panels) != 2 {
		t.Fatalf("%+v", got)
	}
	f := got[1]
	if cache := &f.Panels[0]; f.Name != "plateaus-pods" || cache.Title != "node_page_cache" || strings.Join(cache.X.Levels, " ") != "10 20 30" || strings.Join(cache.Colour.Levels, " ") != "pod vm" || len(cache.Marks) != 6 {
		t.Errorf("%s: %+v", f.Name, f.Panels[0])
	}
	if want := "medians of 2 to 3 trials"; !strings.HasPrefix(strings.ToLower(f.Caption), want) {
		t.Errorf("the caption lacks %q: %s", want, f.Caption)
	}
	if want := "30, pod: 1.91 MiB"; !strings.Contains(f.Alt, want) {
		t.Errorf("the words for those who do not see it lack %q: %s", want, f.Alt)
	}
	d := recordFigure(t, f, light())
	if len(d.sheet.rows) != 2 {
		t.Errorf("%d kinds of marks", len(d.sheet.rows))
	}
	if figs := build(t, src, Options{Responses: []string{"throughput"}}); figs[len(figs)-1].Plateaus {
		t.Error("plateaus are drawn, although another response is asked for")
	}
}

// TestPlateausOfClaims: a load on claims has a graph of each stage from bound to the volume's end, and of both rates.
func TestPlateausOfClaims(t *testing.T) {
	want := []string{"bound_p95", "attached_p95", "mounted_p95", "written_p95", "claim_gone_p95", "detached_p95", "volume_gone_p95", "rate", "removal_rate"}
	values := []analyse.LoadValue{{Name: "objects", Unit: record.Count, Median: 10}}
	for _, name := range want {
		values = append(values, analyse.LoadValue{Name: name, Unit: record.Second, Median: 1})
	}
	src := ioThreads()
	src.Result.LoadSteps = []analyse.LoadStep{{Step: 1, Trials: 3, Values: values, Cell: record.Cell{{Factor: "workload", Value: "volumes"}, {Factor: "sandbox", Value: "pod"}}}}
	figs := build(t, src, Options{})
	var got []string
	for i := range figs[len(figs)-1].Panels {
		got = append(got, figs[len(figs)-1].Panels[i].Title)
	}
	if !slices.Equal(got, want) {
		t.Errorf("graphs of %q, want %q", got, want)
	}
}
