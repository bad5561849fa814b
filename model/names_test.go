package model_test

import (
	"math"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"tare/model"
	"tare/record"
)

// TestNames: what a trial of each path gives, under the names that collectors and
// the workload net use.
func TestNames(t *testing.T) {
	limited, err := model.Default().Sized(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	sentry := model.Default()
	sentry.Isolation = model.Sentry
	always := []string{"rate{end=client,response=rate}", "cgroup_cpu{end=server}", "system_cpu{mode=idle}", "system_calls{call=read,end=server}"}
	for name, c := range map[string]struct {
		config model.Config
		want   []string
	}{
		"vm": {limited, []string{"cpu_time{end=server,role=vcpu}", "cpu_time{end=server,role=vhost}", "cpu_time{end=server,role=vmm}",
			"cpu_time{end=server,role=virtiofsd}", "run_wait{end=server,role=vcpu}", "threads{end=server,role=vhost}",
			"thread_cpu_time{end=server,role=vcpu,thread=CPU 0/KVM,tid=1010}", "guest_cpu{cpu=0,end=server,mode=softirq}",
			"guest_cpu{cpu=2,end=server,mode=idle}", "guest_softirqs{cpu=0,end=server,mode=net_rx}", "guest_runnable{end=server}",
			"cpu_quota{end=server}", "cgroup_periods{end=server}", "cgroup_throttled_periods{end=server}", "cgroup_throttled_time{end=server}"}},
		"sentry": {sentry, []string{"cpu_time{end=server,role=sentry}", "cpu_time{end=server,role=workload}"}},
		"native": {model.Default().Native(0), []string{"cpu_time{end=server,role=workload}"}},
	} {
		r := run(t, c.config)
		has := map[string]bool{}
		for _, s := range r.Reading.Series {
			id := s.Name + "{" + string(s.Labels) + "}"
			if has[id] {
				t.Errorf("%s: %s twice", name, id)
			}
			has[id] = true
		}
		for _, w := range append(c.want, always...) {
			if !has[w] {
				t.Errorf("%s: no series %s", name, w)
			}
		}
		if name != "vm" && (has["guest_runnable{end=server}"] || has["cpu_quota{end=server}"]) {
			t.Errorf("%s: series that it cannot have", name)
		}
		trial := record.Trial{Samples: r.Reading.Samples}
		for _, w := range []string{"rate", "latency_mean", "latency_p50", "latency_p99", "latency_p999"} {
			if v, ok := trial.Sample(w); !ok || v <= 0 {
				t.Errorf("%s: %s is %g", name, w, v)
			}
		}
		h, err := hdr.Decode(r.Reading.Histograms[0].Encoded)
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := trial.Sample("latency_p99"); math.Abs(float64(h.ValueAtPercentile(99))*1e-9-p) > 1e-12 || h.TotalCount() != int64(r.Totals.Operations) {
			t.Errorf("%s: histogram and samples differ", name)
		}
		if r.Facts["server.accelerator"] != "model" {
			t.Errorf("%s: %v", name, r.Facts)
		}
	}
	stream := model.Default()
	stream.Load.Mode = model.Stream
	r := run(t, stream)
	trial := record.Trial{Samples: r.Reading.Samples}
	if v, ok := trial.Sample("throughput"); !ok || v <= 0 || find(r, "throughput", "end=client,response=throughput") == nil {
		t.Errorf("stream: throughput %g", v)
	}
}
