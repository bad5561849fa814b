package objects

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"tare/param"
	"tare/record"
	"tare/workload/workloadtest"
)

// TestNode: plateaus count from before the first step, the slopes over them are for each further pod, and lines have all readings.
func TestNode(t *testing.T) {
	b, err := os.ReadFile("testdata/own.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	v, err := param.Fill(New().Params(), own())
	if err != nil {
		t.Fatal(err)
	}
	rd, err := New().Parse(roleLoad, v, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for i := range rd.Samples {
		s := &rd.Samples[i]
		if s.Labels == "" || s.Labels == record.MakeLabels(record.LabelStep, "6") {
			values[s.Name] = s.Value
		}
	}
	for name, mib := range map[string]float64{"node_memory": 813.9, "node_page_cache": 89.9, "node_disk_read": 26.6, "node_disk_written": 164, "node_disk_used": 136.2,
		"memory_per_pod": 45.53, "cache_per_pod": 2.52, "disk_per_pod": 4.61, "written_per_pod": 6.34} {
		if got := values[name] / (1 << 20); math.Abs(got-mib) > 0.06 {
			t.Errorf("%s: %.2f MiB, want %.1f", name, got, mib)
		}
	}
	// In the capture, the available memory grew in step 5, while pods were added.
	if w := rd.Warnings; len(w) != 2 || w[0].Code != "objects-node" || !strings.HasPrefix(w[0].Text, "node_page_cache fell by 17 MiB in step 2,") || !strings.HasPrefix(w[1].Text, "node_memory fell by 75 MiB in step 5,") {
		t.Errorf("%+v", w)
	}
	if len(rd.Series) != 5 {
		t.Fatalf("%d series", len(rd.Series))
	}
	for _, s := range rd.Series {
		if len(s.T) != strings.Count(string(b), "at_s") || len(s.V) != len(s.T) {
			t.Errorf("%s has %d points", s.Name, len(s.T))
		}
	}
}

// TestNodeImpossible: readings that contradict each other or the study are refused.
func TestNodeImpossible(t *testing.T) {
	b, err := os.ReadFile("testdata/own.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	first, _, _ := strings.Cut(text, "\n")
	begin := strings.Index(first, `"node":[`) + len(`"node":[`)
	end := begin + strings.Index(first[begin:], "]")
	one := first[begin : begin+strings.Index(first[begin:], "}")+1]
	elsewhere := own()
	elsewhere["nodes"] = Untainted
	for what, c := range map[string]struct {
		v    param.Values
		text string
	}{
		"none":                  {own(), strings.ReplaceAll(text, `"node":`, `"x":`)},
		"none in one step":      {own(), strings.Replace(text, `"node":`, `"x":`, 1)},
		"none before the first": {own(), strings.Replace(text, first[begin:end], one, 1)},
		"of a load elsewhere":   {elsewhere, text},
		"a time that goes back": {own(), strings.Replace(text, `"at_s":`, `"at_s":1`, 1)},
		"a counter that falls":  {own(), strings.Replace(text, `"read_bytes":`, `"read_bytes":9`, 1)},
		"less memory than none": {own(), strings.Replace(text, `"available_bytes":`, `"available_bytes":-`, 1)},
		"pods that did not run": {own(), strings.ReplaceAll(text, `"pods":18`, `"pods":0`)},
	} {
		if c.text == text && what != "of a load elsewhere" {
			t.Fatalf("%s: the capture does not have it", what)
		}
		if _, err := workloadtest.Parse(t, New(), roleLoad, c.v, c.text); err == nil {
			t.Errorf("%s: it is accepted", what)
		}
	}
}
