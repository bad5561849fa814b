package trial

import (
	"context"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"tare/internal/window"
	"tare/param"
	"tare/plan"
	"tare/record"
	"tare/workload"
)

// counter is a workload of one end whose answers are 1, 4, 16, ... in the order in which they
// are parsed, with as many events of that latency.
type counter struct {
	load
	n int
}

func (*counter) Responses(param.Values) []record.Response {
	return []record.Response{{Name: "answer", Unit: record.Count, Better: record.Higher}}
}

func (*counter) Roles(param.Values) ([]workload.Role, error) {
	return []workload.Role{{Name: "client", Mode: workload.Exec, Args: []string{"call"}, Before: []string{"lay out"}, DropCaches: true}}, nil
}

func (c *counter) Parse(_ string, _ param.Values, _ io.Reader) (record.Reading, error) {
	v := math.Pow(4, float64(c.n))
	c.n++
	h := hdrhistogram.New(1, 1e6, 3)
	for range int(v) {
		_ = h.RecordValue(int64(v))
	}
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	return record.Reading{
		Samples: []record.Sample{
			{Name: "answer", Unit: record.Count, Value: v},
			{Name: "depth", Unit: record.Count, Value: v},
			{Name: "depth_max", Unit: record.Count, Value: v},
			{Name: "latency_p50", Unit: record.Second, Value: v},
			{Name: "latency_p999", Unit: record.Second, Value: v},
		},
		Histograms: []record.Histogram{{Name: "latency", Unit: record.Second, Scale: 0.5, Encoded: b}},
		Series: []record.Series{{Name: "rate", Labels: record.MakeLabels(record.LabelResponse, "answer"), Unit: record.Count, Kind: record.Gauge,
			T: []time.Duration{1}, V: []float64{v}}},
		Warnings: []record.Warning{{Code: "odd", Text: "in turn " + strconv.Itoa(c.n)}},
	}, err
}

// of is the trials of the block that a plan begins with.
func of(t *testing.T, e *Maker) []plan.Next {
	t.Helper()
	return plan.New(e.Study, nil, nil).Together()
}

// turning gives the study a second cell and three turns.
func turning(e *Maker) {
	other := &kind{j: e.Kinds["process"].(*kind).j, name: "other"}
	e.Kinds["other"] = other
	cat := e.Catalogue.Sandboxes
	cat["other"] = cat["process"]
	s := &e.Study.Strata[0]
	s.Cells = append(s.Cells, record.Cell{{Factor: "workload", Value: "w"}, {Factor: "sandbox", Value: "other"}})
	e.Study.Factors[1].Levels = []string{"process", "other"}
	e.Study.Workloads[0].Turns = 3
}

// TestTurnsTakeTurns: all sandboxes start before anything is weighed, and the order turns round.
func TestTurnsTakeTurns(t *testing.T) {
	e, j := engine(t, "")
	turning(e)
	made := e.Trials(t.Context(), of(t, e))
	if len(made) != 2 || made[0].Status != record.OK || made[1].Status != record.OK {
		t.Fatalf("%+v", made)
	}
	var lines []string
	for _, l := range j.lines {
		if strings.HasPrefix(l, "start client") || strings.HasPrefix(l, "exec call") || strings.HasPrefix(l, "stop client") || strings.HasPrefix(l, "release") {
			lines = append(lines, strings.Fields(l)[0])
		}
	}
	want := strings.Fields("start start exec exec exec exec exec stop release exec stop release")
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
	second := func(i int) time.Time {
		runs := slices.DeleteFunc(slices.Clone(made[i].Phases), func(p record.Phase) bool { return p.Name != PhaseRun })
		return made[i].Start.Add(runs[min(1, len(runs)-1)].Offset)
	}
	if !second(1).Before(second(0)) {
		t.Errorf("the second turn began at %s and %s, want the reverse order", second(0), second(1))
	}
	for _, m := range made {
		turns, runs := 0, 0
		for _, s := range m.Samples {
			if s.Name == "answer" && s.Labels.Get(record.LabelTurn) != "" {
				turns++
			}
		}
		for _, p := range m.Phases {
			if p.Name == PhaseRun {
				runs++
			}
		}
		if turns != 3 || runs != 3 {
			t.Errorf("%d answers of turns, %d phases %s, want 3 of each", turns, runs, PhaseRun)
		}
	}
}

