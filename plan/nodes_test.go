package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/study"
)

// on is a trial that ran where the plan said.
func on(trial func(Next) *record.Trial) func(Next) *record.Trial {
	return func(n Next) *record.Trial {
		t := trial(n)
		t.Node = n.Node
		return t
	}
}

// TestOneNodeIsAsNone: with one node, the order is that of a plan that knows no nodes,
// and results of before nodes were known go on in it.
func TestOneNodeIsAsNone(t *testing.T) {
	st := counted(watched(4, 3, 0, 0.05))
	st.Stop.Fixed, st.Retries = 12, 1
	w := restless{world: world{noise: 0.02, fail: 0.1}, scatter: 0.02, level: stepAt(100, 0.3)}
	want, trials := playOn(t, New(st, nil, nil), w.trial)
	p := New(st, nil, []string{"a"})
	got, _ := playOn(t, p, on(w.trial))
	for i := range got {
		if got[i].Node != "a" {
			t.Fatalf("trial %d runs on %q", i+1, got[i].Node)
		}
		got[i].Node = ""
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	if len(p.Epochs()) < 2 {
		t.Error("the machine did not change: this shows little")
	}
	for _, cut := range []int{1, 50, 51, 52, 120} {
		p := New(st, nil, []string{"a"})
		for _, x := range trials[:cut] {
			p.Done(x)
		}
		rest, _ := playOn(t, p, on(w.trial))
		for i := range rest {
			rest[i].Node = ""
		}
		if d := cmp.Diff(want[cut:], rest); d != "" {
			t.Fatalf("cut at %d: %s", cut, d)
		}
	}
}

// TestStrataTakeTurns: each stratum visits the nodes in turn, and in each pass they have
// equally many blocks, in whatever order they are listed.
func TestStrataTakeTurns(t *testing.T) {
	st := watched(7, 2, 1, 0)
	st.Stop.Fixed = 6
	nodes := []string{"a", "b", "c"}
	w := restless{world: world{noise: 0.5}, scatter: 0.02}
	p := New(st, nil, nodes)
	preview := p.Preview(0)
	order, _ := playOn(t, p, on(w.trial))
	if d := cmp.Diff(preview, order[:len(preview)]); d != "" {
		t.Errorf("-preview +order\n%s", d)
	}
	other, _ := playOn(t, New(st, nil, []string{"c", "a", "b", "a"}), on(w.trial))
	if d := cmp.Diff(order, other); d != "" {
		t.Errorf("the list in another order: %s", d)
	}
	at := map[ref]string{}
	for _, n := range order {
		if n.Sentinel {
			continue
		}
		of := ref{n.Block, n.Stratum}
		if at[of] != "" && at[of] != n.Node {
			t.Errorf("block %d of stratum %d is on %s and %s", n.Block, n.Stratum, at[of], n.Node)
		}
		at[of] = n.Node
	}
	for pass := 1; pass <= 6; pass++ {
		blocks := map[string]int{}
		for i := range st.Strata {
			node := at[ref{pass, i}]
			blocks[node]++
			if before := at[ref{pass - 1, i}]; before != "" && slices.Index(nodes, node) != (slices.Index(nodes, before)+1)%3 {
				t.Errorf("stratum %d goes from %s to %s", i, before, node)
			}
		}
		for _, n := range nodes {
			if blocks[n] < 2 || blocks[n] > 3 {
				t.Errorf("pass %d: %v", pass, blocks)
			}
		}
	}
}

// TestSentinelOfEachNode: a change of one node is an epoch of that node, and makes its
// blocks run again, there.
func TestSentinelOfEachNode(t *testing.T) {
	st := watched(4, 2, 2, 0)
	st.Stop.Fixed = 24
	p := New(st, nil, []string{"a", "b"})
	w := restless{world: world{noise: 0.02, duration: time.Second}, scatter: 0.02}
	order, _ := playOn(t, p, on(func(n Next) *record.Trial {
		x := w.trial(n)
		if n.Node == "b" && n.Seq > 120 {
			x.Samples[0].Value *= 1.3
		}
		return x
	}))
	epochs := p.Epochs()
	if len(epochs) != 2 || epochs[0].Node != "b" || epochs[1].Node != "b" || epochs[1].After > 120 || epochs[1].Seq <= 120 || len(epochs[1].Blocks) == 0 {
		t.Fatalf("%+v", epochs)
	}
	at, again := map[ref]string{}, 0
	for _, n := range order {
		of := ref{n.Block, n.Stratum}
		if n.Again {
			again++
			if n.Node != "b" || at[of] != "b" {
				t.Errorf("%+v runs again, and was on %s", n, at[of])
			}
		}
		at[of] = n.Node
	}
	if again != 2*len(epochs[1].Blocks) {
		t.Errorf("%d trials ran again of %d blocks", again, len(epochs[1].Blocks))
	}
	for i, s := range p.Sentinels() {
		if n := order[s.Seq-1]; !n.Sentinel || n.Node != s.Node {
			t.Errorf("value %d is of %+v", i, n)
		}
	}
}

// TestLostNode: the block under way begins again, whole, on another node, whoever says
// that its node is lost. What was finished stays, also when the node is back.
func TestLostNode(t *testing.T) {
	for _, how := range []string{"its trial fails", "the site says so", "it is not in the list"} {
		st := makeStudy(3, 4)
		st.Stop.Fixed = 6
		w := world{noise: 0.5}
		p := New(st, nil, []string{"a", "b"})
		var trials []*record.Trial
		var n Next
		for range 5*4 + 2 { // two trials of the sixth block
			n, _ = p.Next()
			trials = append(trials, on(w.trial)(n))
			p.Done(trials[len(trials)-1])
		}
		lost, block := n.Node, n
		left := map[string]string{"a": "b", "b": "a"}[lost]
		switch how {
		case "its trial fails":
			n, _ = p.Next()
			trials = append(trials, &record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Node: n.Node, Cell: n.Cell, Status: record.Failed,
				Failure: &record.Failure{Kind: record.NodeLost, Reason: "the node is gone"}})
			p.Done(trials[len(trials)-1])
			fallthrough
		case "the site says so":
			if !p.Lost(lost) || p.Lost(left) {
				t.Errorf("%s: the last node is lost", how)
			}
		default:
			p = New(st, nil, []string{left})
			for _, x := range trials {
				p.Done(x)
			}
		}
		seen := map[string]bool{}
		for range 4 {
			n, _ = p.Next()
			if n.Node != left || n.Block != block.Block || n.Stratum != block.Stratum || seen[n.Cell.Key()] {
				t.Errorf("%s on %s: goes on with %+v", how, lost, n)
			}
			seen[n.Cell.Key()] = true
			trials = append(trials, on(w.trial)(n))
			p.Done(trials[len(trials)-1])
		}
		p = New(st, nil, []string{"a", "b"}) // the node is back
		for _, x := range trials {
			p.Done(x)
		}
		order, rest := playOn(t, p, on(w.trial))
		if len(order) != 4*(18-6) || !slices.ContainsFunc(order, func(n Next) bool { return n.Node == lost }) {
			t.Errorf("%s: %d trials to do", how, len(order))
		}
		oneNode(t, how, p, append(trials, rest...))
	}
}

