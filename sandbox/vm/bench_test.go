package vm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tare/collect"
	"tare/collect/guest"
	"tare/host/state/statetest"
	"tare/record"
	"tare/sandbox"
	"tare/sandbox/process"
	"tare/sandbox/sandboxtest"
)

// several starts sandboxes for a benchmark, which stop with it.
func several(b *testing.B, k sandbox.Kind, n int, options map[string]string) []sandbox.Instance {
	b.Helper()
	statetest.HostLock(b)
	if err := k.Check(b.Context()); err != nil {
		b.Skip(err)
	}
	root := sandboxtest.Root(b)
	var out []sandbox.Instance
	for i := range n {
		dir := filepath.Join(b.TempDir(), "own")
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		inst, err := k.Start(b.Context(), sandbox.Spec{Want: sandbox.Want{Name: fmt.Sprintf("bench-%s-%d-%d", k.Name(), os.Getpid(), i), Options: options}, Dir: dir, Root: root})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := inst.Stop(ctx); err != nil {
				b.Error(err)
			}
		})
		out = append(out, inst)
	}
	return out
}

// BenchmarkGate is how far apart commands in two sandboxes begin that are let go at
// one gate: half of the starts are within skew-p50. clock-us is how well the clock
// of a sandbox is known.
func BenchmarkGate(b *testing.B) {
	for _, c := range []struct {
		kind    sandbox.Kind
		options map[string]string
	}{{process.New("/run/tare/test-vm"), nil}, {kind(b), map[string]string{paramMemory: "256"}}} {
		b.Run(c.kind.Name(), func(b *testing.B) {
			two := several(b, c.kind, 2, c.options)
			var skews []time.Duration
			for b.Loop() {
				got := sandboxtest.Through(b.Context(), two, []string{"/tare-hello"}, []string{"/tare-hello"})
				for _, p := range got {
					if p.Err != nil || p.Exit.Code != 0 {
						b.Fatalf("%+v", p)
					}
				}
				skews = append(skews, got[0].Exit.Start.Sub(got[1].Exit.Start).Abs())
			}
			slices.Sort(skews)
			b.ReportMetric(skews[len(skews)/2].Seconds()*1e6, "skew-p50-us")
			b.ReportMetric(skews[len(skews)*9/10].Seconds()*1e6, "skew-p90-us")
			b.ReportMetric(skews[len(skews)-1].Seconds()*1e6, "skew-max-us")
			if g := two[0].Scope().Guest; g != nil {
				clock, err := g.Clock(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(clock.Uncertainty.Seconds()*1e6, "clock-us")
			}
		})
	}
}

// BenchmarkGuestReading reads a guest at 10 Hz, as a trial does: what that costs in
// the guest (the agent) and on the host (the collector), of one core.
func BenchmarkGuestReading(b *testing.B) {
	inst := several(b, kind(b), 1, map[string]string{paramMemory: "256"})[0]
	scope := inst.Scope()
	scope.Endpoint = "main"
	p, err := guest.New().Open(b.Context(), []sandbox.LocalScope{scope})
	if err != nil {
		b.Fatal(err)
	}
	costs := map[string][]float64{}
	times := map[string][]time.Time{}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var dst []record.Sample
	for b.Loop() {
		<-tick.C
		if dst, err = p.Read(dst[:0]); err != nil {
			b.Fatal(err)
		}
		for i, s := range dst {
			if s.Name == record.AgentCPU || s.Name == record.CollectorCPU {
				costs[s.Name] = append(costs[s.Name], s.Value)
				times[s.Name] = append(times[s.Name], p.(collect.Stamped).Times()[i])
			}
		}
	}
	for name, unit := range map[string]string{record.AgentCPU: "agent-%", record.CollectorCPU: "collector-%"} {
		v, at := costs[name], times[name]
		if n := len(v) - 1; n > 0 {
			b.ReportMetric(100*(v[n]-v[0])/at[n].Sub(at[0]).Seconds(), unit)
		}
	}
}