// TestTurnsThatFail: the failed trial ends at once, and the others go on.
func TestTurnsThatFail(t *testing.T) {
	e, _ := engine(t, "")
	turning(e)
	e.Kinds["other"].(*kind).bad = "die client"
	for _, m := range e.Trials(t.Context(), of(t, e)) {
		bad := m.Cell.Key() == e.Study.Strata[0].Cells[1].Key()
		if failed := m.Status == record.Failed; failed != bad {
			t.Errorf("%s: status %s, %+v", m.Cell.Key(), m.Status, m.Failure)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, m := range e.Trials(ctx, of(t, e)) {
		if m.Status != record.Failed {
			t.Errorf("interrupted: %s %s", m.Cell.Key(), m.Status)
		}
	}
}

// TestTurnsAlone: where a block has no room for all its sandboxes at once, each trial has all its turns before the next one starts.
func TestTurnsAlone(t *testing.T) {
	e, j := engine(t, "")
	turning(e)
	e.Alone = []string{e.Study.Strata[0].Key}
	nexts := of(t, e)
	made := e.Trials(t.Context(), nexts)
	if len(made) != 2 || made[0].Seq != nexts[0].Seq || made[1].Seq != nexts[1].Seq || made[0].Status != record.OK || made[1].Status != record.OK {
		t.Fatalf("%+v", made)
	}
	var lines []string
	for _, l := range j.lines {
		if strings.HasPrefix(l, "start client") || strings.HasPrefix(l, "exec call") || strings.HasPrefix(l, "stop client") || strings.HasPrefix(l, "release") {
			lines = append(lines, strings.Fields(l)[0])
		}
	}
	want := strings.Fields("start exec exec exec stop release start exec exec exec stop release")
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
	for _, m := range append(made, e.Trials(t.Context(), nexts[1:])...) { // also the rest of an interrupted block
		if len(m.Warnings) != 1 || m.Warnings[0].Code != "alone" {
			t.Errorf("warnings %v", m.Warnings)
		}
	}
}

// TestIdleCPU: two turns of a second each, and between them half a second of CPU in ten.
func TestIdleCPU(t *testing.T) {
	at := record.MakeLabels(record.LabelEndpoint, "server")
	turn := func(from time.Duration, v float64) record.Series {
		return record.Series{Name: record.CgroupCPU, Labels: at, Unit: record.Second, Kind: record.Counter, T: []time.Duration{from, from + time.Second}, V: []float64{v, v + 1}}
	}
	tr := &trial{rec: &record.Trial{}, evidence: record.Evidence{Series: []record.Series{turn(0, 3), turn(11*time.Second, 4.5)}}}
	tr.keepIdle()
	want := []record.Sample{{Name: record.IdleCPU, Labels: at, Unit: record.Cores, Kind: record.Value, Value: 0.05}}
	if d := cmp.Diff(want, tr.rec.Samples); d != "" {
		t.Error(d)
	}
	if len(tr.rec.Warnings) != 1 || !strings.Contains(tr.rec.Warnings[0].Text, "used 5 % of a core") {
		t.Errorf("warnings %v", tr.rec.Warnings)
	}
	// The last reading of a turn on another machine may be from before its end.
	for what, loaded := range map[string]window.Span{"of the first turn": {From: 0, To: 1100 * time.Millisecond}, "of the second": {From: 10900 * time.Millisecond, To: 12 * time.Second}} {
		tr.rec, tr.readings = &record.Trial{}, []reading{{loaded: loaded}}
		if tr.keepIdle(); len(tr.rec.Samples)+len(tr.rec.Warnings) > 0 {
			t.Errorf("a part %s counts as idle: %v", what, tr.rec.Samples)
		}
	}
	tr.rec, tr.readings = &record.Trial{}, []reading{{loaded: window.Span{From: 0, To: time.Second}}, {loaded: window.Span{From: 11 * time.Second, To: 12 * time.Second}}}
	if tr.keepIdle(); len(tr.rec.Samples) != 1 {
		t.Errorf("turns between the readings: %v", tr.rec.Samples)
	}
}

// TestCombine: three turns of 1, 4 and 16.
func TestCombine(t *testing.T) {
	e, j := engine(t, "")
	e.Study.Workloads[0].Turns = 3
	e.Workloads["load"] = &counter{load: load{j: j}}
	m := e.Trials(t.Context(), of(t, e))[0]
	if m.Status != record.OK {
		t.Fatalf("%+v", m.Failure)
	}
	got := map[string]float64{}
	for _, s := range m.Samples {
		if s.Labels == "" {
			got[s.Name] = s.Value
		}
	}
	for name, want := range map[string]float64{"answer": 4, "depth": 7, "depth_max": 16, "latency_p50": 8, "latency_p999": 8} {
		if math.Abs(got[name]-want) > 0.01*want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
	if len(m.Histograms) != 1 {
		t.Fatalf("%d histograms", len(m.Histograms))
	}
	if h, err := hdrhistogram.Decode(m.Histograms[0].Encoded); err != nil || h.TotalCount() != 21 {
		t.Errorf("%v events, %v; want 21", h.TotalCount(), err)
	}
	i := slices.IndexFunc(m.Evidence.Series, func(s record.Series) bool { return s.Name == "rate" })
	if i < 0 || !slices.Equal(m.Evidence.Series[i].V, []float64{1, 4, 16}) || !slices.IsSorted(m.Evidence.Series[i].T) {
		t.Errorf("series %+v", m.Evidence.Series)
	}
	n := 0
	for _, w := range m.Warnings {
		if w.Code == "odd" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d warnings of one kind, want one: %v", n, m.Warnings)
	}
	dropped := 0
	for _, l := range j.lines {
		switch l {
		case "drop caches":
			dropped++
		}
	}
	if dropped != 3 {
		t.Errorf("caches dropped %d times, want before each turn: %v", dropped, j.lines)
	}
	for _, r := range m.Evidence.Raw {
		if r.Name == "client.stdout" {
			t.Errorf("output %s does not say its turn", r.Name)
		}
	}
}
