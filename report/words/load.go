package words

// LoadFigures are the figures of a step of a load that a report shows, in their order: those of the load's node, then those of
// the load.
func LoadFigures() []string {
	return append(NodeFigures(), "pod_start_p50", "pod_start_p99", "api_latency_p99", "bound_p95", "claim_gone_p95", "rate")
}

// NodeFigures are those of the node, counted from before the first step.
func NodeFigures() []string {
	return []string{"node_memory", "node_page_cache", "node_disk_used", "node_disk_written", "node_disk_read"}
}
