package study

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/param"
	"tare/record"
)

const neighbours = `study: x
compare: copies
factors:
  copies: [1, 2, 4]
  sandbox: [process, runc]
workloads:
  stream: {kind: net, responses: [first_throughput, throughput]}
  cpu: {}
`

func TestCopies(t *testing.T) {
	s := mustParse(t, neighbours)
	if s.Baseline != "1" || len(s.Strata) != 4 || len(s.Strata[0].Cells) != 3 {
		t.Fatalf("baseline %s, %s", s.Baseline, outline(s))
	}
	// The first copy's figures are compared where the study names them.
	if d := cmp.Diff([]string{"first_throughput", "throughput"}, s.WorkloadOf(0).Responses); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"events"}, s.WorkloadOf(3).Responses); d != "" {
		t.Error(d)
	}
	if s.Strata[0].Better != record.Higher {
		t.Errorf("better %q", s.Strata[0].Better)
	}
	got, err := s.Resolve(testCatalogue(), s.Strata[0].Cells[2])
	if err != nil || got.Copies != 4 || !slices.Equal(got.Workload.Responses, []string{"first_throughput", "throughput"}) {
		t.Errorf("%+v, %v", got, err)
	}
	info := testCatalogue().Workloads["net"]
	names := func(w Workload) (out []string) {
		for _, r := range s.ResponsesOf(info, w, w.Params) {
			out = append(out, r.Name)
		}
		return out
	}
	if all := names(s.WorkloadOf(0)); !slices.Contains(all, "first_messages") {
		t.Errorf("%q", all)
	}
	alone := mustParse(t, "study: x\nfactors: {sandbox: [process, runc]}\nworkloads: {stream: {kind: net}}\n")
	if all := names(alone.WorkloadOf(0)); slices.ContainsFunc(all, func(n string) bool { return strings.HasPrefix(n, record.FirstPrefix) }) {
		t.Errorf("without the factor: %q", all)
	}
	if got, err := alone.Resolve(testCatalogue(), alone.Strata[0].Cells[0]); err != nil || got.Copies != 0 {
		t.Errorf("without the factor: %d copies, %v", got.Copies, err)
	}
}

// TestCopiesNested: some sandboxes have the factor, and others do not.
func TestCopiesNested(t *testing.T) {
	s := mustParse(t, strings.Replace(neighbours, "compare: copies", "apply: {copies: {sandbox: runc}}", 1))
	if d := cmp.Diff([]string{"first_throughput", "throughput"}, s.Strata[0].Responses); d != "" {
		t.Error(d)
	}
	for _, c := range s.Strata[0].Cells {
		got, err := s.Resolve(testCatalogue(), c)
		if _, has := c.Get(FactorCopies); err != nil || slices.Contains(got.Workload.Responses, "first_throughput") != has {
			t.Errorf("%s: %q, %v", c, got.Workload.Responses, err)
		}
	}
}

func TestCopiesErrors(t *testing.T) {
	cat := testCatalogue()
	info := cat.Workloads["net"]
	info.Copies = func(_ param.Values, n int) error {
		if n > 2 {
			return &param.ValueError{Param: FactorCopies, Err: fmt.Errorf("copies = %d: they would share /dev/sdb; name a device for each copy", n)}
		}
		return nil
	}
	cat.Workloads["net"] = info
	launches := cat.Workloads["noop"]
	launches.Launches = true
	cat.Workloads["noop"] = launches
	for _, tt := range []struct{ name, src, want string }{
		{"what cannot be shared", neighbours, `t.yaml:4:18: workload "stream" is not possible: copies = 4: they would share /dev/sdb; name a device for each copy`},
		{"no copies", strings.Replace(neighbours, "[1, 2, 4]", "[0, 1]", 1), `t.yaml:4:12: copies = 0 is out of range; write a value from 1 to 64`},
		{"no such response", "study: x\nfactors: {sandbox: [process, runc]}\nworkloads: {stream: {kind: net, responses: [first_throughput]}}\n",
			`t.yaml:3:45: workload "stream" has no response "first_throughput"; did you mean "throughput"?`},
		{"no such workload", "study: x\nfactors: {sandbox: [process, runc], copies: [1, 2]}\nworkloads: {noop: {}}\n", `t.yaml:2:37: the factor "copies" applies to no cell; remove it, or change what it applies to`},
	} {
		_, err := Parse("t.yaml", []byte(tt.src), cat, nil)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v\nwant %s", tt.name, err, tt.want)
		}
	}
}

// TestRatioFigure: a ratio and a difference have a column for each level of their factor.
func TestRatioFigure(t *testing.T) {
	for _, kind := range []FigureKind{FigureRatio, FigureDifference} {
		text := string(kind) + " of copies"
		s := mustParse(t, neighbours+"tables:\n  curve: {figure: "+text+", response: first_throughput, rows: [sandbox]}\n")
		want := []Figure{{Name: "curve", Kind: kind, Text: text, Response: "first_throughput", Of: "copies", Rows: []string{"sandbox"}, Columns: []string{"copies"}}}
		if d := cmp.Diff(want, s.Figures); d != "" {
			t.Error(d)
		}
	}
}

// TestSpread: copies are spread over the nodes of a cluster. One host has one node.
func TestSpread(t *testing.T) {
	cat := testCatalogue()
	cat.Nodes = true
	text := strings.Replace(neighbours, "copies: [1, 2, 4]", "copies: [1, 2, 4]\n  copies-on: [one, spread]", 1)
	s, err := Parse("t.yaml", []byte(text), cat, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range slices.Concat(s.Strata[0].Cells, s.Strata[1].Cells) {
		got, err := s.Resolve(cat, c)
		on, _ := c.Get(FactorCopiesOn)
		want := 1
		if on == CopiesSpread {
			want = got.Copies
		}
		if err != nil || got.Spread != (on == CopiesSpread) || Spread(c) != want {
			t.Errorf("%s: spread %v over %d nodes, %v", c, got.Spread, Spread(c), err)
		}
	}
	if n := Spread(record.Cell{{Factor: FactorCopiesOn, Value: CopiesSpread}}); n != 1 {
		t.Errorf("without copies: %d nodes", n)
	}
	stored := testCatalogue()
	stored.Stored = true
	if _, err := Parse("t.yaml", []byte(text), stored, nil); err != nil {
		t.Errorf("results on another host: %v", err)
	}
	for _, tt := range []struct {
		name, src, want string
		nodes           bool
	}{
		{"on a host", text, "t.yaml:5:20: copies-on: spread needs the nodes of a cluster, and this is one host; write one, or measure on a cluster (--on k8s)", false},
		{"no such level", strings.Replace(text, "spread", "spraed", 1), `t.yaml:5:20: "spraed" is not a level of copies-on; did you mean "spread"?`, true},
		{"without copies", "study: x\nfactors: {sandbox: [process, runc], copies-on: [spread]}\nworkloads: {cpu: {}}\n",
			"t.yaml:2:37: copies-on places copies, and the study has none; add the factor copies: [1, 2], or remove copies-on", true},
	} {
		cat.Nodes = tt.nodes
		if _, err := Parse("t.yaml", []byte(tt.src), cat, nil); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v\nwant %s", tt.name, err, tt.want)
		}
	}
}
