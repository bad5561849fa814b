package trial

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/study"
	"tare/workload"
)

// followed is a series of a role that began at 3 s and warms up for 1 s: points each
// 100 ms, as shape says by the seconds since the end of the warm-up.
func followed(response string, seconds float64, shape func(x float64) float64) record.Series {
	r := rand.New(rand.NewPCG(1, 2))
	s := record.Series{Name: response, Labels: record.MakeLabels("end", "client", record.LabelResponse, response), Unit: record.PerSecond}
	for i := range int(10 * (1 + seconds)) {
		t := 0.1 * float64(i+1)
		s.T = append(s.T, 3*time.Second+time.Duration(i+1)*100*time.Millisecond)
		s.V = append(s.V, 1000*shape(t-1)*(1+0.005*r.NormFloat64()))
	}
	return s
}

func TestSteadySamplesAndWarnings(t *testing.T) {
	after := func(at, before float64) func(float64) float64 {
		return func(x float64) float64 {
			if x <= at+1e-6 {
				return before
			}
			return 1
		}
	}
	level := func(float64) float64 { return 1 }
	for _, c := range []struct {
		name    string
		params  param.Values
		warmup  param.Type
		series  []record.Series
		want    map[string]float64 // of the response rate; -1: any value
		code    string
		warning string
	}{
		{name: "no series", series: []record.Series{{Name: "cpu", T: []time.Duration{1}, V: []float64{1}}}, want: map[string]float64{}},
		{name: "level", series: []record.Series{followed("rate", 5, level)},
			want: map[string]float64{record.SteadyFrom: 0, record.SteadyChange: 1, record.EffectiveSamples: -1, record.SteadyPoints: 50}},
		{name: "the warm-up is no part of it", series: []record.Series{followed("rate", 5, after(0, 0.2))},
			want: map[string]float64{record.SteadyFrom: 0, record.SteadyChange: 1, record.EffectiveSamples: -1, record.SteadyPoints: 50}},
		{name: "too short", series: []record.Series{followed("rate", 1, level)}, want: map[string]float64{record.SteadyPoints: 10}},
		{name: "warm-up measured", params: param.Values{"warmup": "1s"}, warmup: param.Duration, series: []record.Series{followed("rate", 5, after(1, 0.5))},
			want: map[string]float64{record.SteadyFrom: 1, record.SteadyChange: 1 / 0.9, record.EffectiveSamples: -1, record.SteadyPoints: 50},
			code: record.WarmUpMeasured, warning: "rate is steady only from 1.0 s of the measured time on, 11.1 % higher there than over all of it; set warmup: 2s"},
		{name: "warm-up measured in runs", params: param.Values{"warmup": "1"}, warmup: param.Int, series: []record.Series{followed("rate", 5, after(1, 0.5))},
			want: map[string]float64{record.SteadyFrom: 1, record.SteadyChange: 1 / 0.9, record.EffectiveSamples: -1, record.SteadyPoints: 50},
			code: record.WarmUpMeasured, warning: "rate is steady only from run 11 on, 11.1 % higher there than over all of it; set warmup: 11"},
		{name: "warm-up measured, none can be set", series: []record.Series{followed("rate", 5, after(1, 0.5))},
			want: map[string]float64{record.SteadyFrom: 1, record.SteadyChange: 1 / 0.9, record.EffectiveSamples: -1, record.SteadyPoints: 50},
			code: record.WarmUpMeasured, warning: "measure for longer"},
		{name: "falls", series: []record.Series{followed("rate", 5, func(x float64) float64 { return 1.1 - 0.04*x })},
			want: map[string]float64{record.EffectiveSamples: -1, record.SteadyPoints: 50}, code: record.NoSteadyState, warning: "rate still falls by 4."},
		{name: "not compared", series: []record.Series{followed("other", 5, func(x float64) float64 { return 1.1 - 0.04*x })}, want: map[string]float64{}},
		{name: "two that fall", series: []record.Series{followed("second", 5, func(x float64) float64 { return 1.1 - 0.04*x }), followed("rate", 5, func(x float64) float64 { return 1.1 - 0.04*x })},
			want: map[string]float64{record.EffectiveSamples: -1, record.SteadyPoints: 50}, code: record.NoSteadyState, warning: "rate still falls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := &trial{rec: &record.Trial{}, set: set{
				maker: &Maker{Study: &study.Study{Stop: study.Stop{Margin: 0.03}}},
				parts: parts{part: part{
					roles: []workload.Role{{Name: "client", Warmup: time.Second}},
					load:  &load{warmup: c.warmup},
					res:   study.Resolved{Params: c.params, Workload: study.Workload{Responses: []string{"rate", "second"}}},
				}},
			}}
			tr.steady(&output{role: "client", began: 3 * time.Second}, c.series)
			got := map[string]float64{}
			for _, s := range tr.rec.Samples {
				if s.Labels.Get(record.LabelResponse) == "rate" {
					got[s.Name] = s.Value
				}
				if _, plain := tr.rec.Sample(s.Name); plain {
					t.Errorf("%s has no label: it could be taken for a response", s.Name)
				}
			}
			for name, want := range c.want {
				if x, ok := got[name]; !ok || want >= 0 && (x < want-0.011 || x > want+0.011) {
					t.Errorf("%s is %g (there: %t), want %g", name, x, ok, want)
				}
				delete(got, name)
			}
			if len(got) > 0 {
				t.Errorf("too many: %v", got)
			}
			codes := []string{}
			for _, w := range tr.rec.Warnings {
				codes = append(codes, w.Code)
				if !strings.Contains(w.Text, c.warning) {
					t.Errorf("warning %q, want %q", w.Text, c.warning)
				}
			}
			if c.code != "" && !slices.Equal(codes, []string{c.code}) || c.code == "" && len(codes) > 0 {
				t.Errorf("warnings %v, want %q", tr.rec.Warnings, c.code)
			}
		})
	}
}

// An interval that began in the warm-up is left out, unless by a hair.
func TestMeasuredTakesWholeIntervals(t *testing.T) {
	ms := func(x ...int) (out []time.Duration) {
		for _, i := range x {
			out = append(out, time.Duration(i)*time.Millisecond)
		}
		return out
	}
	s := &record.Series{T: ms(100, 200, 295, 400, 500), V: []float64{1, 2, 3, 4, 5}}
	for _, c := range []struct {
		from int
		want []float64
	}{{0, []float64{1, 2, 3, 4, 5}}, {100, []float64{2, 3, 4, 5}}, {150, []float64{3, 4, 5}}, {300, []float64{4, 5}}, {310, []float64{5}}, {500, nil}} {
		at, v := measured(s, time.Duration(c.from)*time.Millisecond)
		if !slices.Equal(v, c.want) || len(at) != len(v) || len(at) > 0 && at[len(at)-1] != time.Duration(500-c.from)*time.Millisecond {
			t.Errorf("from %d ms: %v at %v, want %v", c.from, v, at, c.want)
		}
	}
}
