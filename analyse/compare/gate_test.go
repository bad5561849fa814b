package compare

import (
	"slices"
	"strings"
	"testing"

	"tare/analyse/stat"
)

func TestGateErrors(t *testing.T) {
	st := makeStudy(1, 1)
	for text, want := range map[string]string{
		`ratio > 1.05 && wrose > 1`: `--gate:1:17: there is no "wrose"; did you mean`,
		`ratio >`:                   `--gate:1:7: unexpected token EOF`,
		`ratio`:                     `expected bool`,
		`ratio > "x"`:               `--gate:1:7: `,
		`verdict == 3`:              `--gate:1:9: `,
		"":                          `--gate:1:1: `,
		"worse than five%":          `write it as worse than 5%`,
		"worse than 5":              `write it as worse than 5%`,
		"surely worse than -5%":     `write it as worse than 5%`,
		"better than 5%":            `write it as worse than 5%`,
		strings.Repeat("(", 5000):   `--gate:1:1: an expression may have at most`,
		"ratio > 1 &&\n nosuch":     `--gate:2:2: there is no "nosuch"`,
		`factor["x"] > 2`:           `--gate:1:13: `,
	} {
		_, err := NewGate("--gate", text, st, st)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
}

// TestGateUnknownTexts: a text that a variable cannot have is an error with its
// place and what there is, however it is written; one that it can have is none.
func TestGateUnknownTexts(t *testing.T) {
	a, b := makeStudy(2, 1), makeStudy(3, 2) // w3 and box2 are in b alone
	for text, want := range map[string][]string{
		`factor.sandbx == "box1"`:                    {"--gate:1:8: ", `neither study has a factor "sandbx"; did you mean "sandbox"?`, "There are "},
		`factor?.sandbx == "box1"`:                   {`"sandbx"`},
		`factor["x"] == "2"`:                         {"--gate:1:8: ", `factor "x"`, "sandbox"},
		`"x" in factor`:                              {"--gate:1:1: ", `factor "x"`},
		`factor.sandbox == "box9"`:                   {`sandbox is never "box9"`, "box1", "box2"},
		`factor["sandbox"] != "box9"`:                {`sandbox is never "box9"`},
		`sandbox == "box9"`:                          {"--gate:1:12: ", `sandbox is never "box9"`, "process"},
		`"box9" == sandbox`:                          {"--gate:1:1: ", `"box9"`},
		`response == "tine" and changed`:             {"--gate:1:13: ", `response is never "tine"; did you mean "time"?`},
		`changed and response in ["time", "nosuch"]`: {"--gate:1:34: ", `response is never "nosuch"`},
		`response not in ["nosuch"]`:                 {`response is never "nosuch"`},
		`not (workload == "w9") or changed`:          {`workload is never "w9"`, "w1", "w3"},
		`verdict == "slowr"`:                         {`verdict is never "slowr"; did you mean "slower"?`, "equivalent"},
		`any([1], verdict == "bad")`:                 {`verdict is never "bad"`},
		`question == "price"`:                        {`question is never "price"`, "cost", "level"},
		`only_in == "C"`:                             {`only_in is never "C"`, "A, B"},
	} {
		_, err := NewGate("--gate", text, a, b)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %s in it", text, err, w)
			}
		}
	}
	for _, text := range []string{`sandbox == "box2"`, `factor.sandbox in ["box1", "box2"]`, `workload == "w3"`, `only_in == ""`, `only_in != "B"`,
		`verdict in ["worse", "better", "slower", "equivalent"]`, `response == "time"`, `"sandbox" in factor`, `response startsWith "t"`, `"a" == "b"`} {
		if _, err := NewGate("--gate", text, a, b); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestGateWordsOfTheLegend: worse and better are the verdicts that the table
// prints as such.
func TestGateWordsOfTheLegend(t *testing.T) {
	st := makeStudy(1, 3)
	row := func(v stat.Verdict) Row { return Row{Question: Level, Level: &Change{Ratio: 1.2, Verdict: v}} }
	res := &Result{Rows: []Row{row(stat.Slower), row(stat.Faster), row(stat.Higher)}}
	for text, want := range map[string][]int{
		`verdict == "worse"`: {0}, `verdict == "better"`: {1}, `verdict != "worse"`: {1, 2}, `verdict in ["worse", "better"]`: {0, 1}, `"slower" == verdict`: {0}, `"worse" == verdict`: {0},
	} {
		g, err := NewGate("--gate", text, st, st)
		if err != nil {
			t.Fatal(err)
		}
		breaches, err := res.Check([]*Gate{g})
		if err != nil {
			t.Fatal(err)
		}
		var rows []int
		for _, b := range breaches {
			rows = append(rows, b.Row)
		}
		if !slices.Equal(rows, want) {
			t.Errorf("%s is true of rows %v, want %v", text, rows, want)
		}
	}
}

// FuzzGate: no text may do more than give an error with its place.
func FuzzGate(f *testing.F) {
	for _, s := range []string{"worse than 5%", "ratio > 1.05 && changed", `factor["a"] in ["b"]`, "all(1..9, # > 0)", "(", "\x00", "surely worse than 0.5 %", "1e999 > p"} {
		f.Add(s)
	}
	st := makeStudy(2, 1)
	f.Fuzz(func(t *testing.T, text string) {
		_, err := NewGate("--gate", text, st, st)
		if err != nil && !strings.HasPrefix(err.Error(), "--gate:") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
