package text

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/analyse/cause"
	"tare/record"
	"tare/report/section"
	"tare/report/words"
)

func testAdvice() *analyse.Result {
	cell := func(vcpus, connections string) record.Cell {
		return record.Cell{{Factor: "workload", Value: "bandwidth"}, {Factor: "sandbox", Value: "vm"}, {Factor: "default_vcpus", Value: vcpus}, {Factor: "connections", Value: connections}}
	}
	res := &analyse.Result{Study: "kata", Compare: "sandbox", Baseline: "process",
		Accelerators: []analyse.Accelerator{{Sandbox: "vm", Name: "vm (TCG)"}}, Causes: []cause.Finding{{}}}
	for _, v := range []string{"1", "2"} {
		c := record.Cell{{Factor: "sandbox", Value: "vm"}, {Factor: "default_vcpus", Value: v}}
		res.Treatments = append(res.Treatments, analyse.Treatment{Key: c.Key(), Cell: c})
	}
	one, two := res.Treatments[0].Key, res.Treatments[1].Key
	res.Advice = []advice.Item{
		{Rule: "vhost-queues", Source: "a publication", Treatment: one, Cause: "helper", Cells: []record.Cell{cell("1", "4"), cell("1", "16")},
			Change: "Boot with 2 vCPUs", Text: "Boot with 2 vCPUs. One vhost thread is full.", Price: "a vhost thread more", Warning: "Not both.", Weight: 1.4,
			Gain:    &advice.Gain{Response: "throughput", Better: record.Higher, From: cell("1", "4"), To: cell("2", "4"), Ratio: 1.95, Lo: 1.9, Hi: 2.01, Pairs: 12, Cells: 2},
			Patches: []advice.Patch{{For: "pod", File: "pod manifest", Text: "metadata:\n  annotations:\n    default_vcpus: \"2\"\n"}, {For: "shell", File: "shell", Text: "echo \x1b[31mred\n"}}},
		{Rule: "guest-vcpus", Source: "another", Treatment: two, Cause: "guest", Cells: []record.Cell{cell("2", "16")}, Contradicted: true,
			Text: "Leave out more vCPUs at boot. The readings point to it, but the study measured it and found a loss.",
			Gain: &advice.Gain{Response: "throughput", Better: record.Higher, Ratio: 0.8, Lo: 0.75, Hi: 0.86, Pairs: 6, Cells: 1}},
		{Rule: "link", Source: "a third", Treatment: two, Cause: "link", Cells: []record.Cell{cell("2", "4")}, Text: "The link\x1b[2J is full.", Unproven: "not measured; these cells would tell: tare run STUDY --set default_vcpus=2,4"},
	}
	return res
}

func TestWriteAdvice(t *testing.T) {
	for name, opt := range map[string]Options{"advice": {Width: 100}, "advice-colour": {Width: 100}, "advice-phone": {Width: 40}} {
		res := testAdvice()
		var b bytes.Buffer
		w, ink := paper(&b, name == "advice-colour")
		opt.Ink = ink
		if err := WriteAdvice(w, res, res.Advice, opt); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); !ink.On() && n > opt.Width && !strings.HasPrefix(line, "       ") {
				t.Errorf("%s: wider than %d: %s", name, opt.Width, line)
			}
		}
		if strings.Contains(b.String(), "\x1b[2J") || strings.Contains(b.String(), "\x1b[31mred") {
			t.Errorf("%s: someone else's text drives the terminal", name)
		}
	}
}

// TestAdviceInReport: the costliest few, and where the rest is.
func TestAdviceInReport(t *testing.T) {
	res := testAdvice()
	var b strings.Builder
	write(&b, section.Advice(res, "my results"), Options{Width: 200})
	for _, want := range []string{"\nadvice:\n", "vm (TCG) default_vcpus=1: Boot with 2 vCPUs. ", "Gain: throughput is 95 % higher (90 to 101 %) than with default_vcpus=1, 12 blocks of 2 combinations.", "tare advise 'my results'"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "more. All") || strings.Contains(b.String(), "annotations") {
		t.Error(b.String())
	}
	for range 6 {
		res.Advice = append(res.Advice, res.Advice[2])
	}
	b.Reset()
	if write(&b, section.Advice(res, ""), Options{}); !strings.Contains(b.String(), fmt.Sprintf("And %d more.", 3)) {
		t.Error(b.String())
	}
	b.Reset()
	if write(&b, section.Advice(&analyse.Result{Advice: []advice.Item{{Rule: "read-more", Cause: string(cause.Unknown)}}}, ""), Options{}); b.Len() > 0 {
		t.Errorf("no advice, and yet %q", b.String())
	}
}

func TestNoAdvice(t *testing.T) {
	compared := []analyse.Comparison{{}}
	for want, res := range map[string]*analyse.Result{
		"Nothing has been measured":                  {},
		"These results were not searched for causes": {Compared: compared},
		"No cost is known":                           {Compared: compared, Causes: []cause.Finding{{}}},
		"There is no advice about such":              {Compared: compared, Causes: []cause.Finding{{}}, Advice: []advice.Item{{}}},
		"Modelled, not measured: ev":                 {Modelled: true},
	} {
		var b bytes.Buffer
		if err := WriteAdvice(&b, res, nil, Options{}); err != nil || !strings.HasPrefix(b.String(), want) {
			t.Errorf("%q, %v, want %q", b.String(), err, want)
		}
	}
}

func ExampleWriteDocuments() {
	var b bytes.Buffer
	_ = WriteDocuments(&b, []advice.Document{
		{Of: "vm", File: "Deployment", About: []string{"vm: a\nrm -rf /"}, Text: "spec:\n  a: 1\n", YAML: true},
		{Of: "runsc", File: "Deployment", About: []string{"runsc: b"}, Text: "spec: {}\n", YAML: true}}, false)
	fmt.Print(b.String())
	// Output:
	// # Deployment
	// # vm: a rm -rf /
	// spec:
	//   a: 1
	// ---
	// # Deployment
	// # runsc: b
	// spec: {}
}

// TestModelledPatches: each document says that a model led to it, in a comment of its own.
func TestModelledPatches(t *testing.T) {
	docs := []advice.Document{{File: "Deployment", Text: "a: 1\n", YAML: true}, {File: "runsc.toml", Text: "x = 1\n"}}
	for _, modelled := range []bool{true, false} {
		var b bytes.Buffer
		if err := WriteDocuments(&b, docs, modelled); err != nil {
			t.Fatal(err)
		}
		want := 0
		if modelled {
			want = len(docs)
		}
		if n := strings.Count("\n"+b.String(), "\n"+words.ModelledPatch+"\n"); n != want {
			t.Errorf("modelled %v: %d documents say so, want %d:\n%s", modelled, n, want, b.String())
		}
	}
}
