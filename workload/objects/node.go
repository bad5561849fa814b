package objects

import (
	"fmt"
	"strconv"
	"time"

	"tare/record"
	"tare/workload/output"
)

// perPod are the responses of a load on its own node.
func perPod() []record.Response {
	return []record.Response{
		{Name: "memory_per_pod", Unit: record.Byte, Better: record.Lower, Help: "available memory that each further pod takes (Theil-Sen slope over the plateaus)"},
		{Name: "cache_per_pod", Unit: record.Byte, Better: record.Lower, Help: "growth of the page cache with each further pod; small if the pods share the pages of their image"},
		{Name: "disk_per_pod", Unit: record.Byte, Better: record.Lower, Help: "space that each further pod uses on the node's disk"},
		{Name: "written_per_pod", Unit: record.Byte, Better: record.Lower, Help: "bytes written to the node's disks with each further pod"},
	}
}

// saneNode refuses readings that no node gives in this order. own: there are some.
func (r *report) saneNode(own bool) error {
	var last Reading
	for i := range r.steps {
		node := r.steps[i].Node
		if least := max(1, 2-i); own && len(node) < least || !own && len(node) > 0 {
			return fmt.Errorf("step %d has %d readings of the node", i+1, len(node))
		}
		for _, x := range node {
			if !fine(maxTime, x.At) || !fine(1e18, x.Available, x.Cache, x.Read, x.Written, x.Used) || x.At < last.At || x.Read < last.Read || x.Written < last.Written {
				return fmt.Errorf("step %d: the readings of the node are out of range, or go back", i+1)
			}
			last = x
		}
	}
	return nil
}

// stray is a change in bytes that a quiet node makes by itself between two plateaus.
const stray = 4 << 20

// nodeSamples adds the readings of the node: all of them as series, those of the plateaus as samples by step, counted from
// before the first step, and the slopes over the plateaus: what each further pod takes. The first pod can take more, such as the
// pages of an image that all share.
func (r *report) nodeSamples(rd *record.Reading) error {
	first := r.steps[0].Node[0]
	lines := []record.Series{
		{Name: "node_available", Unit: record.Byte, Kind: record.Gauge},
		{Name: "node_page_cache", Unit: record.Byte, Kind: record.Gauge},
		{Name: "node_disk_used", Unit: record.Byte, Kind: record.Gauge},
		{Name: "node_disk_read", Unit: record.Byte, Kind: record.Counter},
		{Name: "node_disk_written", Unit: record.Byte, Kind: record.Counter},
	}
	var x Reading
	pods := []float64{0}
	at := map[string][]float64{}
	last := make(map[string]float64)
	warned := make(map[string]bool)
	for i := range r.steps {
		for _, x = range r.steps[i].Node {
			for k, v := range []float64{x.Available, x.Cache, x.Used, x.Read, x.Written} {
				lines[k].T, lines[k].V = append(lines[k].T, time.Duration(x.At*float64(time.Second))), append(lines[k].V, v)
			}
		}
		add := func(name string, v float64) {
			rd.Value(name, record.Byte, v, record.LabelStep, strconv.Itoa(i+1))
			if fell := last[name] - v; !warned[name] && fell > stray {
				rd.Warn("objects-node", "%s fell by %.0f MiB in step %d, while pods were added: other programs on the node changed it by at least as much; run the study again while the node is quiet", name, fell/(1<<20), i+1)
				warned[name] = true
			}
			last[name] = v
			at[name] = append(at[name], v)
		}
		pods = append(pods, float64(r.steps[i].Pods))
		add("node_memory", first.Available-x.Available)
		add("node_page_cache", x.Cache-first.Cache)
		add("node_disk_used", x.Used-first.Used)
		add("node_disk_read", x.Read-first.Read)
		add("node_disk_written", x.Written-first.Written)
	}
	rd.Series = append(rd.Series, lines...)
	end := &r.steps[len(r.steps)-1]
	if end.Pods == 0 {
		return fmt.Errorf("no pod ran on the node: %s", end.Why)
	}
	for _, x := range [][2]string{{"memory_per_pod", "node_memory"}, {"cache_per_pod", "node_page_cache"}, {"disk_per_pod", "node_disk_used"}, {"written_per_pod", "node_disk_written"}} {
		rd.Value(x[0], record.Byte, output.Slope(pods, append([]float64{0}, at[x[1]]...)))
	}
	return nil
}
