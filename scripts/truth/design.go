package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/param"
	"tare/record"
	"tare/study"
)

// response is what the simulated workloads measure.
const response = "time"

// further is their second response, where they have one: it stops nothing.
const further = "further"

// shape is what a simulated study compares.
type shape struct {
	workloads int
	points    int  // strata of each workload
	treats    int  // sandboxes beside the baseline
	nested    int  // more treatments: one sandbox with this many levels of a parameter of its own
	second    bool // workloads have a second response, which does not decide when to stop
}

func (s shape) strata() int     { return s.workloads * s.points }
func (s shape) treatments() int { return s.treats + s.nested }

// String is "STRATA x TREATMENTS"; where a workload has several strata, the workloads follow.
func (s shape) String() string {
	out := fmt.Sprintf("%d x %d", s.strata(), s.treatments())
	if s.points > 1 {
		out += fmt.Sprintf(" of %d workloads", s.workloads)
	}
	if s.nested > 0 {
		out += fmt.Sprintf(", %d of one sandbox", s.nested)
	}
	if s.second {
		out += ", two responses"
	}
	return out
}

// names are the responses.
func (s shape) names() []string {
	if s.second {
		return []string{response, further}
	}
	return []string{response}
}

// rule is how a study stops: the text of its section stop, "" for tare's own rule.
type rule struct{ name, stop string }

// text is the study file of a shape under a rule, with a table of geometric means over all
// strata and, where workloads have several, one with a column for each.
func (s shape) text(r rule) []byte {
	var b strings.Builder
	b.WriteString("study: simulated\nbaseline: process\nsentinel: off\ncalls: off\nfactors:\n  sandbox: [process")
	for k := range s.treats {
		fmt.Fprintf(&b, ", box%d", k+1)
	}
	if s.nested > 0 {
		b.WriteString(", sized")
	}
	b.WriteString("]\n")
	if s.nested > 0 {
		b.WriteString("  parts: " + numbers(s.nested) + "\n")
	}
	b.WriteString("workloads:\n")
	for i := range s.workloads {
		fmt.Fprintf(&b, "  w%d: {kind: simulated, point: %s, responses: [%s]}\n", i+1, numbers(s.points), strings.Join(s.names(), ", "))
	}
	rows := "[sandbox]"
	if s.nested > 0 {
		rows = "[sandbox, parts]"
	}
	fmt.Fprintf(&b, "tables:\n  all: {response: %s, rows: %s}\n", response, rows)
	if s.points > 1 {
		fmt.Fprintf(&b, "  each: {response: %s, rows: %s, columns: workload}\n", response, rows)
	}
	if r.stop != "" {
		fmt.Fprintf(&b, "stop: %s\n", r.stop)
	}
	return []byte(b.String())
}

func numbers(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprint(i + 1)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// catalogue is what simulated studies are made of.
func catalogue(s shape) study.Catalogue {
	c := study.Catalogue{
		Workloads: map[string]study.WorkloadInfo{"simulated": {
			Params:    []param.Param{{Name: "point", Type: param.Int, Default: "1", Help: "tells the strata of a workload apart"}},
			Responses: func(param.Values) []record.Response { return responses()[:len(s.names())] },
			Endpoints: 1,
		}},
		Sandboxes: map[string]study.SandboxInfo{"process": {}, "sized": {Params: []param.Param{{Name: "parts", Type: param.Int, Default: "1", Help: "a parameter of one sandbox"}}}},
		Native:    "process",
	}
	for k := range s.treats {
		c.Sandboxes[fmt.Sprintf("box%d", k+1)] = study.SandboxInfo{}
	}
	return c
}

func responses() []record.Response {
	return []record.Response{{Name: response, Unit: record.Second, Better: record.Lower, Operation: "run"},
		{Name: further, Unit: record.Second, Better: record.Lower}}
}

// study reads the shape's study file.
func (s shape) study(r rule) (*study.Study, error) {
	return study.Parse(s.String()+", "+r.name, s.text(r), catalogue(s), nil)
}

// usualRules are tare's own, two that users choose, tare's own ended by a budget, as
// that of studies/first.yaml ends most strata, and the adaptive one.
func usualRules() []rule {
	return []rule{ownRule(), fixed("5"), fixed("3"), budgeted("4"), adaptive()}
}

// adaptive is the rule that ends rows where their verdict is clear.
func adaptive() rule { return rule{study.StopAdaptive, study.StopAdaptive} }

// budgeted is tare's own rule in a study whose budget ends after so many blocks.
func budgeted(blocks string) rule {
	return rule{"budget of " + blocks, "{margin: 3%}\nbudget: {blocks: " + blocks + "}"}
}

// most is the number of blocks that a stratum of a study may have.
func most(st *study.Study) int {
	n := st.Stop.Fixed
	if n == 0 {
		n = slices.Max(st.Stop.Looks)
	}
	if st.Budget.Blocks > 0 {
		n = min(n, st.Budget.Blocks)
	}
	return n
}

// shippedRules are the sections stop of the study files in root/studies, without those that
// usualRules have already. A rule that several files have is one, with the names of all.
func shippedRules(root string) ([]rule, error) {
	files, err := filepath.Glob(filepath.Join(root, "studies", "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("cannot find studies/*.yaml; run in the folder of the module")
	}
	known := usualRules()
	for _, file := range files {
		if filepath.Base(file) == "economy.yaml" {
			continue // it makes readings for replays, and nobody stops so
		}
		src, err := os.ReadFile(file) //nolint:gosec // the module's own studies
		if err != nil {
			return nil, err
		}
		var s struct{ Stop yaml.Node }
		if err := yaml.Unmarshal(src, &s); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		s.Stop.Style = yaml.FlowStyle
		stop, err := yaml.Marshal(&s.Stop)
		if err != nil {
			return nil, err
		}
		r := rule{strings.TrimSuffix(filepath.Base(file), ".yaml"), strings.TrimSpace(string(stop))}
		own, err := r.parsed()
		if err != nil {
			return nil, err
		}
		same := -1
		for i, k := range known {
			other, err := k.parsed()
			if err != nil {
				return nil, err
			}
			if reflect.DeepEqual(own, other) {
				same = i
			}
		}
		switch usual := len(usualRules()); {
		case same < 0:
			known = append(known, r)
		case same >= usual:
			known[same].name += " and " + r.name
		}
	}
	return known[len(usualRules()):], nil
}

// parsed is the rule as package study reads it.
func (r rule) parsed() (study.Stop, error) {
	st, err := shape{workloads: 1, points: 1, treats: 1}.study(r)
	if err != nil {
		return study.Stop{}, fmt.Errorf("cannot read the rule of %s: %w", r.name, err)
	}
	return st.Stop, nil
}
