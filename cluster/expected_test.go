package cluster

import (
	"testing"
	"time"

	"tare/catalogue"
	"tare/record"
	"tare/site"
	"tare/study"
	"tare/workload"
	workloadall "tare/workload/all"
)

// TestExpected: what the lab's trials took (docs/cluster.md), within half as much again: a pod, two pods at the ends of a network, and four
// launches.
func TestExpected(t *testing.T) {
	s := aSite()
	s.Workloads = map[string]workload.Workload{}
	for _, w := range workloadall.Workloads() {
		s.Workloads[w.Name()] = w
	}
	cat := catalogue.Of(workloadall.Workloads(), s.Kinds(), nil)
	text := `study: s
factors: {sandbox: [process, runc]}
workloads:
  getpid: {kind: syscall, call: getpid, duration: 100ms, warmup: 50ms}
  rr: {kind: net, mode: rr, size: 1B, duration: 200ms, warmup: 100ms}
  stream: {kind: net, mode: stream, size: 64KiB, duration: 1s, warmup: 100ms, turns: 2}
  startup: {kind: startup, repeats: 2, responses: [total]}
`
	st, err := study.Parse("s.yaml", []byte(text), cat, nil)
	if err != nil {
		t.Fatal(err)
	}
	takes, err := s.Expected(site.Request{Study: st, Catalogue: cat})
	if err != nil {
		t.Fatal(err)
	}
	for load, took := range map[string]time.Duration{"getpid": 3300 * time.Millisecond, "rr": 4400 * time.Millisecond, "stream": 5600 * time.Millisecond, "startup": 11 * time.Second} {
		for _, box := range []string{"process", "runc"} {
			got := takes(record.Cell{{Factor: "workload", Value: load}, {Factor: "sandbox", Value: box}})
			if got < took*9/10 || got > took*3/2 {
				t.Errorf("%s in %s: %v, and it took %v", load, box, got, took)
			}
		}
	}
}
