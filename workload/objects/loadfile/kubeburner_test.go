package loadfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/param"
	"tare/workload/objects/loadfile"
)

var vars = map[string]string{"ITERATIONS": "3", "QPS": "20"}

// TestBurner: each sort of job; objects that later jobs choose by labels of kube-burner and by their own; churn, which deletes and
// creates the same objects; a template of two documents, which calls a function of another file.
func TestBurner(t *testing.T) {
	p, err := loadfile.Parse(bundle(t, "burner.yaml"), vars)
	if err != nil {
		t.Fatal(err)
	}
	same(t, told(t, p), `
create 17: made-0/Deployment/web-0-1(3) made-1/Service/web-3-2(0) due 600ms wait 2m0s pause 3s
delete 8: made-0/Deployment/web-0-1(3) made-0/Service/web-1-2(0) due 150ms wait 2m0s
create 8: made-0/Deployment/web-0-1(3) made-0/Service/web-1-2(0) due 150ms wait 2m0s pause 1s
delete 8: made-1/Deployment/web-2-1(3) made-1/Service/web-3-2(0) due 150ms wait 2m0s
create 8: made-1/Deployment/web-2-1(3) made-1/Service/web-3-2(0) due 150ms wait 2m0s pause 1s
patch 8: made-0/Deployment/web-0-1(0) made-1/Deployment/web-3-2(0) due 700ms
patch 4: made-0/Deployment/web-0-1(0) made-1/Deployment/web-2-2(0) due 300ms
patch 8: made-0/Deployment/web-0-1(0) made-1/Deployment/web-3-2(0) due 700ms
patch 4: made-0/Deployment/web-0-1(0) made-1/Deployment/web-2-2(0) due 300ms
get 2: made-0/Service/web-1-1(0) made-0/Service/web-1-2(0)
delete 8: made-0/Deployment/web-0-1(3) made-1/Deployment/web-3-2(3) wait
delete 1: made-0/Secret/only(0) made-0/Secret/only(0)`)
	var objects []int
	for _, s := range p.Steps {
		objects = append(objects, s.Objects)
	}
	if want := []int{17, 9, 17, 9, 17, 17, 17, 9, 8}; len(p.Spaces) != 2 || p.Spaces[0].Labels["purpose"] != "load" || !equal(objects, want) {
		t.Errorf("namespaces %+v, objects after the steps %v, want %v", p.Spaces, objects, want)
	}
	r, err := p.Batches[0].At(0)
	if err != nil {
		t.Fatal(err)
	}
	text := jsonOf(t, r.Fields)
	for _, what := range []string{`"side":"even"`, `"kube-burner.io/job":"make"`, `"kube-burner.io/index":"0"`, `"env":[{"name":"V1","value":"make"},{"name":"V2","value":"make"}]`} {
		if !strings.Contains(text, what) {
			t.Errorf("%s is not in %s", what, text)
		}
	}
	if strings.Count(text, `"kube-burner.io/job-iteration":"0"`) != 2 {
		t.Errorf("labels of the pods: %s", text)
	}
	again, err := p.Batches[2].At(2)
	first, err2 := p.Batches[0].At(2)
	if err != nil || err2 != nil || jsonOf(t, again.Fields) != jsonOf(t, first.Fields) {
		t.Errorf("drawn anew: %v %v", again, first)
	}
	if r, err = p.Batches[7].At(0); err != nil {
		t.Fatal(err)
	}
	if b, err := r.Change(); err != nil || string(b) != `{"metadata":{"labels":{"turn":"1"}}}` || r.Type != "application/strategic-merge-patch+json" {
		t.Errorf("%s %s %v", b, r.Type, err)
	}
	if r, err = p.Batches[6].At(0); err != nil {
		t.Fatal(err)
	}
	if b, err := r.Change(); err != nil || string(b) != `[{"op":"add","path":"/metadata/labels/x","value":"y"}]` {
		t.Errorf("%s %v", b, err)
	}
	if len(p.Notes) != 2 || !strings.Contains(p.Notes[1].Error(), "line 64, column 15: controllers' pods are deleted with the controllers") {
		t.Errorf("notes: %v", p.Notes)
	}
}

