package study_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"tare/catalogue"
	"tare/cluster"
	"tare/cluster/pod"
	collectors "tare/collect/all"
	sandboxes "tare/sandbox/all"
	"tare/study"
	workloads "tare/workload/all"
)

// realCatalogue is what the program offers.
func realCatalogue(t *testing.T) study.Catalogue {
	t.Helper()
	return catalogue.Of(workloads.Workloads(), sandboxes.Kinds(sandboxes.Env{StateDir: t.TempDir()}), collectors.Collectors())
}

// The real names do not clash, and the shipped studies suit the real workloads
// and the real schema. Their widths leave room for a verdict of equivalent.
func TestShippedStudies(t *testing.T) {
	cat := realCatalogue(t)
	if err := cat.Check(); err != nil {
		t.Error(err)
	}
	text, err := study.Schema(cat)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("study.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("study.json")
	if err != nil {
		t.Fatal(err)
	}
	cat.ReadFile = func(path string) ([]byte, error) { return os.ReadFile(filepath.Join("../studies", path)) }
	files, err := filepath.Glob("../studies/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no shipped studies: %v", err)
	}
	pods := catalogue.Of(workloads.Workloads(), (&cluster.Brief{Classes: []pod.Class{{Name: "process"}, {Name: "gvisor"}}}).Kinds(), collectors.Collectors())
	pods.ReadFile = cat.ReadFile
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		on := cat
		if bytes.Contains(src, []byte("kind: pod")) {
			on = pods
		}
		s, err := study.Parse(f, src, on, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if wide := s.Stop.Wide(); wide != "" {
			t.Errorf("%s: %s", f, wide)
		}
		for _, st := range s.Strata {
			for _, cell := range st.Cells {
				if _, err := s.Resolve(on, cell); err != nil {
					t.Error(err)
				}
			}
		}
		if bytes.Contains(src, []byte("kind: pod")) {
			continue // the schema is that of a host
		}
		var v any
		if err := yaml.Unmarshal(src, &v); err != nil {
			t.Fatal(err)
		}
		js, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		in, err := jsonschema.UnmarshalJSON(bytes.NewReader(js))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(in); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}
