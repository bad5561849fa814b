// Package model is a discrete-event model of the path of a network workload in a sandbox. It
// gives what a study would read, without the machines.
//
// The data path: 1. a Config describes the load, the sandbox and the host in seconds, bytes and
// cores (Default, Sized for a pod as Kata Containers sizes it, Native for its baseline); 2. Run
// sends messages from a peer over the link to a helper thread (vhost, the VMM's main loop, the
// sentry), to a guest core's soft interrupt and a workload thread, and back; 3. all threads share
// the host's cores and the cgroup's CPU quota; 4. ten times a second the counters are read, with
// the names of the collectors proc, cgroup, guest and system, and at the end the responses, with
// those of the workload net.
//
// Config.Seed determines everything random: the same Config gives exactly the same Result. The
// tests plant bottlenecks in Configs, relieve them, and ask package cause to name them.
//
// docs/model.md has the picture, each figure's source, and what is approximated.
package model

import (
	"fmt"

	"tare/internal/window"
	"tare/record"
)

// Result is the result of one modelled trial.
type Result struct {
	// Reading is like the workload's and the collectors': samples, the latency histogram,
	// series. Times of series count from the trial's start, including the warm-up.
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
	InFlight   float64 // mean number of requests without a reply yet
	Latency    float64 // s, mean
	CPU        float64 // s, all threads of the sandbox's cgroup
	Host       float64 // s, all that ran on the host, other load included
	Events     int     // of the whole trial
}

// Response returns the figure that must improve when a bottleneck is relieved: operations a
// second in the closed loop, the inverse of the mean latency in the open one.
func (t Totals) Response(c Config) float64 {
	if c.Load.Rate > 0 {
		return 1 / t.Latency
	}
	return t.Operations / t.Window
}

// Run models one trial. The error names the figure of the Config that is out of bounds.
func Run(c Config) (*Result, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	s := newSim(c)
	s.run()
	return s.result(), nil
}