func equal(a, b []int) bool {
	for i := range a {
		if len(a) != len(b) || a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// TestBurnerRefused: mistakes have the place in the file that was written, also behind a part that was left out.
func TestBurnerRefused(t *testing.T) {
	for _, c := range []struct{ from, to, says string }{
		{"{{ .QPS }}", "{{ .QSP }}", `file, line 14, column 13: the variable "QSP" has no value; write vars: QSP=VALUE below the workload; did you mean "QPS"?`},
		{"qps: {{", "qps: {{ foo", `file, line 14, column 1: the template: function "foo" not defined`},
		{"qps: {{", "qps: {{ defalt 3", `file, line 14, column 1: the template: function "defalt" not defined; did you mean "default"?`},
		{"podWait: false", "podsWait: false", `file, line 18, column 5: a job has no key "podsWait"; did you mean "podWait"?`},
		{"jobPause: 3s", "hooks: [{cmd: [rm]}]", "file, line 21, column 5: hooks run programs"},
		{"cycles: 2", "duration: 2m", "write cycles: NUMBER"},
		{"templates/secret.yml", "templates/none.yml", "file, line 35, column 25: cannot find the file templates/none.yml"},
		{"image: example.org/pause", "picture: x", `file, templates/web.yml, line 18, column 21: the variable "image" has no value; add image: VALUE below inputVars of the object; write one of Iteration, JobName,`},
		{"pods: 3", "pods: many", `file, templates/web.yml, line 9, column 13: spec.replicas: "many" is not a valid number`},
		{"{side: even}", "{side: left}", "no Deployment of an earlier job has the labels side=left"},
		{"kind: Service", "kind: Namespace", "Namespace belongs to the whole cluster"},
		{"kind: Service", "kind: Secret", "the load must not read secrets"},
		{"jobType: read", "jobType: kubevirt", `tare does not run jobs of the type "kubevirt"`},
		{`patchType: "application/json-patch+json"`, `patchType: "application/merge-patch+json"`, "file, templates/label.json, line 1, column 1: the patch does not have the form"},
		{"name: look", "name: ''", "the job has no name"},
	} {
		_, err := loadfile.Parse(bundle(t, "burner.yaml", c.from, c.to), vars)
		var fe *param.FileError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.to, err, c.says)
		}
	}
}

// TestBurnerNames: the files that a job names are found in every form that YAML has for it, also in a template, which need not be YAML.
func TestBurnerNames(t *testing.T) {
	for text, want := range map[string]string{
		"jobs:\n- name: a\n  objects:\n  - objectTemplate: t.yml\n":                                                                                                   "t.yml",
		"jobs:\n- name: a\n  objects:\n  - {objectTemplate: t.yml}\n":                                                                                                 "t.yml",
		"jobs:\n- name: a\n  objects:\n  - \"objectTemplate\": t.yml\n":                                                                                               "t.yml",
		"jobs:\n- name: a\n  objects:\n  - objectTemplate: \"a b.yml\"\n  - replicas: 2\n    objectTemplate: c d.yml # with a space\n":                                "a b.yml|c d.yml",
		`{"global": {"functionTemplates": ["f.tpl"]}, "jobs": [{"name": "a", "objects": [{"objectTemplate": "t.yml"}, {"replicas": 2, "objectTemplate": "u.yml"}]}]}`: "f.tpl|t.yml|u.yml",
		"global: {functionTemplates: [f.tpl]}\njobs: [{name: a, objects: [{objectTemplate: t.yml}]}]\n":                                                               "f.tpl|t.yml",
		// Templates:
		"jobs:\n- name: a\n  qps: {{ .QPS }}\n  objects:\n{{ if .X }}\n  - {objectTemplate: t.yml}\n{{ else }}\n  - objectTemplate: \"a b.yml\"\n{{ end }}\n": "t.yml|a b.yml|a",
		"jobs:\n- name: a\n{{ if .X }}\n  qps: 1\n{{ else }}\n  qps: 2\n{{ end }}\n  objects:\n  - objectTemplate: t.yml\n":                                   "t.yml",
		"jobs:\n- name: a\n  objects:\n  - objectTemplate: {{ .T }}\n  - objectTemplate: u.yml\n":                                                             "u.yml",
	} {
		var names []string
		for _, n := range loadfile.Names(text) {
			names = append(names, n.Name)
		}
		if got := strings.Join(names, "|"); got != want {
			t.Errorf("%s\nnames %s, want %s", text, got, want)
		}
	}
}

// TestGenerateName: objects with a generateName get names of their own, the same each time, also where two jobs share a namespace.
func TestGenerateName(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\nspec: {containers: [{name: x}]}\n"
	parse := func(config, template string) (*loadfile.Plan, error) {
		return loadfile.Parse(param.Bundle{Text: config, Files: map[string]string{"t.yml": template}}.Value(), nil)
	}
	const burner = `
jobs:
  - {name: a, namespace: n, namespacedIterations: false, jobIterations: 2, objects: [{objectTemplate: t.yml, replicas: 2}]}
  - {name: b, namespace: n, namespacedIterations: false, jobIterations: 40, objects: [{objectTemplate: t.yml}]}
  - {name: c, jobType: delete, objects: [{kind: Pod, labelSelector: {kube-burner.io/job: b}}]}
`
	p, err := parse(burner, pod)
	if err != nil {
		t.Fatal(err)
	}
	same(t, told(t, p), `
create 4: n/Pod/p-00000(1) n/Pod/p-00003(1) wait
create 40: n/Pod/p-00004(1) n/Pod/p-00017(1) wait
delete 40: n/Pod/p-00004(1) n/Pod/p-00017(1) wait`)
	const loader = "projects: [{num: 2, basename: n, templates: [{num: 3, file: t.yml}, {num: 2, file: t.yml}]}]"
	template := "kind: Template\nobjects: [{apiVersion: v1, kind: ConfigMap, metadata: {generateName: %s, name: ''}}]\n"
	if p, err = parse(loader, strings.Replace(template, "%s", "c-", 1)); err != nil {
		t.Fatal(err)
	}
	same(t, told(t, p), `
create 3: n0/ConfigMap/c-00000(0) n0/ConfigMap/c-00002(0)
create 2: n0/ConfigMap/c-00003(0) n0/ConfigMap/c-00004(0)
create 3: n1/ConfigMap/c-00005(0) n1/ConfigMap/c-00007(0)
create 2: n1/ConfigMap/c-00008(0) n1/ConfigMap/c-00009(0) wait`)
	if _, err = parse(loader, strings.Replace(template, "%s", "C_", 1)); err == nil || !strings.Contains(err.Error(), `t.yml, line 2, column 70: "C_00000" is not a valid name`) {
		t.Errorf("an invalid generateName: %v", err)
	}
}

