package csv

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"tare/imports"
	"tare/record"
	"tare/store"
)

func long() Mapping {
	m := Mapping{}
	for _, p := range []string{"sandbox=rt", "threads=th", "response=metric", "value=v", "unit=u", "trial=run"} {
		if err := m.Column(p); err != nil {
			panic(err)
		}
	}
	return m
}

const head = "rt,th,metric,v,u,run\n"

func TestRead(t *testing.T) {
	set, err := Read("old.csv", strings.NewReader(head+"runc,1,lat,2.5,ms,1\nrunc,1,tput,8,Gbit/s,1\nkata,1,lat,5,ms,1\n"), long())
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Trials) != 2 {
		t.Fatalf("%d trials", len(set.Trials))
	}
	p := set.Trials[0].Samples
	if p[0].Value != 0.0025 || p[0].Unit != record.Second || p[0].Original != "2.5 ms" || p[1].Value != 1e9 || p[1].Unit != record.BytesPerSecond {
		t.Errorf("%+v", p)
	}
	if b := set.Responses["imported"]; b[0].Better != record.Lower || b[1].Better != record.Higher {
		t.Errorf("%+v", b)
	}
}

func TestReadTimeSeries(t *testing.T) {
	m := long()
	if err := m.Column("time=t"); err != nil {
		t.Fatal(err)
	}
	if err := m.Constant("time-unit=ms"); err != nil {
		t.Fatal(err)
	}
	set, err := Read("x.csv", strings.NewReader("rt,th,metric,v,u,run,t\nrunc,1,tput,10,1/s,1,5000\nrunc,1,tput,20,1/s,1,6000\n"), m)
	if err != nil {
		t.Fatal(err)
	}
	x := set.Trials[0]
	if x.Samples[0].Value != 15 || len(x.Series) != 1 || x.Series[0].T[1] != time.Second || x.Series[0].V[1] != 20 {
		t.Errorf("%+v", x)
	}
}

// TestReadLabels: readings beside the responses, of the whole trial and over time, are
// what tare's own trials have.
func TestReadLabels(t *testing.T) {
	m := long()
	for _, p := range []string{"time=t", "labels=of", "kind=k"} {
		if err := m.Column(p); err != nil {
			t.Fatal(err)
		}
	}
	text := "rt,th,metric,v,u,run,t,of,k\n" +
		"kata,1,tput,10,1/s,1,100,,\nkata,1,tput,20,1/s,1,102,,\n" +
		"kata,1,cgroup_throttled_periods_rate,4,1/s,1,,end=server,\n" +
		"kata,1,cpu_quota,1250,millicores,1,100,end=server,\nkata,1,cpu_quota,1250,millicores,1,102,end=server,gauge\n"
	for i, v := range []string{"9", "60", "80"} { // the first is of the time before
		text += fmt.Sprintf("kata,1,thread_cpu_time,%s,%%,1,%d,\"end=server,role=vhost,tid=7\",rate\n", v, 100+i)
		text += fmt.Sprintf("kata,1,guest_cpu,%d,s,1,%d,\"end=server,cpu=0,mode=idle\",counter\n", 5+i/2, 100+i)
		text += fmt.Sprintf("kata,1,guest_cpu,%d,s,1,%d,\"end=server,cpu=0,mode=user\",counter\n", 5+i, 100+i)
	}
	set, err := Read("x.csv", strings.NewReader(text), m)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Trials) != 1 || len(set.Responses["imported"]) != 1 {
		t.Fatalf("%d trials, %+v", len(set.Trials), set.Responses)
	}
	x := &set.Trials[0]
	got := map[string]float64{}
	for _, p := range x.Samples {
		got[p.Name+" "+string(p.Labels)+" "+string(p.Unit)] = p.Value
	}
	for id, want := range map[string]float64{
		"tput  1/s": 15,
		"cgroup_throttled_periods_rate end=server 1/s": 4,
		"cpu_quota_mean end=server cores":              1.25,
		"thread_busiest end=server,role=vhost cores":   0.7,
		"guest_busiest end=server 1":                   2.0 / 3,
		"guest_cores end=server,mode=user cores":       1,
	} {
		if v, ok := got[id]; !ok || math.Abs(v-want) > 1e-9 {
			t.Errorf("%s: %g, want %g; %v", id, v, want, got)
		}
	}
	if x.Duration != 2*time.Second || len(x.Series) != 5 {
		t.Errorf("%v, %d series", x.Duration, len(x.Series))
	}
	for bad, want := range map[string]string{"end": "cannot read the labels", "end=a,end=b": "cannot read the labels", "=x": "cannot read the labels"} {
		if _, err := Read("f.csv", strings.NewReader("rt,th,metric,v,u,run,t,of,k\nr,1,l,1,s,1,0,\""+bad+"\",\n"), m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := Read("f.csv", strings.NewReader("rt,th,metric,v,u,run,t,of,k\nr,1,l,1,s,1,0,end=a,sum\n"), m); err == nil || !strings.HasPrefix(err.Error(), `f.csv:2:21: unknown kind "sum"`) {
		t.Error(err)
	}
}

// TestReadUntimed: with a column of the time, a row without one is a figure.
func TestReadUntimed(t *testing.T) {
	m := long()
	if err := m.Column("time=t"); err != nil {
		t.Fatal(err)
	}
	text := "rt,th,metric,v,u,run,t\nrunc,1,lat,3,s,1,\nrunc,1,tput,10,1/s,1,5\nrunc,1,tput,20,1/s,1,6\n"
	set, err := Read("x.csv", strings.NewReader(text), m)
	if err != nil {
		t.Fatal(err)
	}
	x := set.Trials[0]
	if len(set.Trials) != 1 || x.Samples[0].Value != 3 || x.Samples[1].Value != 15 || len(x.Series) != 1 || x.Series[0].Name != "tput" {
		t.Errorf("%+v", x)
	}
	for row, want := range map[string]string{
		"runc,1,tput,30,1/s,1,\n": "x.csv:5:22: tput of trial \"1\" has a time in only some rows",
		"runc,1,lat,4,s,1,7\n":    "x.csv:5:18: lat of trial \"1\" has a time in only some rows",
		"runc,1,lat,3,s,1,\n":     "x.csv:5:12: trial \"1\" has lat twice",
	} {
		if _, err := Read("x.csv", strings.NewReader(text+row), m); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", row, err, want)
		}
	}
}