// oneNode checks that all trials that count in a block ran on one node.
func oneNode(t *testing.T, what string, p *Plan, trials []*record.Trial) {
	t.Helper()
	last := map[string]*record.Trial{}
	for _, x := range trials {
		if id, ok := p.index[x.Cell.Key()]; ok && x.Status == record.OK && p.Counts(x) {
			k := fmt.Sprint(id, " ", x.Block)
			if o := last[k]; o == nil || o.Attempt < x.Attempt {
				last[k] = x
			}
		}
	}
	at := map[ref]string{}
	for _, x := range last {
		of := ref{x.Block, p.cells[p.index[x.Cell.Key()]].stratum}
		if o, ok := at[of]; ok && o != x.Node {
			t.Fatalf("%s: block %+v counts trials of %s and %s", what, of, o, x.Node)
		}
		at[of] = x.Node
	}
}

// life plays a study through sessions with nodes that come and go.
func life(t *testing.T, seed uint64) (moved int) {
	r := rand.New(rand.NewPCG(seed, 5))
	st := watched(1+r.IntN(4), 1+r.IntN(3), r.IntN(3), 0.1)
	if r.IntN(3) == 0 {
		st.Sentinel = nil
	}
	if r.IntN(3) == 0 {
		st = counted(st)
	}
	st.Seed, st.Retries, st.Stop.Fixed = seed, r.IntN(2), 2+r.IntN(14)
	if r.IntN(3) == 0 {
		st.Budget.Time = time.Duration(1+r.IntN(100)) * time.Second
	}
	all := []string{"a", "b", "c"}[:1+r.IntN(3)]
	w := restless{world: world{seed: seed, noise: 0.05, fail: []float64{0, 0.2}[r.IntN(2)]}, scatter: 0.02, level: stepAt(r.IntN(80), 0.5)}
	nodes := slices.Clone(all)
	p := New(st, nil, nodes)
	what := fmt.Sprintf("seed %d", seed)
	var trials []*record.Trial
	add := func(x *record.Trial) {
		trials = append(trials, x)
		p.Done(x)
	}
	begun := map[ref]string{}
	again := map[ref]bool{}
	for {
		n, more := p.Next()
		shuffled := replay(r, st, nodes, trials)
		if m, also := shuffled.Next(); more != also || !cmp.Equal(n, m) || p.Reason() != shuffled.Reason() {
			t.Fatalf("%s: after %d trials on %v: %+v %v %q, replayed %+v %v %q", what, len(trials), nodes, n, more, p.Reason(), m, also, shuffled.Reason())
		}
		if !more {
			break
		}
		if len(trials) > 5000 {
			t.Fatalf("%s: it does not end", what)
		}
		if !slices.Contains(nodes, n.Node) {
			t.Fatalf("%s: %+v is on none of %v", what, n, nodes)
		}
		of := ref{n.Block, n.Stratum}
		if !n.Sentinel && !n.Counting {
			if again[of] == n.Again && begun[of] != "" && begun[of] != n.Node {
				moved++
			}
			begun[of], again[of] = n.Node, n.Again
		}
		switch r.IntN(40) {
		case 0: // the trial says that its node is gone
			add(&record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Node: n.Node, Cell: n.Cell, Status: record.Failed, Duration: time.Minute,
				Failure: &record.Failure{Kind: record.NodeLost, Reason: "gone"}})
			if p.Lost(n.Node) {
				nodes = slices.DeleteFunc(nodes, func(x string) bool { return x == n.Node })
			}
		case 1: // the site does
			if p.Lost(n.Node) {
				nodes = slices.DeleteFunc(nodes, func(x string) bool { return x == n.Node })
			}
		case 2: // the study is stopped, and goes on with other nodes
			add(&record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Node: n.Node, Cell: n.Cell, Status: record.Failed, Duration: time.Hour,
				Failure: &record.Failure{Kind: record.Interrupted, Reason: "Ctrl-C"}})
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			nodes = slices.Clone(all[:1+r.IntN(len(all))])
			p = replay(r, st, nodes, trials)
		default:
			add(on(w.trial)(n))
		}
	}
	oneNode(t, what, p, trials)
	return moved
}

