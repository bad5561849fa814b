package run

import (
	"errors"
	"slices"
	"testing"

	"tare/plan"
	"tare/record"
	"tare/study"
)

// large is a study of four strata of three cells, with a sentinel before every second
// block of a node.
func large() *study.Study {
	st := small()
	st.Stop.Fixed, st.Strata = 12, nil
	for _, w := range []string{"w0", "w1", "w2", "w3"} {
		cell := func(sandbox string) record.Cell {
			return record.Cell{{Factor: "workload", Value: w}, {Factor: "sandbox", Value: sandbox}}
		}
		st.Strata = append(st.Strata, study.Stratum{Key: "workload=" + w, Shared: cell("")[:1], Cells: []record.Cell{cell("process"), cell("runc"), cell("vm")}})
	}
	st.Sentinel = &study.Sentinel{Every: 2, Cell: record.Cell{{Factor: "workload", Value: study.SentinelLabel}, {Factor: "sandbox", Value: "process"}},
		Workload: study.Workload{Label: study.SentinelLabel, Kind: "syscall", Responses: []string{"answer"}}}
	return st
}

// resume is a plan that knows what is kept, as a command makes it.
func resume(st *study.Study, s *session, kept *memory) *plan.Plan {
	p := plan.New(st, nil, Nodes(s))
	for i := range kept.trials {
		p.Done(&kept.trials[i])
	}
	return p
}

type block struct {
	pass    int
	stratum string
}

func blockOf(t *record.Trial) block {
	w, _ := t.Cell.Get("workload")
	return block{t.Block, w}
}

// nodesOf returns where each block's trials that count ran, and checks that it is whole
// and on one node.
func nodesOf(t *testing.T, st *study.Study, p *plan.Plan, kept *memory) map[block]string {
	t.Helper()
	at, cells := map[block]string{}, map[block]int{}
	for i := range kept.trials {
		x := &kept.trials[i]
		if x.Status != record.OK || x.Cell.Key() == st.Sentinel.Cell.Key() || !p.Counts(x) {
			continue
		}
		b := blockOf(x)
		if cells[b]++; at[b] != "" && at[b] != x.Node {
			t.Errorf("block %v is on %s and %s", b, at[b], x.Node)
		}
		at[b] = x.Node
	}
	for b, n := range cells {
		if n != 3 {
			t.Errorf("block %v has %d trials that count", b, n)
		}
	}
	return at
}

// TestTwoNodes: a study on a site with two nodes. Each block is on one of them, both have
// as many, and where one of them changes, its own blocks run again.
func TestTwoNodes(t *testing.T) {
	st, kept := large(), &memory{}
	s := &session{nodes: []string{"a", "b"}, value: func(n plan.Next) float64 {
		v := 42 + 0.1*float64(n.Seq*7%5)
		if n.Node == "b" && n.Seq > 60 {
			v *= 1.5
		}
		return v
	}}
	p := plan.New(st, nil, Nodes(s))
	if err := (&Engine{Session: s, Store: kept}).Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	blocks := map[string]int{}
	for _, node := range nodesOf(t, st, p, kept) {
		blocks[node]++
	}
	if blocks["a"] != 24 || blocks["b"] != 24 {
		t.Errorf("blocks: %v, want half of 48 on each node", blocks)
	}
	epochs := p.Epochs()
	if len(epochs) != 2 || epochs[1].Node != "b" || epochs[1].After > 60 || epochs[1].Seq < 60 {
		t.Fatalf("epochs: %+v", epochs)
	}
	superseded := map[string]int{}
	for i := range kept.trials {
		if !p.Counts(&kept.trials[i]) {
			superseded[kept.trials[i].Node]++
		}
	}
	if superseded["a"] != 0 || superseded["b"] != 3*len(epochs[1].Blocks) || superseded["b"] == 0 {
		t.Errorf("superseded: %v, of %d blocks", superseded, len(epochs[1].Blocks))
	}
	sentinels := map[string]int{}
	for _, x := range p.Sentinels() {
		sentinels[x.Node]++
	}
	if sentinels["a"] < 12 || sentinels["b"] < 12 {
		t.Errorf("sentinels: %v, want one for every two of 24 blocks", sentinels)
	}
}

// TestNodeLost: a node that is lost in the middle of a block. The block begins again on
// the other one, which has the rest; then the study is killed and goes on with that node
// alone, and at last with both.
func TestNodeLost(t *testing.T) {
	st, kept := large(), &memory{}
	gone := plan.Next{}
	inside := 0 // good trials of the block under way
	s := &session{nodes: []string{"a", "b"}, gone: func(n plan.Next) bool {
		if n.Sentinel {
			inside = 0
			return gone.Node == n.Node
		}
		if inside++; gone.Node == "" && n.Block == 2 && inside%3 == 0 {
			gone = n
		}
		return gone.Node == n.Node
	}}
	kept.most = 45
	if err := (&Engine{Session: s, Store: kept}).Run(t.Context(), plan.New(st, nil, Nodes(s))); !errors.Is(err, errFull) {
		t.Fatalf("error %v", err)
	}
	if gone.Node == "" {
		t.Fatal("no node was lost")
	}
	left := map[string]string{"a": "b", "b": "a"}[gone.Node]
	of := blockOf(&record.Trial{Block: gone.Block, Cell: gone.Cell})
	var where []string // of the trials of the block
	for i := range kept.trials {
		x := &kept.trials[i]
		if x.Seq > gone.Seq && x.Node != left {
			t.Errorf("trial %d asks a lost node", x.Seq)
		}
		if blockOf(x) == of {
			where = append(where, x.Node)
		}
	}
	if want := []string{gone.Node, gone.Node, gone.Node, left, left, left}; !slices.Equal(where, want) {
		t.Errorf("the block ran on %v, want %v", where, want)
	}

	part := len(kept.trials)
	alone := &session{nodes: []string{left}}
	kept.most = 70
	if err := (&Engine{Session: alone, Store: kept}).Run(t.Context(), resume(st, alone, kept)); !errors.Is(err, errFull) {
		t.Fatalf("error %v", err)
	}
	for _, x := range kept.trials[part:] {
		if x.Node != left {
			t.Errorf("trial %d ran on %s, which is not there", x.Seq, x.Node)
		}
	}

	part, kept.most = len(kept.trials), 0
	back := &session{nodes: []string{"a", "b"}}
	p := resume(st, back, kept)
	if err := (&Engine{Session: back, Store: kept}).Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(kept.trials[part:], func(x record.Trial) bool { return x.Node == gone.Node }) {
		t.Errorf("node %s is back, and has no trials", gone.Node)
	}
	if at := nodesOf(t, st, p, kept); len(at) != 48 || at[of] != left {
		t.Errorf("%d blocks, want 48; that of the loss counts on %s", len(at), at[of])
	}
}

// TestLastNodeLost ends the study, and says so.
func TestLastNodeLost(t *testing.T) {
	kept := &memory{}
	s := &session{nodes: []string{"a", "b"}, gone: func(n plan.Next) bool { return n.Seq > 3 }}
	err := (&Engine{Session: s, Store: kept}).Run(t.Context(), plan.New(small(), nil, Nodes(s)))
	if !errors.Is(err, ErrNoNode) || len(kept.trials) != 5 {
		t.Errorf("error %v, %d trials kept", err, len(kept.trials))
	}
}
