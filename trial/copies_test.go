package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"tare/param"
	"tare/record"
	"tare/sandbox"
	"tare/study"
	"tare/workload"
)

// twin is a workload of a server and a client whose client's output is a number: its rate, and the
// latency of as many requests.
type twin struct{ load }

func (*twin) Responses(param.Values) []record.Response {
	return []record.Response{
		{Name: "rate", Unit: record.PerSecond, Better: record.Higher},
		{Name: "latency_p50", Unit: record.Second, Better: record.Lower},
		{Name: "memory", Unit: record.Byte, Better: record.Lower},
	}
}

func (*twin) Parse(role string, _ param.Values, out io.Reader) (record.Reading, error) {
	b, _ := io.ReadAll(out)
	if role == "server" {
		return record.Reading{}, nil
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	if err != nil || role != "client" {
		return record.Reading{}, fmt.Errorf("%s printed %q", role, b)
	}
	h := hdrhistogram.New(1, 1e6, 3)
	for range int(v) {
		_ = h.RecordValue(int64(v))
	}
	enc, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	return record.Reading{
		Samples: []record.Sample{
			{Name: "rate", Unit: record.PerSecond, Value: v},
			{Name: "latency_p50", Unit: record.Second, Value: v},
			{Name: "memory", Unit: record.Byte, Value: v},
			{Name: "requests", Unit: record.Count, Value: v},
			{Name: "wait", Unit: record.Second, Value: v},
			{Name: "wait_max", Unit: record.Second, Value: v},
		},
		Histograms: []record.Histogram{{Name: "latency", Unit: record.Second, Scale: 1, Encoded: enc}},
		Series: []record.Series{{Name: "rate", Labels: record.MakeLabels(record.LabelResponse, "rate"), Unit: record.PerSecond, Kind: record.Gauge,
			T: []time.Duration{1}, V: []float64{v}}},
		Warnings: []record.Warning{{Code: "odd", Text: "so it was"}, {Code: record.BelowNoise + "memory"}},
	}, err
}

// pair is a kind whose clients print the number of their copy to the power of ten, and run for so
// long each, once they have passed the gate.
type pair struct {
	kind
	takes func(copies int) (late, long time.Duration)

	mu    sync.Mutex
	names []string
	cmds  []string
}

// victimCopy is the copy that a victim passes for.
const victimCopy = 3

type half struct {
	instance
	of *pair
	k  int
}

func (p *pair) Start(_ context.Context, s sandbox.Spec) (sandbox.Instance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names = append(p.names, s.Name)
	role, k := record.CopyOf(strings.TrimPrefix(s.Name, "x-1-"))
	if own, ok := strings.CutPrefix(role, record.VictimRolePrefix); ok {
		role, k = own, victimCopy
	}
	return &half{instance: instance{k: &p.kind, end: role}, of: p, k: k}, nil
}

func (h *half) Exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	h.of.mu.Lock()
	h.of.cmds = append(h.of.cmds, strings.Join(c.Args, " "))
	h.of.mu.Unlock()
	if h.end == "server" {
		return h.instance.Exec(ctx, c)
	}
	at := time.Now()
	if c.Gate != nil {
		defer c.Gate.Fail()
		var err error
		if at, err = c.Gate.Arrive(ctx); err != nil {
			return sandbox.Exit{}, err
		}
	}
	late, long := h.of.takes(h.k)
	_ = sleep(ctx, time.Until(at)+late+long)
	_, _ = fmt.Fprintln(c.Stdout, math.Pow(10, float64(h.k-1)))
	return sandbox.Exit{Start: at.Add(late)}, nil
}

func together(int) (late, long time.Duration) { return 0, 30 * time.Millisecond }

// copied makes an engine whose only cell has so many copies.
func copied(t *testing.T, n int, takes func(int) (late, long time.Duration)) (*Maker, *pair) {
	t.Helper()
	e, j := engine(t, "")
	p := &pair{kind: kind{j: j, name: "process"}, takes: takes}
	l := &twin{load{j: j}}
	e.Kinds["process"], e.Workloads["load"] = p, l
	info := e.Catalogue.Workloads["load"]
	info.Responses = l.Responses
	e.Catalogue.Workloads["load"] = info
	e.Study.Workloads[0].Responses = []string{"rate", "first_rate"}
	s := &e.Study.Strata[0]
	s.Cells[0] = append(slices.Clone(s.Cells[0]), record.Level{Factor: study.FactorCopies, Value: strconv.Itoa(n)})
	return e, p
}

