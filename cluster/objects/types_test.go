package objects

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/param"
	"tare/workload/objects/loadfile"
)

// TestTyped: a field of a file's object that has another type in the API is refused at its place. Unknown fields are left to the API server.
func TestTyped(t *testing.T) {
	check := Checked(func(param.Values) error { return nil }, nil)
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: 'x${IDENTIFIER}'}, spec: {"
	for object, says := range map[string]string{
		pod + "containers: [{name: c, ports: [{containerPort: 80}], resources: {limits: {cpu: 1, memory: 64Mi}}, env: [{name: a, value: 'b'}]}], x: [1]}}": "",
		pod + "containers: [{livenessProbe: {httpGet: {port: http}}}], terminationGracePeriodSeconds: null}}":                                              "",
		pod + "containers: [{}], restartPolicy: 5}}":                                                         "a.yaml, line 2, column 105: restartPolicy: the value \"5\" is not a text; write it in quotes",
		pod + "containers: [{ports: {containerPort: 80}}]}}":                                                 "column 93: ports: a mapping is not a list",
		pod + "containers: [{ports: [{containerPort: '80'}]}]}}":                                             "containerPort: the text \"80\" is not a whole number; write one without quotes",
		pod + "containers: [{env: [{name: a, value: 1}]}]}}":                                                 "value: the value \"1\" is not a text",
		pod + "containers: [{tty: 'true'}]}}":                                                                "tty: the text \"true\" is not a boolean",
		pod + "containers: [{resources: {limits: {memory: 64 MiB}}}]}}":                                      "memory: the text \"64 MiB\" is not a quantity; write one such as",
		pod + "containers: [{livenessProbe: {httpGet: {port: true}}}]}}":                                     "port: the value \"true\" is not a number or a name",
		pod + "containers: [{resources: none}]}}":                                                            "resources: the text \"none\" is not a mapping",
		"{apiVersion: v1, kind: Secret, metadata: {name: 'x${IDENTIFIER}'}, data: {a: 'b c'}}":               "a: the text \"b c\" is not in base64",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: 'x${IDENTIFIER}', labels: {a: 1}}}":              "line 2, column 82: a: the value \"1\" is not a text",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: 'x${IDENTIFIER}'}, data: {a: b}, immutable: no}": "immutable: the text \"no\" is not a boolean",
	} {
		v := param.Values{loadfile.Param: param.Bundle{Text: "projects: [{num: 1, basename: x, templates: [{num: 2, file: a.yaml}]}]", Files: map[string]string{
			"a.yaml": "{kind: Template, parameters: [{name: IDENTIFIER}], objects: [\n" + object + "]}",
		}}.Value()}
		if err := check(v); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", object, err, says)
		}
	}
}

// TestTypedFiles: files that other loaders take are not refused, and a change of an object is checked, too.
func TestTypedFiles(t *testing.T) {
	check := Checked(func(param.Values) error { return nil }, nil)
	const dir = "../../workload/objects/loadfile/testdata"
	for file, vars := range map[string]string{"python.yaml": "", "go.yaml": "", "burner.yaml": "ITERATIONS=4 QPS=20 LATE="} {
		src, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		b := param.Bundle{Text: string(src), Files: map[string]string{}}
		for _, f := range loadfile.Names(b.Text) {
			for _, place := range f.Places {
				if x, err := os.ReadFile(filepath.Join(dir, place)); err == nil {
					b.Files[f.Name] = string(x)
					break
				}
			}
		}
		if err := check(param.Values{loadfile.Param: b.Value(), "vars": vars}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	const jobs = "jobs:\n- {name: make, namespace: n, objects: [{objectTemplate: c.yml}]}\n" +
		"- {name: change, jobType: patch, objects: [{kind: ConfigMap, labelSelector: {kube-burner.io/job: make}, objectTemplate: p.yml, patchType: application/merge-patch+json}]}\n"
	v := param.Values{loadfile.Param: param.Bundle{Text: jobs, Files: map[string]string{"c.yml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "p.yml": "data:\n  a: 5\n"}}.Value()}
	if err := check(v); err == nil || !strings.Contains(err.Error(), "p.yml, line 2, column 6: a: the value") {
		t.Errorf("a change: %v", err)
	}
}