// replay is a new plan that was told the results in any order.
func replay(r *rand.Rand, st *study.Study, nodes []string, trials []*record.Trial) *Plan {
	p := New(st, nil, nodes)
	part := slices.Clone(trials)
	r.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	for _, x := range part {
		p.Done(x)
		if r.IntN(20) == 0 {
			p.Next() // asking in between changes nothing
		}
	}
	return p
}

// TestLivesWithNodes: whatever happens to nodes, trials and sessions, the trials of a
// block that count ran on one node, and the results alone, in any order, say what comes
// next.
func TestLivesWithNodes(t *testing.T) {
	moved := 0
	for seed := range uint64(100) {
		moved += life(t, seed)
	}
	if moved < 50 {
		t.Errorf("only %d blocks began again on another node: this proves little", moved)
	}
}

func FuzzLivesWithNodes(f *testing.F) {
	f.Add(uint64(790)) // a result that comes after a later one
	f.Fuzz(func(t *testing.T, seed uint64) { life(t, seed) })
}

// TestUses: the nodes of a trial begin with its block's, and go round in the order of their names.
func TestUses(t *testing.T) {
	spread := func(n string) record.Cell {
		return record.Cell{{Factor: study.FactorCopies, Value: n}, {Factor: study.FactorCopiesOn, Value: study.CopiesSpread}}
	}
	apart := record.Level{Factor: study.FactorLinkPath, Value: record.PathNodes}
	for _, tt := range []struct {
		nodes []string
		on    string
		cell  record.Cell
		want  []string
	}{
		{[]string{"c", "a", "b"}, "b", spread("1"), []string{"b"}},
		{[]string{"c", "a", "b"}, "b", spread("2"), []string{"b", "c"}},
		{[]string{"c", "a", "b"}, "b", spread("8"), []string{"b", "c", "a"}},
		{[]string{"c", "a", "b"}, "c", append(spread("2"), apart), []string{"c", "a", "b"}},
		{[]string{"c", "a", "b"}, "c", record.Cell{apart}, []string{"c", "a"}},
		{[]string{"a"}, "a", append(spread("2"), apart), []string{"a"}},
	} {
		got := New(watched(1, 2, 0, 0.05), nil, tt.nodes).Uses(Next{Cell: tt.cell, Node: tt.on})
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s on %s of %q: %s", tt.cell, tt.on, tt.nodes, d)
		}
	}
	if got := After([]string{"a", "b"}, "gone", 1); got != "" {
		t.Errorf("after a node that is not there: %q", got)
	}
}
