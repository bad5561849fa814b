package export

import (
	"bytes"
	"strings"
	"testing"

	"tare/analyse"
	"tare/record"
	"tare/store"
)

// TestFormatsHaveNodes: each format says which node a trial ran on, or what the nodes had,
// and says nothing of the only one.
func TestFormatsHaveNodes(t *testing.T) {
	trials := testTrials()[:1]
	trials[0].Session = 1
	responses := map[string][]record.Response{}
	w, _ := trials[0].Cell.Get("workload")
	responses[w] = []record.Response{{Name: trials[0].Samples[0].Name, Unit: record.Second}}
	b := Bench{Study: "x", Responses: responses, Sessions: []store.Session{{ID: 1, Host: record.Host{Hostname: "first"}}}}
	res := testResult()
	write := func() string {
		t.Helper()
		var out bytes.Buffer
		for _, err := range []error{JSONLines(&out, sequence(trials)), GoBench(&out, b, sequence(trials)), OpenMetrics(&out, res)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return out.String()
	}
	if s := write(); strings.Contains(s, "node") || !strings.Contains(s, "host: first\n") {
		t.Errorf("one node: %s", s)
	}
	trials[0].Node = "b"
	b.Sessions[0].Nodes = []record.Node{{Name: "a", Host: record.Host{Hostname: "first"}}, {Name: "b", Host: record.Host{Hostname: "second"}}}
	res.Nodes = []analyse.Node{{Name: "a", Blocks: 3}, {Name: "b", Blocks: 4}}
	s := write()
	for _, want := range []string{`"node":"b"`, "host: second\n", `",node="b"} 4`} {
		if !strings.Contains(s, want) {
			t.Errorf("it does not have %q: %s", want, s)
		}
	}
	if strings.Contains(s, "host: first") {
		t.Errorf("the other node's machine is told: %s", s)
	}
}
