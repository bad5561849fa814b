package junit

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/analyse/compare"
	"tare/analyse/stat"
	"tare/record"
)

func row(workload, box string, c *compare.Change) compare.Row {
	cell := record.Cell{{Factor: "workload", Value: workload}, {Factor: "sandbox", Value: box}}
	m := &compare.Measured{N: 8, Level: 1e-5, Cost: stat.Estimate{Ratio: 2, N: 8}}
	return compare.Row{Workload: workload, Cell: cell, Treatment: cell[1:], Shared: cell[:1], Response: record.Response{Name: "p99", Unit: record.Second, Better: record.Lower},
		Question: compare.Cost, A: m, B: m, Cost: c}
}

// nasty has all that XML cannot take as it is.
const nasty = "<a href='x'>&amp; ]]> \x00\x1b[31m \"q\" \xff ü\n"

func result() (*compare.Result, []compare.Breach) {
	p, q := 0.001, 0.01
	changed := &compare.Change{Ratio: 1.2, Lo: 1.1, Hi: 1.3, P: &p, Q: &q, Verdict: stat.Slower, Changed: true, Why: nasty}
	same := &compare.Change{Ratio: 1, Lo: 0.99, Hi: 1.01, P: &q, Q: &q, Verdict: stat.Equivalent}
	onlyB := row("rr", "crun", nil)
	onlyB.OnlyIn, onlyB.A = "B", nil
	res := &compare.Result{Study: "x.y " + nasty, A: compare.About{Name: "before"}, B: compare.About{Name: nasty}, Confidence: 0.95, Margin: 0.03, FDR: 0.05,
		Question: compare.Auto, Differences: []compare.Difference{{Field: "kernel", A: "6.1", B: nasty}},
		Rows: []compare.Row{row("rr", "runc", changed), row("rr", "runsc", same), onlyB,
			row("rr", nasty, &compare.Change{Undefined: "A: both are zero", Verdict: stat.Undecided}),
			row("few", "runc", &compare.Change{Ratio: 1, Verdict: stat.Undecided, Why: "need n >= 3"})}}
	return res, []compare.Breach{{Gate: "worse > 1.05", Row: 0}, {Gate: nasty, Row: 0}, {Gate: "missing", Row: 2}}
}

// doubts are of a row that is broken too, and of the last, which has no interval.
func doubts() []compare.Doubt {
	return []compare.Doubt{{Gate: nasty, Row: 0, Why: nasty}, {Gate: "worse > 1.05", Row: 4, Why: "so it is", Blocks: 12}}
}