// values are a trial's, by name and label.
func values(t *record.Trial) map[string]float64 {
	out := map[string]float64{}
	for _, s := range t.Samples {
		if c := s.Labels.Get(record.LabelCopy); c != "" {
			out[s.Name+" "+c] = s.Value
		} else if s.Labels == "" {
			out[s.Name] = s.Value
		}
	}
	return out
}

// TestCopies: each copy has sandboxes of its own, and what it prints is read as the workload's own.
func TestCopies(t *testing.T) {
	e, p := copied(t, 3, together)
	tr, ev := e.Trial(t.Context(), of(t, e)[0])
	if tr.Status != record.OK {
		t.Fatalf("%+v", tr.Failure)
	}
	want := []string{"x-1-server", "x-1-client", "x-1-server-2", "x-1-client-2", "x-1-server-3", "x-1-client-3"}
	if d := cmp.Diff(want, p.names); d != "" {
		t.Error(d)
	}
	got := values(tr)
	for name, want := range map[string]float64{
		"rate": 111, "rate 1": 1, "rate 2": 10, "rate 3": 100, "first_rate": 1,
		"latency_p50": 100, "latency_p50 2": 10, "first_latency_p50": 1, // most requests are the third's
		"memory": 37, "memory 3": 100, "requests": 111, "wait": 37, "wait_max": 100,
		record.CopiesOverlap: got[record.CopiesOverlap], record.StartSkew: 0,
	} {
		if v, ok := got[name]; !ok || math.Abs(v-want) > 0.01*want {
			t.Errorf("%s = %v (%v), want %v", name, v, ok, want)
		}
	}
	if v := got[record.CopiesOverlap]; v <= 0 || v > 1 {
		t.Errorf("overlap %v", v)
	}
	if len(tr.Histograms) != 4 {
		t.Errorf("%d histograms, want one of all and one of each", len(tr.Histograms))
	}
	var of []string
	for _, s := range ev.Series {
		if s.Name == "rate" {
			of = append(of, s.Labels.Get(record.LabelCopy))
		}
	}
	slices.Sort(of)
	if d := cmp.Diff([]string{"1", "2", "3"}, of); d != "" {
		t.Error(d)
	}
	if !slices.ContainsFunc(tr.Warnings, func(w record.Warning) bool { return w.Text == "copy 2: so it was" }) {
		t.Errorf("warnings %v", tr.Warnings)
	}
	if !tr.BelowNoise("memory") || !tr.BelowNoise("first_memory") {
		t.Errorf("warnings %v", tr.Warnings)
	}
	raw := map[string]bool{}
	for _, r := range ev.Raw {
		raw[r.Name] = true
	}
	if !raw["client.stdout"] || !raw["client-3.stdout"] {
		t.Errorf("evidence %v", raw)
	}
}

// TestOneCopy: it is as without the factor, but for the names of the first.
func TestOneCopy(t *testing.T) {
	e, p := copied(t, 1, together)
	tr, _ := e.Trial(t.Context(), of(t, e)[0])
	if tr.Status != record.OK {
		t.Fatalf("%+v", tr.Failure)
	}
	if d := cmp.Diff([]string{"x-1-server", "x-1-client"}, p.names); d != "" {
		t.Error(d)
	}
	got := values(tr)
	if got["rate"] != 1 || got["first_rate"] != 1 {
		t.Errorf("%v", got)
	}
	for name := range got {
		if strings.Contains(name, " ") || name == record.CopiesOverlap || name == record.StartSkew {
			t.Errorf("a single copy has %s", name)
		}
	}
	if slices.ContainsFunc(tr.Warnings, func(w record.Warning) bool { return strings.HasPrefix(w.Text, "copy") }) {
		t.Errorf("warnings %v", tr.Warnings)
	}
}