// TestReadNegative: what has no direction may be a difference.
func TestReadNegative(t *testing.T) {
	m := long()
	if err := m.Direction("drift=neither"); err != nil {
		t.Fatal(err)
	}
	set, err := Read("x.csv", strings.NewReader(head+"r,1,drift,-2,s,1\nr,1,change,-3,%,1\n"), m)
	if err != nil || set.Trials[0].Samples[0].Value != -2 || set.Trials[0].Samples[1].Value != -0.03 {
		t.Errorf("%+v %v", set, err)
	}
}

// TestReadRepeated: rows that are equal in all columns may be one execution, and are
// told of; those that differ in a column that is not read are not.
func TestReadRepeated(t *testing.T) {
	m := Mapping{}
	for _, p := range []string{"sandbox=rt", "response=metric", "value=v", "unit=u"} {
		if err := m.Column(p); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"r,t,5,1/s,Mon\nr,t,5,1/s,Mon\nr,t,5,1/s,Mon\n": "2 rows are the same in every column as an earlier row (line 3 as line 2)",
		"r,t,5,1/s,Mon\nr,t,5,1/s,Tue\n":                "",
	} {
		set, err := Read("x.csv", strings.NewReader("rt,metric,v,u,day\n"+text), m)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range set.Host.Warnings {
			got += w.Text
		}
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestReadErrors: each mistake has its place.
func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "f.csv:1:1: the file is empty",
		head:                                  "f.csv:2:1: the file has only a header",
		"rt,th,metric,v,u\n":                  `f.csv:1:1: there is no column "run"`,
		head + "runc,1,lat,fast,ms,1\n":       `f.csv:2:12: "fast" is not a number`,
		head + "runc,1,lat,NaN,ms,1\n":        `f.csv:2:12: "NaN" is not a number`,
		head + "runc,1,lat,1,parsec,1\n":      `f.csv:2:14: unknown unit "parsec"`,
		head + "runc,1,,1,ms,1\n":             `f.csv:2:8: "" cannot name a response`,
		head + ",1,lat,1,ms,1\n":              "f.csv:2:1: the sandbox is empty; write its level",
		head + "ru\x00nc,1,lat,1,ms,1\n":      `f.csv:2:1: the level "ru\x00nc" of sandbox has a control character`,
		strings.ReplaceAll(head, ",", ";"):    "f.csv:1:1: the columns are not separated by commas",
		head + "runc,1,lat,1,ms\n":            "f.csv:2:1: the row has 5 fields, and the header has 6; write as many",
		head + "runc,\"1,lat,1,ms,1\n":        "f.csv:",
		head + "r,1,l,1,ms,1\nr,1,l,2,ms,1\n": `f.csv:3:7: trial "1" has l twice`,
		head + "r,1,l,1,ms,1\nr,1,l,2,B,2\n":  "f.csv:3:9: l is in s in an earlier row",
		head + "r,1,t,-20,Gbit/s,1\n":         "f.csv:2:7: -20 is a rate below 0; correct it",
		head + "r,1,t,-1,ops/s,1\n":           "f.csv:2:7: -1 is a rate below 0",
		head + "r,1,l,-2.5,ms,1\n":            "f.csv:2:7: -2.5 is a time below 0",
	} {
		if _, err := Read("f.csv", strings.NewReader(text), long()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := Read("f.csv", strings.NewReader(head+strings.Repeat("x", maxRecord+2)), long()); err == nil || !strings.Contains(err.Error(), "a line has more than") {
		t.Errorf("a line without an end: %v", err)
	}
}

func TestMapping(t *testing.T) {
	m, err := ParseMapping("m.yaml", []byte("study: old\ncolumns: {sandbox: rt, threads: th, depth: d, value: v, response: r}\nconstants: {unit: ms}\nbetter: {x: lower}\n"))
	if err != nil || strings.Join(m.order, " ") != "threads depth" {
		t.Errorf("%+v %v", m, err)
	}
	if _, err := ParseMapping("m.yaml", []byte("colums: {}\n")); err == nil || !strings.Contains(err.Error(), "m.yaml: ") || !strings.Contains(err.Error(), "line 1") {
		t.Error(err)
	}
	for _, bad := range []Mapping{{}, {Columns: map[string]string{"value": "v"}}, {Columns: map[string]string{"value": "v", "response": "r", "unit": "u"}, Constants: map[string]string{"unit": "s"}}} {
		if bad.check() == nil {
			t.Errorf("%+v passed", bad)
		}
	}
}

// TestMade: what ran a trial stays with it, as both of tare's own exports say it. A column of
// that name in another tool's file says nothing.
func TestMade(t *testing.T) {
	for _, x := range []struct {
		columns, cells string
		modelled       bool
		facts          map[string]string
	}{
		{"accelerator", "model", true, map[string]string{"imported.model.accelerator": "model"}},
		{"accelerator", "kvm+tcg", false, map[string]string{"imported.kvm.accelerator": "kvm", "imported.tcg.accelerator": "tcg"}},
		{"accelerator", "gpu", false, nil},
		{"accelerator,modelled", ",true", true, map[string]string{"imported.model.accelerator": "model"}},
		{"accelerator,modelled", ",false", false, nil},
	} {
		set, err := Read("old.csv", strings.NewReader(strings.TrimSpace(head)+","+x.columns+"\nruncx,1,lat,2,ms,1,"+x.cells+"\n"), long())
		if err != nil {
			t.Fatal(err)
		}
		delete(set.Trials[0].Facts, "imported.trial")
		if !maps.Equal(set.Trials[0].Facts, x.facts) {
			t.Errorf("%s %s: %v", x.columns, x.cells, set.Trials[0].Facts)
		}
		db := stored(t, set, t.TempDir()+"/r")
		meta, err := db.Meta()
		if err != nil || meta.Modelled != x.modelled {
			t.Errorf("%s %s: modelled %t, %v", x.columns, x.cells, meta.Modelled, err)
		}
	}
}

// stored writes a set into a new folder and opens it. The store is closed when the test ends.
func stored(t *testing.T, set *imports.Set, dir string) *store.Store {
	t.Helper()
	if _, err := set.Write(t.Context(), dir, "test", time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	db, err := store.OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestTypo: a misspelt role becomes a factor, and the message says which.
func TestTypo(t *testing.T) {
	for pairs, want := range map[string]string{
		"sandbox=rt value=v unit=u rresponse=metric": `the response is missing; "rresponse" names a factor, did you mean "response"? `,
		"sandbox=rt vlaue=v unit=u response=metric":  `no column is the value; "vlaue" names a factor, did you mean "value"? `,
		"sandbx=rt value=v unit=u response=metric":   `the compared factor is unknown; "sandbx" names a factor, did you mean "sandbox"? `,
		"threads=th unit=u response=metric":          `no column is the value; write value=COLUMN`,
	} {
		var m Mapping
		for pair := range strings.FieldsSeq(pairs) {
			if err := m.Column(pair); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Read("f.csv", strings.NewReader(head+"runc,1,lat,1,ms,1\n"), m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", pairs, err, want)
		}
	}
}

// TestStored: what is in the folder is what the file has, unit for unit.
func TestStored(t *testing.T) {
	var b strings.Builder
	b.WriteString(head)
	want := map[string]float64{}
	for run := 1; run <= 4; run++ {
		for i, rt := range []string{"runc", "kata, 3"} {
			v := 1.25 * float64(run+10*i)
			fmt.Fprintf(&b, "%q,8,lat,%g,us,%d\n", rt, v, run)
			want[fmt.Sprintf("%s %d", rt, run)] = v * 1e-6
		}
	}
	set, err := Read("old.csv", strings.NewReader(b.String()), long())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/r"
	db := stored(t, set, dir)
	trials, err := db.Trials()
	if err != nil || len(trials) != len(want) {
		t.Fatal(len(trials), err)
	}
	for i := range trials {
		rt, _ := trials[i].Cell.Get("sandbox")
		v, _ := trials[i].Sample("lat")
		if w := want[fmt.Sprintf("%s %d", rt, trials[i].Block)]; math.Abs(v-w) > 1e-18 || trials[i].Facts["imported.tool"] != "csv" {
			t.Errorf("%s block %d: %g, want %g; %v", rt, trials[i].Block, v, w, trials[i].Facts)
		}
	}
	if _, err := set.Write(t.Context(), dir, "test", time.Unix(1e9, 0)); err == nil || !strings.Contains(err.Error(), "holds results already") {
		t.Errorf("a second time: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(head+"runc,1,lat,2.5,ms,1\n", "")
	f.Add(head+"runc,1,lat,1e308,TB,1\nkata,,tput,1,GiB/s,\n", "unit: s")
	f.Add("\ufeffrt,th,metric,v,u,run,t\nr,1,x,1,1,1,9\n", "columns: {time: t}")
	f.Add("rt,th,metric,v,u,run,t,of\nr,1,cpu_time,1e300,cores,1,0,\"end=server,tid=1\"\nr,1,cpu_time,1e300,cores,1,3e9,\"end=server,tid=1\"\nr,1,x,1,s,1,0,\n", "columns: {time: t, labels: of}\nconstants: {kind: rate}")
	f.Fuzz(func(t *testing.T, text, mapping string) {
		m := long()
		if x, err := ParseMapping("m.yaml", []byte(mapping)); err == nil && x.Columns["time"] != "" {
			_ = m.Column("time=" + x.Columns["time"])
			_ = m.Column("labels=" + x.Columns["labels"])
			_ = m.Constant("kind=" + x.Constants["kind"])
		}
		set, err := Read("f.csv", strings.NewReader(text), m)
		if err != nil {
			return
		}
		for i := range set.Trials {
			for _, p := range set.Trials[i].Samples {
				if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
					t.Errorf("%+v", p)
				}
			}
			for _, s := range set.Trials[i].Series {
				for j := range s.T {
					if s.T[j] < 0 || j > 0 && s.T[j] < s.T[j-1] {
						t.Errorf("times %v", s.T)
					}
				}
			}
		}
	})
}

func FuzzMapping(f *testing.F) {
	f.Add("study: s\ncompare: sandbox\nbaseline: runc\ncolumns: {sandbox: rt, response: metric, value: v, unit: u, cpu-limit: c}\nconstants: {workload: w}\nbetter: {lat: lower}\noperation: {lat: request}")
	f.Add("columns: {value: v}\ncolumns: {value: w}")
	f.Add("columns: &a {value: *a}")
	f.Add("unit: [s]")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMapping("m.yaml", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "m.yaml: ") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		if m.check() != nil {
			return
		}
		if m.Columns[roleValue] == "" {
			t.Errorf("a mapping without a value was accepted: %+v", m)
		}
		for _, b := range m.Better {
			if b != record.Higher && b != record.Lower && b != record.Neither {
				t.Errorf("the direction %q was accepted", b)
			}
		}
		// Errors of a table that it reads name the table, whatever the mapping says.
		if _, err := Read("f.csv", strings.NewReader(head+"runc,1,lat,2.5,ms,1\n"), m); err != nil && !strings.HasPrefix(err.Error(), "f.csv") {
			t.Errorf("the error does not name the file: %v", err)
		}
	})
}
