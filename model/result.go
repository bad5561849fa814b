package model

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"tare/internal/window"
	"tare/record"
)

// totals are the counters at one moment, ns.
type totals struct{ cpu, others float64 }

func (s *sim) totals() totals {
	s.rec.settle(s)
	return totals{cpu: s.used, others: s.rec.others}
}

// result makes the responses, with the names of the workload net.
func (s *sim) result() *Result {
	s.settle()
	end := s.totals()
	length := float64(s.end - s.begin)
	area := s.area
	for _, c := range s.conns { // requests in flight
		if c.out {
			area += float64(max(0, s.end-max(c.start, s.begin)))
		}
	}
	res := &Result{Facts: map[string]string{isolated + "." + record.FactAccelerator: Accelerator},
		Measured: window.Span{From: time.Duration(s.begin), To: time.Duration(s.end)}}
	res.Totals = Totals{Window: length * 1e-9, Operations: s.done, Bytes: s.doneBytes, InFlight: area / length,
		CPU: (end.cpu - s.base.cpu) * 1e-9, Host: (end.cpu - s.base.cpu + end.others - s.base.others) * 1e-9, Events: s.nevents}
	if s.done > 0 {
		res.Totals.Latency = s.latency / s.done * 1e-9
	}
	rd := &res.Reading
	if s.Load.Mode == Stream {
		rd.Value("throughput", record.BytesPerSecond, s.doneBytes/(length*1e-9))
	} else {
		s.latencies(rd)
		rd.Value("latency_mean", record.Second, res.Totals.Latency)
		rd.Value("rate", record.PerSecond, s.done/(length*1e-9))
		if s.Load.Rate > 0 && s.done < 0.95*s.Load.Rate*length*1e-9 {
			rd.Warn("net-overload", "of %g requests a second that were due, %.4g were answered", s.Load.Rate, s.done/(length*1e-9))
		}
	}
	for _, e := range []string{client, isolated} {
		rd.Value("window", record.Second, length*1e-9, record.LabelEndpoint, e)
		rd.Value("bytes", record.Byte, s.doneBytes, record.LabelEndpoint, e)
		rd.Value("operations", record.Count, s.done, record.LabelEndpoint, e)
		rd.Value("throughput", record.BytesPerSecond, s.doneBytes/(length*1e-9), record.LabelEndpoint, e)
	}
	rd.Series = s.rec.series()
	return res
}

func (s *sim) latencies(rd *record.Reading) {
	h := s.histogram
	for _, p := range []struct {
		name string
		at   float64
	}{{"latency_p50", 50}, {"latency_p99", 99}, {"latency_p999", 99.9}} {
		rd.Value(p.name, record.Second, float64(h.ValueAtPercentile(p.at))*1e-9)
	}
	if b, err := h.Encode(hdr.V2CompressedEncodingCookieBase); err == nil {
		rd.Histograms = append(rd.Histograms, record.Histogram{Name: "latency", Unit: record.Second, Scale: 1e-9, Encoded: b})
	}
}
