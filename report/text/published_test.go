package text

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tare/analyse/published"
	"tare/analyse/stat"
	"tare/record"
	"tare/report/section"
)

// publishedTable has a row of every agreement.
func publishedTable() *published.Table {
	t := &published.Table{Name: "gvisor-guide", Title: "the guide", Source: "https://example.org/", Date: "about 2019", Ratio: "runsc/runc",
		Factor: 1.25, Widest: 0.5, Margin: 0.03, Notes: []string{"Everything is other there."}, Summary: "1 of 4 agree.", Agree: 1, Same: 1, Disagree: 1, Unsure: 1, Missing: 2}
	estimate := func(ratio float64) stat.Estimate {
		return stat.Estimate{N: 3, Ratio: ratio, Lo: ratio * 0.95, Hi: ratio * 1.06}
	}
	add := func(bench, name string, runc, runsc float64, a published.Agreement, why string, estimates ...stat.Estimate) {
		r := published.Row{Figure: published.Figure{Benchmark: bench, Case: name, Unit: "1/s", Better: record.Higher, Base: runc, Other: runsc, Ratio: runsc / runc, Platform: "ptrace"},
			Agreement: a, Why: why, Expected: []string{"the reason of " + bench}}
		for i, e := range estimates {
			level := []string{"runsc-systrap", "runsc-ptrace"}[i]
			r.Stratum, r.Workload = "workload="+bench, bench
			r.Measured = append(r.Measured, published.Measured{Level: level, Name: level, Estimate: e, Compared: i == 1, Agreement: a})
		}
		t.Rows = append(t.Rows, r)
	}
	add("sysbench.cpu", "events", 100, 99, published.Agrees, "within", estimate(1.01), estimate(0.99))
	add("fio.tmpfs", "randwrite", 1046, 67, published.SameDirection, "both lower", estimate(0.4), estimate(0.2))
	add("http.httpd", "25 connections", 4964, 961, published.Disagrees, "no", estimate(1.3), estimate(1.2))
	add("redis", "LRANGE_100", 24225, 13365, published.Undecided, "wide", estimate(0.9), stat.Estimate{N: 3, Ratio: 1.1, Lo: 0.5, Hi: 3})
	add("redis", "GET", 2, 1, published.NotMeasured, "need n ≥ 3 blocks, there are 2", stat.Estimate{N: 2, Ratio: 0.5}, stat.Estimate{N: 2, Undefined: "a value is zero"})
	add("startup", "ruby", 2530, 2456, published.NotMeasured, "the study does not measure it")
	return t
}

func TestPublished(t *testing.T) {
	for _, width := range []int{40, 80, 120} {
		res := testResult()
		res.Published = publishedTable()
		var b bytes.Buffer
		if err := Write(&b, res, nil, Options{Width: width}); err != nil {
			t.Fatal(err)
		}
		fits(t, b.String(), width)
		_, part, ok := strings.Cut(b.String(), "\nbeside ")
		if !ok {
			t.Fatal("the section is missing")
		}
		part, _, _ = strings.Cut(part, "\nwhy measuring stopped")
		golden(t, fmt.Sprintf("published-%d", width), []byte("beside "+part))
	}
}

// Nothing is shown of a study that asks for nothing, and no table where nothing
// is measured yet.
func TestPublishedNothing(t *testing.T) {
	var b strings.Builder
	write(&b, section.Published(testResult()), Options{})
	if b.Len() > 0 {
		t.Errorf("%q", b.String())
	}
	res := testResult()
	res.Published = &published.Table{Title: "the guide", Summary: "None is measured yet."}
	write(&b, section.Published(res), Options{})
	if s := b.String(); !strings.Contains(s, "None is measured yet.") || strings.Contains(s, "benchmark") {
		t.Errorf("%q", s)
	}
}