// TestHarmless: a change cannot do what an object must not have.
func TestHarmless(t *testing.T) {
	const config = `
jobs:
  - {name: a, objects: [{objectTemplate: d.yml}]}
  - {name: b, jobType: patch, objects: [{kind: Deployment, labelSelector: {kube-burner.io/job: a}, objectTemplate: p.yml, patchType: application/%s}]}
`
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: x}]}}}\n"
	for _, c := range []struct{ kind, text, says string }{
		{"merge-patch+json", "spec: {template: {spec: {hostNetwork: true}}}", "hostNetwork"},
		{"merge-patch+json", "metadata: {finalizers: [a/b]}", "finalizers"},
		{"apply-patch+yaml", "metadata: {name: other}", "cannot rename"},
		{"json-patch+json", `[{op: add, path: /spec/template/spec/hostPID, value: true}]`, "hostPID"},
		{"json-patch+json", `[{op: add, path: /spec/template/spec/volumes/-, value: {name: x, hostPath: {path: /}}}]`, "hostPath"},
		{"json-patch+json", `[{op: replace, path: /spec/template/spec/containers/0/securityContext, value: {privileged: true}}]`, "securityContext"},
		{"json-patch+json", `[{op: replace, path: /metadata, value: {finalizers: [a/b]}}]`, "finalizers"},
		{"json-patch+json", `[{op: replace, path: "", value: {metadata: {ownerReferences: []}}}]`, "ownerReferences"},
		{"apply-patch+yaml", "spec: {replicas: 2}", ""},
		{"json-patch+json", `[{op: replace, path: /spec/replicas, value: 2}]`, ""},
	} {
		b := param.Bundle{Text: strings.Replace(config, "%s", c.kind, 1), Files: map[string]string{"d.yml": deployment, "p.yml": c.text}}
		_, err := loadfile.Parse(b.Value(), nil)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), "p.yml, line 1, column ") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.text, err, c.says)
		}
	}
}

// TestTemplateBounds: templates that would work or write without end are errors.
func TestTemplateBounds(t *testing.T) {
	for text, says := range map[string]string{
		`{{ range until 9999 }}{{ range until 9999 }}{{ end }}{{ end }}`:                  "passes",
		`{{ range 1000000000000 }}{{ end }}`:                                              "passes",
		`{{ define "a" }}{{ template "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`: "passes",
		`{{ $l := list 1 }}{{ range until 99 }}{{ $l = list $l $l }}{{ end }}{{ $l }}`:    "bytes or elements",
		`{{ $s := "x" }}{{ range until 99 }}{{ $s = print $s $s }}{{ end }}`:              "bytes or elements",
		`{{ printf "%99999d" 1 }}`:                                                        "width",
		`{{ range until 9999 }}{{ repeat 999 "x" }}{{ end }}`:                             "the output has more than",
		`{{ repeat 1000000000 "xxxxxxxxxx" }}`:                                            "bytes or elements",
		`{{ div 1 0 }}`:                                                                   "a division by 0",
		`{{ html "x" }}`:                                                                  "does not have this function",
		`{{ until 99999999 }}`:                                                            "bytes or elements",
		`{{ `:                                                                             "the template:",
		strings.Repeat(" ", 99) + `{{ index .x 3 }}`:                                      `line 1, column 109: the variable "x" has no value`,
		"\x01": "control characters",
		`{{ $m := dict "a" 1 }}{{ range until 99 }}{{ $m = dict "a" $m "b" $m }}{{ end }}{{ toJson $m }}`: "bytes or elements",
	} {
		b := param.Bundle{Text: "jobs: [{name: a, objects: [{objectTemplate: t.yml}]}]", Files: map[string]string{"t.yml": text}}
		if _, err := loadfile.Parse(b.Value(), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func FuzzBurner(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "burner.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"web.yml", "label.json", "functions.tpl"} {
		template, err := os.ReadFile(filepath.Join("testdata", "templates", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), string(template))
		f.Add("jobs: [{name: a, jobIterations: 3, objects: [{objectTemplate: t.yml, inputVars: {pods: 2, image: x}}]}]", string(template))
	}
	f.Fuzz(checkPlan)
}
