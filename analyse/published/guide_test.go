package published

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"tare/analyse/stat"
	catalogues "tare/catalogue"
	"tare/param"
	"tare/record"
	sandboxes "tare/sandbox/all"
	"tare/study"
	"tare/workload"
	"tare/workload/all"
)

// guideOf reads the guide's table, which is built in.
func guideOf() *guide {
	g, err := readGuide()
	if err != nil {
		panic(err)
	}
	return &g
}

// Each mapping names a kind of workload that there is, parameters that it takes,
// and a response that it has under them.
func TestMappingsNameWhatThereIs(t *testing.T) {
	kinds := map[string]workload.Workload{}
	for _, w := range all.Workloads() {
		kinds[w.Name()] = w
	}
	for name, m := range guideOf().Figures {
		w, ok := kinds[m.Kind]
		if !ok {
			t.Errorf("%s: there is no workload %s", name, m.Kind)
			continue
		}
		given, theirs := param.Values{}, param.Values{}
		for k, alternatives := range m.Params {
			given[k] = lastOf(t, w, name, k, alternatives)
		}
		for k, alternatives := range m.Theirs {
			if _, ok := m.Params[k]; ok {
				t.Errorf("%s: %s is both wanted and the guide's", name, k)
			}
			theirs[k] = lastOf(t, w, name, k, alternatives)
		}
		maps.Copy(theirs, given)
		if _, err := param.Fill(w.Params(), theirs); err != nil {
			t.Errorf("%s: the guide's parameters: %v", name, err)
		}
		v, err := param.Fill(w.Params(), given)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.ContainsFunc(w.Responses(v), func(r record.Response) bool { return r.Name == m.Response }) {
			t.Errorf("%s: %s has no response %s under %v", name, m.Kind, m.Response, given)
		}
	}
}

// lastOf is the last of a parameter's alternatives; what is "not given" must be what
// one of them says.
func lastOf(t *testing.T, w workload.Workload, mapping, name, alternatives string) string {
	t.Helper()
	p, ok := param.Find(w.Params(), name)
	if !ok {
		t.Errorf("%s: %s has no parameter %s", mapping, w.Name(), name)
		return ""
	}
	list := strings.Split(alternatives, "|")
	if slices.Contains(list, "") && !slices.ContainsFunc(list, func(a string) bool { return a != "" && same(a, p.Default) }) {
		t.Errorf("%s: %s is %s unless given, and the mapping has %q", mapping, name, p.Default, alternatives)
	}
	return list[len(list)-1]
}

// What a study gives otherwise than the guide is told with the row.
func TestWhatIsOtherIsTold(t *testing.T) {
	m := guideOf().Figures["media.ffmpeg/transcode"]
	for _, c := range []struct {
		params param.Values
		want   []string
	}{
		{param.Values{"frames": "all", "preset": "veryslow", "caches": "cold"}, nil},
		{param.Values{"frames": "75", "preset": "veryslow"}, []string{"caches is not given here, and cold in the guide", "frames is 75 here, and all in the guide"}},
	} {
		got := m.expected(&study.Stratum{}, &study.Workload{Params: c.params})
		if !slices.Equal(got, append(c.want, m.Other...)) {
			t.Errorf("%v: %q", c.params, got)
		}
	}
}

// The shipped studies measure every published figure, the small one all but KVM's.
func TestShippedStudiesMeasureAll(t *testing.T) {
	for _, c := range []struct {
		file    string
		missing int
	}{{"gvisor-guide-small", 1}, {"gvisor-guide", 0}} {
		src, err := os.ReadFile("../../studies/" + c.file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		st, err := study.Parse(c.file, src, catalogue(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		// Whatever is asked for has the ratio 2.
		tab := Compare(st, stat.NewRule(0.95, 0.05, 0.03, []int{3}, 0), func(base, other record.Cell, response string) stat.Summary {
			return stat.Summarise([]stat.Pair{{Base: 1, Other: 2}, {Base: 2, Other: 4.01}, {Base: 1, Other: 2}})
		}, st.Traits)
		if len(tab.Rows) != len(mustFigures(t)) {
			t.Errorf("%s: %d rows for %d figures: one is measured twice", c.file, len(tab.Rows), len(mustFigures(t)))
		}
		missing := 0
		for _, r := range tab.Rows {
			if r.Agreement == NotMeasured {
				missing++
				if r.Platform != "kvm" {
					t.Errorf("%s: %s %s: %s", c.file, r.Benchmark, r.Case, r.Why)
				}
			}
		}
		if missing != c.missing {
			t.Errorf("%s: %d figures are not measured, want %d", c.file, missing, c.missing)
		}
	}
}

func mustFigures(t *testing.T) []Figure {
	t.Helper()
	f, err := guideFigures()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// catalogue has the real workloads, and sandboxes by name.
func catalogue(t *testing.T) study.Catalogue {
	t.Helper()
	return catalogues.Of(all.Workloads(), sandboxes.Kinds(sandboxes.Env{}), nil)
}
