package study

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// compiled validates with another library than the one that writes the schema.
func compiled(t *testing.T, cat Catalogue) *jsonschema.Schema {
	t.Helper()
	text, err := Schema(cat)
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
	s, err := c.Compile("study.json")
	if err != nil {
		t.Fatalf("the schema is not one: %v", err)
	}
	return s
}

// instance turns a study file into what an editor validates.
func instance(t *testing.T, src []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(src, &v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSchemaAccepts(t *testing.T) {
	s := compiled(t, testCatalogue())
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(instance(t, src)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	// What Parse takes, the schema takes.
	for _, src := range []string{
		"study: s\nfactors: {sandbox: [process, runc]}\nworkloads: {noop: , x: {kind: net, mode: rr, message: 512, rate: '10', duration: 1m30s}}\n",
		"study: s\nfactors: {sandbox: [process, vm], vcpus: 2, cpus: [0, '0-1', any], duration: [1s, 2s], memory-limit: [none, 64M], cpu-limit: 1.5}\nworkloads: {cpu: {threads: [1, 2]}}\ncollect: {use: []}\nstop: {width: 0.1}\n",
		"study: s\nfactors: {sandbox: [process, runsc-systrap], directfs: [true, false]}\nworkloads: {net: {kind: cpu, threads: 4}}\nexclude: [{directfs: true}]\ninclude:\nbudget: {time: 4 m}\nstop:\ncollect:\n",
		"study: s\nturns: auto\nfactors: {sandbox: [process, runc]}\nworkloads: {cpu: {turns: 3}, x: {kind: cpu, turns: auto}}\n",
	} {
		if _, err := Parse("s.yaml", []byte(src), testCatalogue(), nil); err != nil {
			t.Errorf("Parse: %v", err)
		}
		if err := s.Validate(instance(t, []byte(src))); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	s := compiled(t, testCatalogue())
	for name, src := range map[string]string{
		"no workloads":         "study: s\n",
		"unknown key":          head + "sed: 1\n",
		"turns":                head + "turns: 0\n",
		"turns in words":       head + "turns: some\n",
		"seed":                 head + "seed: x\n",
		"kind":                 "study: s\nworkloads: {a: {kind: nte}}\n",
		"no kind":              "study: s\nworkloads: {a: {}}\n",
		"parameter":            "study: s\nworkloads: {a: {kind: cpu, message: 1}}\n",
		"parameter by label":   "study: s\nworkloads: {cpu: {message: 1}}\n",
		"parameter range":      "study: s\nworkloads: {a: {kind: cpu, threads: 0}}\n",
		"parameter range list": "study: s\nworkloads: {a: {kind: cpu, threads: [1, 0]}}\n",
		"word":                 "study: s\nworkloads: {a: {kind: net, mode: steam}}\n",
		"time without unit":    "study: s\nworkloads: {a: {kind: cpu, duration: 2}}\n",
		"factor":               "study: s\nfactors: {cpu-limits: [1]}\nworkloads: {cpu: {}}\n",
		"collector":            head + "collect: {use: [prok]}\n",
		"sandbox":              head + "sandboxes: {k: {runtim: x}}\n",
	} {
		if err := s.Validate(instance(t, []byte(src))); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
