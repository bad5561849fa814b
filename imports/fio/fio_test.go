package fio

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

func FuzzMerge(f *testing.F) {
	for _, name := range []string{"fio-runc.json", "fio-kata.json"} {
		b, err := os.ReadFile("../clusterbuster/testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(first(f, b))
	}
	f.Add([]byte(`{"jobs":[{"read":{"io_kbytes":8,"total_ios":2,"runtime":1,"clat_ns":{"bins":{"10":1,"20":1}}}}],"client_stats":[{"jobname":"All clients"}]}`))
	f.Add([]byte(`{"jobs":[{"write":{"io_bytes":1e308,"total_ios":1e-300,"runtime":1e-300,"lat_ns":{"mean":1e308}}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := Parse(text)
		if err != nil {
			return
		}
		for _, op := range Ops() {
			x, ok := Merge(o.All(), op)
			if !ok {
				continue
			}
			if !(x.IOs > 0) {
				t.Errorf("%s: figures of %g I/Os", op, x.IOs)
			}
			for _, s := range x.Samples(op) {
				if s.Name == "" || s.Unit == "" || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
					t.Errorf("%+v", s)
				}
			}
		}
	})
}

// first is the first output of fio in a file of clusterbuster, which has many.
func first(f *testing.F, file []byte) []byte {
	f.Helper()
	var doc any
	if err := json.Unmarshal(file, &doc); err != nil {
		f.Fatal(err)
	}
	found := outputIn(doc)
	if found == nil {
		f.Fatal("no output of fio in the file")
	}
	b, err := json.Marshal(found)
	if err != nil {
		f.Fatal(err)
	}
	return b
}

func outputIn(v any) any {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			if found := outputIn(x); found != nil {
				return found
			}
		}
	case map[string]any:
		if out, ok := v["job_results"]; ok {
			return out
		}
		for _, x := range v {
			if found := outputIn(x); found != nil {
				return found
			}
		}
	}
	return nil
}
