package syscalls

import (
	"slices"
	"testing"

	"tare/analyse/structural"
	"tare/param"
	"tare/record"
	"tare/study"
)

// TestPriced: the analysis of structural cost finds its prices by names of this
// workload. One that is renamed here would be priced no more, without a word.
func TestPriced(t *testing.T) {
	w := Workload{}
	if w.Name() != study.PriceKind {
		t.Errorf("the workload is %q, prices are read of %q", w.Name(), study.PriceKind)
	}
	responses, params := structural.Words()
	for _, name := range append(params, study.PriceParam) {
		if _, ok := param.Find(w.Params(), name); !ok {
			t.Errorf("there is no parameter %q", name)
		}
	}
	if p, _ := param.Find(w.Params(), study.PriceParam); p.Default != study.PriceLevel {
		t.Errorf("the default of %s is %q, want %q", p.Name, p.Default, study.PriceLevel)
	}
	for _, name := range responses {
		if !slices.ContainsFunc(w.Responses(nil), func(r record.Response) bool { return r.Name == name && r.Operation == "call" }) {
			t.Errorf("there is no response %q of a call", name)
		}
	}
	priced := false
	for _, k := range structural.PricedCalls() {
		priced = priced || k.Name == study.PriceLevel
		i := slices.IndexFunc(calls(), func(c call) bool { return c.name == k.Name })
		if i < 0 {
			t.Errorf("there is no kind %q", k.Name)
		} else if each := calls()[i].each; float64(each) != k.Calls {
			t.Errorf("an operation of %s makes %d calls, its price is shared among %g", k.Name, each, k.Calls)
		}
	}
	if !priced {
		t.Errorf("%s prices no call", study.PriceLevel)
	}
}
