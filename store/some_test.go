package store

import (
	"maps"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/record"
)

// TestSomeIsPartOfAll: what is picked is what All has less what was not wanted,
// in the same order, over several batches, with one loader and with two.
func TestSomeIsPartOfAll(t *testing.T) {
	s := newStore(t)
	appendN(t, s, 1, 2*batchSize+3)
	whole, err := s.Trials()
	if err != nil {
		t.Fatal(err)
	}
	label, named := "", ""
	for _, p := range whole[0].Samples {
		if p.Labels != "" {
			named = p.Name // the last
		}
	}
	for i := range whole {
		x := &whole[i]
		x.Histograms = nil
		maps.DeleteFunc(x.Facts, func(k, _ string) bool { return k != "runtime" })
		var kept []record.Sample
		for _, p := range x.Samples {
			if pairs := p.Labels.Pairs(); label == "" && len(pairs) > 0 {
				label = pairs[0][0]
			}
			if p.Labels == "" || label != "" && p.Labels.Get(label) != "" {
				p.Original = ""
				kept = append(kept, p)
			}
		}
		x.Samples = kept
	}
	if len(whole) != 2*batchSize+3 || label == "" || len(whole[0].Facts) != 1 {
		t.Fatalf("%d trials with the label %q prove nothing", len(whole), label)
	}
	ro, err := OpenReadOnly(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer ro.Close()
	for i, from := range []*Store{s, ro} {
		var got []record.Trial
		pick := Pick{NoHistograms: true, Facts: []string{"time", "nothing"}}
		if i == 0 { // the sample with a label is wanted either way
			pick.Labels = []string{label}
		} else {
			pick.Names = []string{named}
		}
		for x, err := range from.Some(t.Context(), pick) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, x)
		}
		if d := cmp.Diff(whole, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("with %d loaders (-all +some):\n%.2000s", from.readers, d)
		}
		n := 0
		for range from.Some(t.Context(), Pick{All: true}) {
			if n++; n == batchSize+1 {
				break // nothing may be left that holds a connection
			}
		}
		if _, err := from.Skips(); err != nil {
			t.Error(err)
		}
	}
}

// TestStateChangesWithTheResults and with nothing else.
func TestStateChangesWithTheResults(t *testing.T) {
	s := newStore(t)
	appendN(t, s, 1, 2)
	read := func() State {
		t.Helper()
		x, err := s.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	before := read()
	if again := read(); again != before || before.Trials != 2 {
		t.Errorf("%+v, then %+v", before, again)
	}
	appendN(t, s, 3, 3)
	if after := read(); after == before || after.Trials != 3 {
		t.Errorf("a third trial: %+v, before %+v", after, before)
	}
	if w := Writer(s.Dir()); w == nil || w.Pid != os.Getpid() {
		t.Errorf("an open store is written by %+v", w)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if Writer(s.Dir()) != nil || Writer(t.TempDir()) != nil {
		t.Error("nobody writes, and it says so")
	}
}

// TestSomeOfAllFacts: "" ends every name.
func TestSomeOfAllFacts(t *testing.T) {
	s := newStore(t)
	appendN(t, s, 1, 1)
	want, _ := testTrial(1)
	n := 0
	for got, err := range s.Some(t.Context(), Pick{Facts: []string{""}}) {
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want.Facts, got.Facts); d != "" {
			t.Error(d)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d trials", n)
	}
}
