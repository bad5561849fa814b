package param

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// wrong fails the test unless err says each of the words.
func wrong(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}

func TestCheck(t *testing.T) {
	threads := Param{Name: "threads", Type: Int, Min: 1, Max: 1024}
	size := Param{Name: "size", Type: Size, Min: 1, Max: 1 << 30, Words: []string{"none"}}
	for _, c := range []struct {
		name string
		p    Param
		text string
		want string
		err  []string // words of the error
	}{
		{name: "as written", p: threads, text: " 16 ", want: "16"},
		{name: "least", p: threads, text: "1", want: "1"},
		{name: "most", p: threads, text: "1024", want: "1024"},
		{name: "under", p: threads, text: "0", err: []string{"threads = 0", "from 1 to 1024"}},
		{name: "over", p: threads, text: "1025", err: []string{"from 1 to 1024"}},
		{name: "fraction", p: threads, text: "1.5", err: []string{`"1.5"`, "whole number from 1 to 1024"}},
		{name: "too long", p: threads, text: strings.Repeat("9", 40), err: []string{"whole number"}},
		{name: "unbounded", p: Param{Name: "n", Type: Int}, text: "-7", want: "-7"},
		{name: "unbounded, wrong", p: Param{Name: "n", Type: Int}, text: "x", err: []string{"; write a whole number"}},
		{name: "number or word", p: Param{Name: "n", Type: Int, Words: []string{"all"}}, text: "some", err: []string{"write a whole number or all"}},
		{name: "number", p: Param{Name: "f", Type: Float, Min: 0.5, Max: 2}, text: "1e0", want: "1e0"},
		{name: "number under", p: Param{Name: "f", Type: Float, Min: 0.5, Max: 2}, text: "0.1", err: []string{"from 0.5 to 2"}},
		{name: "thousandths", p: Param{Name: "f", Type: Float, Milli: true, Min: 0.01, Max: 9}, text: " 2500m ", want: "2.5"},
		{name: "few thousandths", p: Param{Name: "f", Type: Float, Milli: true, Min: 0.01, Max: 9}, text: "5m", err: []string{"out of range"}},
		{name: "less than no thousandths", p: Param{Name: "f", Type: Float, Milli: true}, text: "-5m", err: []string{"thousandths such as 500m"}},
		{name: "thousandths elsewhere", p: Param{Name: "f", Type: Float}, text: "500m", err: []string{"not a number"}},
		{name: "no number", p: Param{Name: "f", Type: Float, Min: 0.5, Max: 2}, text: "two", err: []string{"write a number from 0.5 to 2"}},
		{name: "NaN", p: Param{Name: "f", Type: Float}, text: "nan", err: []string{"not a number"}},
		{name: "infinite", p: Param{Name: "f", Type: Float}, text: "inf", err: []string{"not a number"}},
		{name: "true", p: Param{Name: "b", Type: Bool}, text: "true", want: "true"},
		{name: "yes", p: Param{Name: "b", Type: Bool}, text: "yes", err: []string{"true or false"}},
		{name: "size as written", p: size, text: "64KiB", want: "64KiB"},
		{name: "size word", p: size, text: "none", want: "none"},
		{name: "size over", p: size, text: "2GiB", err: []string{"from 1B to 1GiB"}},
		{name: "no size", p: size, text: "big", err: []string{"64KiB"}},
		{name: "time", p: Param{Name: "d", Type: Duration, Min: 0.1, Max: 60}, text: "1m", want: "1m"},
		{name: "time over", p: Param{Name: "d", Type: Duration, Min: 0.1, Max: 60}, text: "61s", err: []string{"from 100ms to 1m"}},
		{name: "no time", p: Param{Name: "d", Type: Duration}, text: "5", err: []string{"500ms"}},
		{name: "word", p: Param{Name: "mode", Type: Enum, Words: []string{"rr", "stream"}}, text: "rr", want: "rr"},
		{name: "no word", p: Param{Name: "mode", Type: Enum, Words: []string{"rr", "stream"}}, text: "rx", err: []string{"rr, stream"}},
		{name: "cpus", p: Param{Name: "cpus", Type: CPUs}, text: "0-1,3", want: "0-1,3"},
		{name: "no cpus", p: Param{Name: "cpus", Type: CPUs}, text: "one", err: []string{"0-1,3"}},
		{name: "text", p: Param{Name: "s", Type: String}, text: "any thing", want: "any thing"},
		{name: "no type", p: Param{Name: "s", Type: "colour"}, text: "red", err: []string{"colour"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.p.Check(c.text)
			if c.err != nil {
				wrong(t, c.text, err, c.err...)
			} else if err != nil || got != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestFill(t *testing.T) {
	ps := []Param{
		{Name: "threads", Type: Int, Default: "2", Min: 1, Max: 8},
		{Name: "size", Type: Size, Default: "none", Words: []string{"none"}},
		{Name: "duration", Type: Duration, Default: "2s"},
		{Name: "ratio", Type: Float, Default: "1.5"},
		{Name: "direct", Type: Bool, Default: "true"},
	}
	given := Values{"threads": " 4 ", "size": "4k"}
	v, err := Fill(ps, given)
	if err != nil {
		t.Fatal(err)
	}
	want := Values{"threads": "4", "size": "4k", "duration": "2s", "ratio": "1.5", "direct": "true"}
	if d := cmp.Diff(want, v); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if given["threads"] != " 4 " {
		t.Error("Fill changed what it was given")
	}
	if v.Int("threads") != 4 || v.Size("size") != 4096 || v.Duration("duration") != 2*time.Second || v.Float("ratio") != 1.5 || !v.Bool("direct") || v.Str("size") != "4k" {
		t.Errorf("the getters read %v wrongly", v)
	}
	if v, err = Fill(ps, nil); err != nil || v.Size("size") != 0 || v.Int("missing") != 0 {
		t.Errorf("defaults: %v, %v", v, err)
	}
	_, err = Fill(ps, Values{"thread": "4"})
	wrong(t, "unknown name", err, `"thread"`, `did you mean "threads"?`)
	_, err = Fill(ps, Values{"threads": "9"})
	wrong(t, "bad value", err, "threads = 9", "from 1 to 8")
}

func TestSuggest(t *testing.T) {
	words := []string{"process", "runc", "crun", "runsc-systrap"}
	for typo, want := range map[string]string{
		"runs":         `did you mean "runc"?`,
		"RUNC":         `did you mean "runc"?`,
		"rnuc":         `did you mean "runc"?`, // a transposition
		"prcess":       `did you mean "process"?`,
		"runsc-systap": `did you mean "runsc-systrap"?`,
		"runsc":        "did you mean one of runsc-systrap?",
		"kubernetes":   "write one of process, runc, crun, runsc-systrap",
		"":             "write one of process, runc, crun, runsc-systrap",
	} {
		if got := Suggest(typo, words); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", typo, got, want)
		}
	}
	var many []string
	for c := range 1000 {
		many = append(many, fmt.Sprintf("long-name-%03d", c))
	}
	if got := Suggest("no", many); len(got) > 200 || !strings.HasPrefix(got, "write one of 1000 names, such as long-name-000, ") {
		t.Errorf("of many words: %s", got)
	}
	if got := Suggest("x", nil); got != "there are none to choose from" {
		t.Errorf("Suggest without words = %q", got)
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
