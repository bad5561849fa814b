package loadfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/workload/objects/loadfile"
)

// bundle reads a file of testdata with those that it names.
func bundle(t testing.TB, file string, changes ...string) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(changes...).Replace(string(src))
	if len(changes) > 0 && text == string(src) {
		t.Fatalf("%s does not have %q", file, changes[0])
	}
	return bundleOf(text)
}

func bundleOf(text string) string {
	b := param.Bundle{Text: text, Files: map[string]string{}}
	for _, f := range loadfile.Names(text) {
		for _, place := range f.Places {
			if x, err := os.ReadFile(filepath.Join("testdata", place)); err == nil {
				b.Files[f.Name] = string(x)
				break
			}
		}
	}
	return b.Value()
}

// told is a plan in words: each batch on a line, with its first and last request.
func told(t testing.TB, p *loadfile.Plan) string {
	t.Helper()
	var out strings.Builder
	for i := range p.Batches {
		b := &p.Batches[i]
		fmt.Fprintf(&out, "%s %d:", b.Verb, b.Count)
		for _, k := range []int{0, b.Count - 1} {
			r, err := b.At(k)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, " %s/%s/%s(%d)", p.Spaces[r.Space].Name, r.Kind.Name, r.Name, r.Pods)
		}
		if due := b.Due(1); due != nil {
			fmt.Fprintf(&out, " due %s", due(b.Count-1).Round(time.Millisecond))
		}
		if b.Wait {
			fmt.Fprintf(&out, " wait")
		}
		if b.Timeout > 0 {
			fmt.Fprintf(&out, " %s", b.Timeout)
		}
		if b.Pause > 0 {
			fmt.Fprintf(&out, " pause %s", b.Pause)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if got = strings.TrimSpace(got); got != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", got, strings.TrimSpace(want))
	}
}

