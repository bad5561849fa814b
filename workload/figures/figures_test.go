package figures

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
)

func parse(t testing.TB, format, figures string) Set {
	t.Helper()
	s, err := Parse(values(format, figures))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func values(format, figures string) param.Values {
	if format == "" {
		format = noFormat
	}
	return param.Values{ParamFormat: format, ParamFigures: figures}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// TestRead: numbers are found in text, in JSON and in the reports of tools, in base units.
func TestRead(t *testing.T) {
	const redis = "GET: rps=1.0 (overall: 2.0)\rGET: 12,345.50 requests per second, p50=0.207 msec\n"
	const json = "log line\n{ \"a\": [1, {\"b\": \"2.5\"}], \"c\": 3 }\n"
	for _, c := range []struct {
		format, figures, text string
		want                  []float64
	}{
		{"", `rate[1/s]='GET: ([0-9.,]+) requests' p50[ms]='p50=([0-9.]+)'`, redis, []float64{12345.5, 0.207e-3}},
		{"", `n='[0-9]+'`, "1 2 3", []float64{3}}, // the last, and the whole match
		{"", `b[s,higher]=json:a.1.b c[MiB/s]=json:c`, json, []float64{2.5, 3 << 20}},
		{"gobench", "", "file:go.txt", []float64{math.Sqrt((3686e-9 + 1037e-9) / 2 * (1350e-9 + 1300e-9) / 2)}},
		{"gobench", `one=Make/arch=amd64 bytes="Make/arch=arm64 B/op" speed="Make/arch=arm64 bytes" cut[ms]="Make/.*64 allocs/op"`, "file:go.txt",
			[]float64{2361.5e-9, 1160, (296.30e6 + 307.76e6) / 2, math.Sqrt(26*29) * 1e-3}},
		{"jmh", "", "file:jmh.json", []float64{math.Sqrt(12.5e-6 / 3467631.2300505415)}},
		{"jmh", `add=org.sample.Lists.add/kind=array/size=1000 rate='.*add.* rate'`, "file:jmh.json", []float64{1 / 3467631.2300505415, 3467631.2300505415}},
		{"google-benchmark", `items='sum_million/repeats:2 rate'`, "file:google.json", []float64{93214101.707988352}},
		{"fio-json", `reads='a/read rate' bw='a/read bytes'`, "file:fio.json", nil},
		{"pytest-benchmark", `fib='.*test_fib_10' mean='.*fib_10 mean_time' ops='.*fib_10 rate'`, "file:pytest.json", nil},
	} {
		s := parse(t, c.format, c.figures)
		got, err := s.Read(text(t, c.text))
		if err != nil {
			t.Errorf("%s %s: %v", c.format, c.figures, err)
			continue
		}
		for i, x := range got.Values {
			if x <= 0 || c.want != nil && !near(x, c.want[i]) {
				t.Errorf("%s %s: %g, want %g", c.format, c.figures, got.Values, c.want)
			}
		}
		if len(got.Values) != len(s.Responses()) {
			t.Errorf("%s: %d values of %d", c.figures, len(got.Values), len(s.Responses()))
		}
	}
}

func text(t testing.TB, s string) string {
	t.Helper()
	name, ok := strings.CutPrefix(s, "file:")
	if !ok {
		return s
	}
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestUnits: names, units and directions of the responses.
func TestUnits(t *testing.T) {
	got := parse(t, "", "a[ms]=x b[Mbit/s]=x c=x d[,higher]=x e[B,higher]=x").Responses()
	want := []record.Response{
		{Name: "a", Unit: record.Second, Better: record.Lower}, {Name: "b", Unit: record.BytesPerSecond, Better: record.Higher},
		{Name: "c", Unit: record.Count, Better: record.Neither}, {Name: "d", Unit: record.Count, Better: record.Higher},
		{Name: "e", Unit: record.Byte, Better: record.Higher},
	}
	for i, r := range got {
		r.Help = ""
		if r != want[i] {
			t.Errorf("%+v, want %+v", r, want[i])
		}
	}
	if r := parse(t, "gobench", "a=X b='X B/op' c='X bytes'").Responses(); r[0].Unit != record.Second || r[1].Unit != record.Byte || r[2].Better != record.Higher {
		t.Errorf("%+v", r)
	}
}

func TestParseRefuses(t *testing.T) {
	for figures, want := range map[string]string{
		"a":                        "no pattern",
		"a=":                       "no pattern",
		"A=x":                      "is not a name",
		"a[s=x":                    "is not closed",
		"a[parsec]=x":              "is not a unit",
		"a[s,up]=x":                "is not a direction",
		"a=(":                      "missing closing )",
		"a=(x)(y)":                 "more than one group",
		"a=json:":                  "needs a path",
		"a=x a=y":                  "is taken",
		"wall=x":                   "is taken",
		"a='x":                     "cannot be split",
		strings.Repeat("a=x ", 33): "at most 32",
	} {
		if _, err := Parse(values("", figures), "wall"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", figures, err, want)
		}
	}
	if _, err := Parse(values("jmh", "a='('")); err == nil {
		t.Error("a selector that is no regular expression is taken")
	}
}

// TestReadRefuses: what is missing is named.
func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ format, figures, text, want string }{
		{"", "a=(x)", "y", `figure a: nothing in the output matches "(x)"`},
		{"", "a=(x)", "x", "is not a number"},
		{"", "a=([a-zA-Z]+)", "NaN", "not a number to compare"},
		{"", "a=json:b.c", "text", "the output is not JSON"},
		{"", "a=json:b.c", `{"b":1}`, `nothing at "b.c"`},
		{"gobench", "", "PASS\n", "no benchmark"},
		{"gobench", "a=Other", "file:go.txt", `the output has "Make/arch=amd64"`},
		{"gobench", "a='Make/.* bogus'", "file:go.txt", "it has B/op, allocs/op, bytes, time"},
		{"jmh", "", "{}", "is not jmh"},
		{"jmh", "", `[{"benchmark":"x","primaryMetric":{"score":"NaN","scoreUnit":"s/op"}}]`, "is not jmh"},
		{"pytest-benchmark", "", "no tests", "no JSON"},
		{"google-benchmark", "", `{"benchmarks":[{"name":"x","error_occurred":true}]}`, "has failed"},
		{"google-benchmark", "", `{"benchmarks":[{"name":"x","real_time":0,"time_unit":"ns"}]}`, "no time over 0"},
		{"fio-json", "", `{"jobs":[{"jobname":"x","error":28}]}`, "error 28"},
	} {
		if _, err := parse(t, c.format, c.figures).Read(text(t, c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q of %q: %v, want %q", c.format, c.figures, c.text, err, c.want)
		}
	}
}

// TestAdd: the median over the runs is the response, and each benchmark is there with a label.
func TestAdd(t *testing.T) {
	s := parse(t, "gobench", "")
	var runs []Found
	for _, n := range []string{"5", "7", "9"} {
		f, err := s.Read("BenchmarkA 1 " + n + " ns/op\nBenchmarkB 1 " + n + " ns/op\n")
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, f)
	}
	var rd record.Reading
	s.Add(&rd, []time.Duration{1, 2, 3}, runs)
	var labels []string
	for _, x := range rd.Samples {
		labels = append(labels, string(x.Labels))
		if x.Labels == "" && !near(x.Value, 7e-9) {
			t.Errorf("%+v", x)
		}
	}
	if want := []string{"", "stat=min", "stat=max", "benchmark=A", "benchmark=B"}; !slices.Equal(labels, want) {
		t.Errorf("%q, want %q", labels, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("none", `rate[1/s,higher]='GET: ([0-9.]+) requests' x=json:a.b`)
	f.Add("gobench", `a='X B/op'`)
	f.Fuzz(func(t *testing.T, format, figures string) {
		if format != noFormat && !slices.Contains(Formats(), format) {
			return
		}
		s, err := Parse(values(format, figures))
		if err != nil {
			return
		}
		for _, r := range s.Responses() {
			if !nameRE.MatchString(r.Name) || r.Unit == "" || r.Better == "" {
				t.Errorf("%+v", r)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	for format, file := range map[string]string{"gobench": "go.txt", "jmh": "jmh.json", "pytest-benchmark": "pytest.json", "google-benchmark": "google.json", "fio-json": "fio.json"} {
		f.Add(format, "", text(f, "file:"+file))
	}
	f.Add("none", "a=([0-9.]+) b=json:a.1.b", "{\"a\":[1,{\"b\":2}]}")
	f.Fuzz(func(t *testing.T, format, figures, text string) {
		if format != noFormat && !slices.Contains(Formats(), format) {
			return
		}
		s, err := Parse(values(format, figures))
		if err != nil {
			return
		}
		found, err := s.Read(text)
		if err != nil {
			return
		}
		for _, x := range found.Values {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%q of %q: %v", figures, text, found.Values)
			}
		}
	})
}