func write(t *testing.T) string {
	t.Helper()
	res, broken := result()
	var b bytes.Buffer
	opt := Options{Hostname: "h1", Time: time.Date(2026, 11, 20, 9, 0, 0, 0, time.FixedZone("", 3600)), Gates: []string{"worse > 1.05", nasty, "missing"}}
	if err := Write(&b, res, broken, doubts(), opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	text := write(t)
	if err := valid(text); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var got struct {
		Suites []struct {
			Tests     int    `xml:"tests,attr"`
			Failures  int    `xml:"failures,attr"`
			Skipped   int    `xml:"skipped,attr"`
			Errors    int    `xml:"errors,attr"`
			Timestamp string `xml:"timestamp,attr"`
			Hostname  string `xml:"hostname,attr"`
			Cases     []struct {
				Name    string `xml:"name,attr"`
				Class   string `xml:"classname,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
				Skipped *struct {
					Message string `xml:"message,attr"`
				} `xml:"skipped"`
				Error *struct {
					Text string `xml:",chardata"`
				} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	s := got.Suites[0]
	if s.Tests != 5 || s.Failures != 2 || s.Skipped != 1 || s.Errors != 1 || s.Timestamp != "2026-11-20T08:00:00" || s.Hostname != "h1" || len(s.Cases) != 5 {
		t.Fatalf("%+v", s)
	}
	first := s.Cases[0]
	if first.Name != "sandbox=runc p99" || !strings.HasPrefix(first.Class, "tare.x_y ") || !strings.HasSuffix(first.Class, ".rr") {
		t.Errorf("name %q, class %q", first.Name, first.Class)
	}
	if f := first.Failure; f == nil || !strings.Contains(f.Message, "1.20 × (1.10–1.30)") || !strings.Contains(f.Text, "broken: worse > 1.05") ||
		!strings.Contains(f.Text, `<a href='x'>&amp; ]]> \x00\x1b[31m "q" \xff ü`) {
		t.Errorf("failure: %+v", f)
	}
	if c := s.Cases[1]; c.Failure != nil || c.Skipped != nil {
		t.Errorf("what is equivalent: %+v", c)
	}
	if c := s.Cases[2]; c.Failure == nil || c.Skipped != nil || !strings.Contains(c.Failure.Text, "A (before): does not have it") {
		t.Errorf("what is missing, and must not be: %+v", c)
	}
	if c := s.Cases[3]; c.Failure != nil || c.Error != nil || c.Skipped == nil || c.Skipped.Message != "A: both are zero" {
		t.Errorf("what no gate asks about: %+v, want it skipped", c)
	}
	if c := s.Cases[4]; c.Failure != nil || c.Skipped != nil || c.Error == nil || !strings.Contains(c.Error.Text, "worse > 1.05: so it is; it takes 12 blocks a side") {
		t.Errorf("what a gate cannot judge: %+v, want an error", c)
	}
}

type full struct{}

var errFull = errors.New("disk full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteFull(t *testing.T) {
	res, broken := result()
	if err := Write(full{}, res, broken, nil, Options{}); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}

// TestValid: the checker below can fail.
func TestValid(t *testing.T) {
	good := write(t)
	for what, bad := range map[string]string{
		"an unknown attribute":        strings.Replace(good, "<testcase ", `<testcase colour="red" `, 1),
		"an unknown element":          strings.Replace(good, "<properties>", "<properties><prop/>", 1),
		"no class":                    strings.Replace(good, " classname=", " status=", 1),
		"a wrong number":              strings.Replace(good, `failures="2" errors`, `failures="3" errors`, 1),
		"properties behind":           strings.Replace(strings.Replace(good, "<properties>", "<system-out>", 1), "</properties>", "</system-out><properties></properties>", 1),
		"a zone in the time":          strings.Replace(good, "T08:00:00", "T08:00:00Z", 1),
		"no end":                      strings.TrimSuffix(strings.TrimSpace(good), "</testsuites>"),
		"a control character":         strings.Replace(good, "before", "be\x01fore", 1),
		"a test case of a name twice": strings.Replace(good, "sandbox=runsc p99", "sandbox=runc p99", 1),
	} {
		if bad == good || valid(bad) == nil {
			t.Errorf("the checker takes %s", what)
		}
	}
}

// element is what the schema that Jenkins and its readers use
// (https://github.com/jenkinsci/xunit-plugin, junit-10.xsd) lets an element have;
// a counter of skipped ones beside the others, as Surefire and pytest write it.
type element struct{ required, optional, children []string }

func schema() map[string]element {
	result := element{optional: []string{"message", "type"}}
	return map[string]element{
		"testsuites": {optional: []string{"name", "time", "tests", "failures", "disabled", "errors", "skipped"}, children: []string{"testsuite"}},
		"testsuite": {required: []string{"name", "tests"}, optional: []string{"failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id", "package"},
			children: []string{"properties", "testcase", "system-out", "system-err"}},
		"properties": {children: []string{"property"}},
		"property":   {required: []string{"name", "value"}},
		"testcase": {required: []string{"name", "classname"}, optional: []string{"assertions", "time", "status"},
			children: []string{"skipped", "error", "failure", "system-out", "system-err"}},
		"skipped": result, "failure": result, "error": result, "system-out": {}, "system-err": {},
	}
}

// valid holds a text to the schema, the order of elements and the counts included.
func valid(text string) error {
	known := schema()
	d := xml.NewDecoder(strings.NewReader(text))
	var stack []string
	last := map[int]int{}
	counts, names := map[string]int{}, map[string]bool{}
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		switch x := tok.(type) {
		case xml.StartElement:
			name := x.Name.Local
			e, ok := known[name]
			if !ok {
				return fmt.Errorf("unknown element %s", name)
			}
			if n := len(stack); n == 0 && name != "testsuites" {
				return fmt.Errorf("the root is %s", name)
			} else if n > 0 {
				at := slices.Index(known[stack[n-1]].children, name)
				if at < last[n] {
					return fmt.Errorf("%s in %s, out of place", name, stack[n-1])
				}
				last[n] = at
			}
			attr := map[string]string{}
			for _, a := range x.Attr {
				if !slices.Contains(e.required, a.Name.Local) && !slices.Contains(e.optional, a.Name.Local) {
					return fmt.Errorf("%s has an attribute %s", name, a.Name.Local)
				}
				attr[a.Name.Local] = a.Value
			}
			for _, r := range e.required {
				if _, ok := attr[r]; !ok {
					return fmt.Errorf("%s has no attribute %s", name, r)
				}
			}
			if ts := attr["timestamp"]; ts != "" {
				if _, err := time.Parse("2006-01-02T15:04:05", ts); err != nil {
					return err
				}
			}
			counts[name]++
			if name == "testsuite" {
				for _, k := range []string{"tests", "failures", "skipped"} {
					n, err := strconv.Atoi(attr[k])
					if err != nil {
						return err
					}
					counts["said "+k] += n
				}
			}
			if name == "testcase" {
				if k := attr["classname"] + "\n" + attr["name"]; names[k] {
					return fmt.Errorf("%q twice", k)
				}
				names[attr["classname"]+"\n"+attr["name"]] = true
			}
			stack = append(stack, name)
			last[len(stack)] = 0
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		}
	}
	for k, e := range map[string]string{"tests": "testcase", "failures": "failure", "skipped": "skipped"} {
		if counts["said "+k] != counts[e] {
			return fmt.Errorf("%d %s are said, there are %d", counts["said "+k], k, counts[e])
		}
	}
	return nil
}