// TestCopiesInTurns: the sandboxes of all copies start once.
func TestCopiesInTurns(t *testing.T) {
	e, p := copied(t, 2, together)
	e.Study.Workloads[0].Turns = 3
	tr := e.Trials(t.Context(), of(t, e))[0]
	if tr.Status != record.OK {
		t.Fatalf("%+v", tr.Failure)
	}
	if len(p.names) != 4 || len(p.cmds) != 12 {
		t.Errorf("%d sandboxes and %d commands, want 4 and 12", len(p.names), len(p.cmds))
	}
	got := values(tr.Trial)
	for name, want := range map[string]float64{"rate": 11, "rate 2": 10, "first_rate": 1, "latency_p50": 10, "first_latency_p50": 1} {
		if math.Abs(got[name]-want) > 0.01*want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
}

// TestCopiesApart: copies that did not run together are no neighbours.
func TestCopiesApart(t *testing.T) {
	e, _ := copied(t, 2, func(k int) (late, long time.Duration) {
		if k == 2 {
			return 300 * time.Millisecond, 30 * time.Millisecond
		}
		return together(k)
	})
	tr, _ := e.Trial(t.Context(), of(t, e)[0])
	failed(t, tr, PhaseRun, "apart", "client ended", "before client-2 began to be measured")

	e, _ = copied(t, 2, func(k int) (late, long time.Duration) {
		_, long = together(k)
		return 0, long * time.Duration(k*k*k*k) // 16 times as long
	})
	tr, _ = e.Trial(t.Context(), of(t, e)[0])
	if tr.Status != record.OK || !slices.ContainsFunc(tr.Warnings, func(w record.Warning) bool { return w.Code == record.CopiesApart }) {
		t.Errorf("%+v, warnings %v", tr.Failure, tr.Warnings)
	}
}

// TestCopiesShareTheCell: limits and processors are those of each, and a link is of one copy.
func TestCopiesShareTheCell(t *testing.T) {
	e, _ := copied(t, 2, together)
	s := &e.Study.Strata[0]
	s.Cells[0] = append(s.Cells[0], record.Level{Factor: study.FactorIsolate, Value: "server"}, record.Level{Factor: study.FactorCPUs, Value: study.ApartCPUs},
		record.Level{Factor: study.FactorLinkDelay, Value: "1ms"})
	at := e.Place.(*place)
	at.cores = 2
	tr, _ := e.Trial(t.Context(), of(t, e)[0])
	if tr.Status != record.OK {
		t.Fatalf("%+v", tr.Failure)
	}
	var got []string
	for _, w := range at.wants {
		got = append(got, w.Role+" "+w.CPUs)
	}
	if d := cmp.Diff([]string{"server 0", "client 1", "server-2 0", "client-2 1"}, got); d != "" {
		t.Error(d)
	}
	shaped := slices.DeleteFunc(slices.Clone(at.j.lines), func(l string) bool { return !strings.HasPrefix(l, "shape ") })
	if len(shaped) != 4 {
		t.Errorf("%q", shaped)
	}
}

// TestSkipCopies: a kind that starts says whether so many do.
func TestSkipCopies(t *testing.T) {
	e, p := copied(t, 3, together)
	e.Kinds["process"] = &roomy{pair: p}
	e.Study.Strata[0].Cells[0] = append(e.Study.Strata[0].Cells[0], record.Level{Factor: study.FactorIsolate, Value: study.Both})
	skips, err := e.Skips(t.Context())
	if err != nil || len(skips) != 1 || skips[0].Reason != "process: 6 do not fit" {
		t.Errorf("%v, %v", skips, err)
	}
}

// roomy is a kind that has no room.
type roomy struct{ *pair }

func (*roomy) CheckOptions(map[string]string) error { return nil }
func (*roomy) CheckHere(_ context.Context, s sandbox.Spec) error {
	return fmt.Errorf("%d do not fit", s.Beside+1)
}

var _ workload.Workload = (*twin)(nil)

// spreadOver makes an engine with copies on several nodes.
func spreadOver(t *testing.T, copies int, nodes ...string) (*Maker, *pair) {
	e, p := copied(t, copies, together)
	c := &e.Study.Strata[0].Cells[0]
	*c = append(*c, record.Level{Factor: study.FactorCopiesOn, Value: study.CopiesSpread})
	e.Nodes = nodes
	return e, p
}

// TestSpreadCopies: the copies take the nodes in turn, from the block's on, and a copy's far end is one node further.
func TestSpreadCopies(t *testing.T) {
	for _, tt := range []struct {
		copies int
		path   string
		want   []string
	}{
		{1, "", []string{"server b", "client b"}},
		{4, "", []string{"server b", "client b", "server-2 c", "client-2 c", "server-3 a", "client-3 a", "server-4 b", "client-4 b"}},
		{2, record.PathNodes, []string{"server b", "client c", "server-2 c", "client-2 a"}},
	} {
		e, _ := spreadOver(t, tt.copies, "a", "b", "c")
		if tt.path != "" {
			c := &e.Study.Strata[0].Cells[0]
			*c = append(*c, record.Level{Factor: study.FactorLinkPath, Value: tt.path}, record.Level{Factor: study.FactorIsolate, Value: "server"})
		}
		next := first(e)
		next.Node = "b"
		tr, _ := e.Trial(t.Context(), next)
		if tr.Status != record.OK {
			t.Fatalf("%+v", tr.Failure)
		}
		var got []string
		for _, w := range e.Place.(*place).wants {
			got = append(got, w.Role+" "+w.Node)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%d copies: %s", tt.copies, d)
		}
		if v := values(tr)["rate"]; v < 1 {
			t.Errorf("rate %v", v)
		}
	}
}

// lossy is a kind whose second copy's node is lost, before its agent answers or while it runs.
type lossy struct {
	*pair
	never bool
}

type lostHalf struct{ sandbox.Instance }

func (k *lossy) Start(ctx context.Context, s sandbox.Spec) (sandbox.Instance, error) {
	i, err := k.pair.Start(ctx, s)
	if !strings.HasSuffix(s.Name, "client-2") {
		return i, err
	}
	if k.never {
		return nil, errors.New("the agent in the pod did not answer")
	}
	return &lostHalf{i}, nil
}

func (*lostHalf) Exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	defer c.Gate.Fail()
	_, _ = c.Gate.Arrive(ctx)
	return sandbox.Exit{}, fmt.Errorf("node b: %w", sandbox.ErrNodeLost)
}

