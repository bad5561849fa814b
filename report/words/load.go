package words

import (
	"slices"

	"tare/analyse"
	"tare/record"
)

// TooLate says what the sign > before a value means.
const TooLate = "pods or claims did not get there before the step ended: the time is a lower bound"

// Least is the sign before a value that is a lower bound.
const Least = "> "

// Typical is the value of a level, with the sign > if it is a lower bound.
func Typical(l *analyse.Level, unit record.Unit) string {
	if l.AtLeast {
		return Least + Value(l.Typical, unit)
	}
	return Value(l.Typical, unit)
}

// Bound is the sign before a ratio of which a side is a lower bound: > or <, or ≷ if both are.
func Bound(c *analyse.Comparison) string {
	switch {
	case c.Level.AtLeast && c.Base.AtLeast:
		return "≷ "
	case c.Level.AtLeast:
		return Least
	case c.Base.AtLeast:
		return "< "
	}
	return ""
}

// LoadFigures are the figures of a step of a load that a report draws, in their order: those of the load's node, those of pods
// and guests, those of claims, then those of both, then those of the API server.
func LoadFigures() []string {
	out := append(NodeFigures(), "pod_start_p50", "pod_start_p99", "guest_start_p50", "guest_start_p99")
	for _, s := range slices.Concat(ClaimStages(), RemovalStages()) {
		out = append(out, s.Name+"_p95")
	}
	return append(append(out, "api_latency_p99", "rate", "removal_rate"), ServerFigures()[:3]...)
}

// ServerFigures are those of the API server: its processors and memory, the mean time of a write to etcd, the time that requests waited in
// its queues, and the requests that it refused for that.
func ServerFigures() []string {
	return []string{"server_cpu", "server_memory", "store_mean", "server_queued", "server_rejected"}
}

// ControlFigures are those of the rest of the control plane.
func ControlFigures() []string {
	return []string{"etcd_cpu", "etcd_memory", "scheduler_cpu", "scheduler_memory", "controller_cpu", "controller_memory"}
}

// PipelineSteps are the steps of an image in a pipeline. Their percentiles begin with these names.
func PipelineSteps() []string { return []string{"waited", "built", "pushed", "pulled", "started"} }

// NodeFigures are those of the node, counted from before the first step.
func NodeFigures() []string {
	return []string{"node_memory", "node_page_cache", "node_disk_used", "node_disk_written", "node_disk_read"}
}

// Stage is a stage of a claim. Its percentiles begin with its name.
type Stage struct{ Name, Said string }

// ClaimStages are the stages until a claim is usable.
func ClaimStages() []Stage {
	return []Stage{{"bound", "bound"}, {"attached", "attached"}, {"mounted", "mounted"}, {"written", "first byte"}}
}

// RemovalStages are those until a claim and its volume are gone.
func RemovalStages() []Stage {
	return []Stage{{"claim_gone", "claim gone"}, {"detached", "detached"}, {"volume_gone", "volume gone"}}
}
