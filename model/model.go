// Package model is a discrete-event model of what a network workload goes through
// in a sandbox: what a study would read of it, without the machines.
//
// The data path: 1. a Config says the load, the sandbox and the host in seconds,
// bytes and cores (Default, Sized for a pod as Kata Containers shapes it, Native
// for its baseline); 2. Run sends messages from a peer over the link to a helper
// thread (vhost, the VMM's main loop, the sentry), to a guest core's soft
// interrupt and a workload thread, and back; 3. whatever runs shares the host's
// cores and the cgroup's CPU quota; 4. ten times a second the counters are read,
// named as the collectors proc, cgroup, guest and system name them, and the
// responses at the end as the workload net does.
//
// Planted bottlenecks are transformations of a Config: Plant puts one in, Relieve
// takes one out, Draw makes a random Config with exactly one. Everything random
// comes from Config.Seed: the same Config gives the same Result, bit by bit.
//
// docs/model.md has the picture, each figure's source, and what is approximated.
package model

import (
	"fmt"

	"tare/internal/window"
	"tare/record"
)

// Result is what one modelled trial gives.
type Result struct {
	// Reading is as the workload's and the collectors': samples, the latency
	// histogram, series. Series times count from the trial's start, warm-up included.
	Reading record.Reading
	// Facts are of a trial: its accelerator is Accelerator.
	Facts map[string]string
	// Measured is the measured time, warm-up excluded, since the trial's start.
	Measured window.Span
	// Totals are of the measured time, for tests of the model itself.
	Totals Totals
}

// Accelerator is the value of the fact ROLE.accelerator of modelled trials.
const Accelerator = record.AcceleratorModel

// Totals sum up the measured time.
type Totals struct {
	Window     float64 // s
	Operations float64 // requests, or messages of a stream
	Bytes      float64 // one way
	InFlight   float64 // mean number of requests that a reply is awaited of
	Latency    float64 // s, mean
	CPU        float64 // s, all threads of the sandbox's cgroup
	Host       float64 // s, all that ran on the host, other load included
	Events     int     // of the whole trial
}

// Response is the figure that relieving a bottleneck must improve: operations a
// second in the closed loop, the mean latency's inverse in the open one.
func (t Totals) Response(c Config) float64 {
	if c.Load.Rate > 0 {
		return 1 / t.Latency
	}
	return t.Operations / t.Window
}

// Run models one trial. The error says which figure of the Config cannot be.
func Run(c Config) (*Result, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	s := newSim(c)
	s.run()
	return s.result(), nil
}