// TestPython: percentages of a total, rounded down; templates with their objects due together; steps and pauses; a project's
// namespace that a later one uses again.
func TestPython(t *testing.T) {
	p, err := loadfile.Parse(bundle(t, "python.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	one := func(space string) string {
		return strings.ReplaceAll(`
create 1: bench0/ResourceQuota/small(0) bench0/ResourceQuota/small(0)
create 4: bench0/Deployment/web0(2) bench0/Service/web1(0) due 1s wait pause 1m0s
create 2: bench0/Deployment/web2(2) bench0/Service/web2(0) due 0s
create 2: bench0/Service/entry0(0) bench0/Service/entry1(0)
create 5: bench0/Pod/a0(1) bench0/Pod/a4(1) due 1s wait pause 10s
create 5: bench0/Pod/a5(1) bench0/Pod/a9(1) due 1s wait pause 10s
create 5: bench0/Pod/b0(1) bench0/Pod/b4(1) due 1s wait pause 10s
create 5: bench0/Pod/b5(1) bench0/Pod/b9(1) due 1s wait pause 10s
create 4: bench0/Pod/b10(1) bench0/Pod/b13(1) due 750ms wait
create 1: bench0/ReplicationController/c0(3) bench0/ReplicationController/c0(3)`, "bench0", space)
	}
	same(t, told(t, p), one("bench0")+one("bench1")+`
create 1: bench0/Secret/secret0(0) bench0/Secret/secret0(0) wait
`)
	if len(p.Spaces) != 2 || len(p.Steps) != 13 || p.Steps[12].Objects != 69 || !p.HasPods() {
		t.Errorf("%d namespaces, steps %+v", len(p.Spaces), p.Steps)
	}
	field := func(batch, i int) string {
		r, err := p.Batches[batch].At(i)
		if err != nil {
			t.Fatal(err)
		}
		return jsonOf(t, r.Fields)
	}
	for what, text := range map[string]string{
		`"value":"some words${OTHER}"`:                         field(1, 0),
		`"replicas":2`:                                         field(1, 0),
		`"labels":{"template":"web"}`:                          field(1, 3),
		`"nodeSelector":{"node-role.kubernetes.io/worker":""}`: field(4, 0),
		`"image":"example.org/other"`:                          field(9, 0),
		`"selector":{"name":"c0"}`:                             field(9, 0),
	} {
		if !strings.Contains(text, what) {
			t.Errorf("%s is not in %s", what, text)
		}
	}
	if a, b := field(1, 0), field(1, 2); a != field(1, 0) || strings.Contains(a, `"name":"Y","value":""`) || strings.Contains(b, a[strings.Index(a, `"name":"Y"`):][:30]) {
		t.Errorf("generated values:\n%s\n%s", a, b)
	}
}

// TestGo: numbers of pods, whose metadata the file does not say; whole numbers are seconds and milliseconds; ConfigMaps of files.
func TestGo(t *testing.T) {
	p, err := loadfile.Parse(bundle(t, "go.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	one := `
create 1: bench0/ConfigMap/settings(0) bench0/ConfigMap/settings(0)
create 4: bench0/Deployment/web0(1) bench0/Service/web1(0)
create 2: bench0/Pod/pausepods-pod-0(1) bench0/Pod/pausepods-pod-1(1) due 250ms wait 1m30s pause 3s
create 2: bench0/Pod/pausepods-pod-2(1) bench0/Pod/pausepods-pod-3(1) due 250ms wait 1m30s pause 3s
create 1: bench0/Pod/pausepods-pod-4(1) bench0/Pod/pausepods-pod-4(1) due 0s`
	same(t, told(t, p), one+strings.ReplaceAll(one, "bench0", "bench1")+" wait 1m30s")
	if got := p.Spaces[1].Labels["purpose"]; got != "load" {
		t.Errorf("labels of a project: %q", got)
	}
}

// TestRefused: what cannot be honoured is refused at its place in its file.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ file, from, to, says string }{
		{"python.yaml", "num: 30", "num: many", `file, line 21, column 14: num: "many" is not a valid number; write a whole number`},
		{"python.yaml", "type: none", "type: ceph", `file, line 25, column 13: the loader creates storage of the type "ceph" outside of Kubernetes`},
		{"python.yaml", "total: 35", "number: 35", "file, line 20, column 9: the pods have no total"},
		{"python.yaml", "quota: small", "users: []", "file, line 8, column 12: users: plain Kubernetes has no objects for users"},
		{"python.yaml", "quota: small", "quota: large", `file, line 8, column 12: the file defines no quota "large"; write one of small`},
		{"python.yaml", "quota: small", "qouta: small", `file, line 8, column 5: a project has no key "qouta"; did you mean "quota"?`},
		{"python.yaml", "tuning: slow", "tuning: fast", `the file defines no tuning set "fast"; write one of slow`},
		{"python.yaml", "tuningsets:", "provider:", `the file defines no tuning set "slow"; add tuningsets, or remove tuning`},
		{"python.yaml", "quotas:", "provider:", `the file defines no quota "small"; add quotas, or remove quota`},
		{"python.yaml", "content/rc.json", "content/x.json", "file, line 33, column 15: cannot find the file content/x.json; put it next to this file"},
		{"python.yaml", "ifexists: reuse", "ifexists: delete", ""},
		{"python.yaml", "ENV_VALUE", "NO_VALUE", "file, line 13, column 23: the template ./content/web.json has no parameter NO_VALUE"},
		{"python.yaml", `REPLICAS: "2"`, `REPLICAS: "many"`, `file, ./content/web.json, line 10, column 17: spec.replicas: "many" is not a valid number`},
		{"python.yaml", `          - REPLICAS: "2"`, "", `file, ./content/web.json, line 28, column 3: the parameter REPLICAS has no value`},
		{"python.yaml", "pause: 10 s", "pause: 10 weeks", `pause: "10 weeks" is not a valid time`},
		{"python.yaml", "delay: 250 ms", "delay: 999999999999999 hr", "is not a valid time"},
		{"go.yaml", "ifexists: delete", "ifexists: keep", "write reuse, delete or default"},
		{"go.yaml", "running: true", "succeeded: true", "the load waits until pods run, not until they end"},
		{"go.yaml", "basename: bench", "basename: Bench_", `"Bench_0" is not the name of a namespace`},
		{"go.yaml", "settings.txt", "none.txt", "cannot find the file none.txt"},
	} {
		_, err := loadfile.Parse(bundle(t, c.file, c.from, c.to), nil)
		var fe *param.FileError
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.to, err)
		case c.says != "" && (!errors.As(err, &fe) || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v, want %q", c.to, err, c.says)
		}
	}
}

// TestOutside: a name that leads out of the folders that are searched names no place, and is refused where it is written.
func TestOutside(t *testing.T) {
	for name, want := range map[string]string{
		"a.json":                     "a.json content/a.json ../a.json ../content/a.json ../../a.json ../../content/a.json",
		"../../content/a.json":       "../../content/a.json ../content/a.json", // in openshift/svt
		"../../../x/content/a.json":  "../../x/content/a.json",                 // there too
		"../../../../../etc/passwd":  "",
		"b/../../../../../../a.json": "",
		"../../../..":                "",
		"''":                         "",
		"/etc/passwd":                "",
	} {
		text := "projects: [{num: 1, basename: x, templates: [{num: 1, file: " + name + "}]}]"
		var got []string
		for _, n := range loadfile.Names(text) {
			got = append(got, n.Places...)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: places %q, want %s", name, got, want)
		}
		says := "line 1, column 61: cannot find the file"
		if want == "" && name != "''" {
			says = fmt.Sprintf("line 1, column 61: %q leads out of the folder of this file and the two folders above; copy it into one of them", name)
		}
		if _, err := loadfile.Parse(bundleOf(text), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
}

// TestObjects: objects that a load must not create are refused at their place in the template.
func TestObjects(t *testing.T) {
	const config = "projects: [{num: 1, basename: x, templates: [{num: 1, file: a.yaml}]}]"
	for object, says := range map[string]string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: x}}":                                                                     "Namespace belongs to the whole cluster",
		"{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: x}}":                                                      "Route is a kind of OpenShift",
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}}":                                                                "ServiceAccount gives rights",
		"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x}}":                                                                "as many pods as the cluster has nodes",
		"{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: x}}":                                                    "write apps/v1",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: kube-system}}":                                             "only in namespaces of its own",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, finalizers: [a/b]}}":                                                  "could outlive its namespace",
		"{apiVersion: v1, kind: ConfigMap, metadata: {}}":                                                                            "has no name",
		"{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {externalIPs: [1.2.3.4]}}":                                       "external addresses",
		"{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {}}":                                                                 "has no container",
		"{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {hostNetwork: true, containers: [{}]}}":                              "line 2, column 67: hostNetwork",
		"{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{securityContext: {privileged: true}}]}}":              "privileged",
		"{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{securityContext: {capabilities: {add: [ALL]}}}]}}":    "add",
		"{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{}], volumes: [{name: h, hostPath: {path: /}}]}}":      "hostPath",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {template: {spec: {hostPID: true, containers: [{}]}}}}":  "hostPID",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: 9999, template: {spec: {containers: [{}]}}}}": "spec.replicas",
		"[]": "not a Kubernetes object",
	} {
		b := param.Bundle{Text: config, Files: map[string]string{"a.yaml": "kind: Template\nobjects: [" + object + "]\n"}}
		if _, err := loadfile.Parse(b.Value(), nil); err == nil || !strings.Contains(err.Error(), "file, a.yaml, line 2, column ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", object, err, says)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"python.yaml", "go.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		web, err := os.ReadFile("testdata/content/web.json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), string(web))
	}
	f.Fuzz(checkPlan)
}

// checkPlan reads a file whose templates are all the same. What is read has as many requests in its steps as in its batches, and
// the last of each can be made.
func checkPlan(t *testing.T, text, template string) {
	b := param.Bundle{Text: text, Files: map[string]string{}}
	for _, n := range loadfile.Names(text) {
		b.Files[n.Name] = template
	}
	p, err := loadfile.Parse(b.Value(), vars)
	if err != nil {
		return
	}
	requests := 0
	for _, s := range p.Steps {
		requests += s.Requests
	}
	for _, b := range p.Batches {
		requests -= b.Count
		if _, err := b.At(b.Count - 1); err != nil {
			t.Errorf("the last request of a batch: %v", err)
		}
	}
	if requests != 0 || len(p.Steps) == 0 || len(p.Steps) > loadfile.MaxSteps {
		t.Errorf("%d steps, %d requests too few", len(p.Steps), requests)
	}
}

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