// TestSpreadLosesANode: what one copy lacks ends the trial, with the copy's role and the reason, and nothing is left of the others.
func TestSpreadLosesANode(t *testing.T) {
	for _, never := range []bool{true, false} {
		e, p := spreadOver(t, 2, "a", "b")
		e.Kinds["process"] = &lossy{p, never}
		next := first(e)
		next.Node = "a"
		tr, _ := e.Trial(t.Context(), next)
		if never {
			failed(t, tr, PhaseStart, "start", "the agent in the pod did not answer")
		} else {
			failed(t, tr, PhaseRun, record.NodeLost, "node b: ")
		}
		if tr.Failure.Role != "client-2" {
			t.Errorf("the role is %q", tr.Failure.Role)
		}
		if last := e.Place.(*place).j.lines; last[len(last)-1] != "release x-1" {
			t.Errorf("the last thing done is %q", last[len(last)-1])
		}
	}
}

// TestSpreadNeedsNodes: copies that would all be on one node are not spread.
func TestSpreadNeedsNodes(t *testing.T) {
	e, _ := spreadOver(t, 2, "a")
	skips, err := e.Skips(t.Context())
	if err != nil || len(skips) != 1 || skips[0].Reason != "copies-on spread needs two nodes of a cluster, and there is one; write copies-on: one, or add a node" {
		t.Errorf("%v, %v", skips, err)
	}
	if _, skips, err = e.Sandboxes("a"); err != nil || len(skips) != 1 {
		t.Errorf("%v, %v", skips, err)
	}
	e, p := spreadOver(t, 4, "a", "b", "c")
	e.Kinds["process"] = &roomy{pair: p}
	if skips, err = e.Skips(t.Context()); err != nil || len(skips) != 1 || skips[0].Reason != "process: 2 do not fit" { // on the node that has most
		t.Errorf("%v, %v", skips, err)
	}
	e, _ = spreadOver(t, 1, "a")
	if skips, err = e.Skips(t.Context()); err != nil || len(skips) != 0 {
		t.Errorf("a single copy: %v, %v", skips, err)
	}
}
