package loadfile_test

import (
	"strings"
	"testing"

	"tare/param"
	"tare/workload/objects/loadfile"
)

// TestPlaces: a mistake in an object is said at its key, also if labels or a name are put beside it, and at a key that is misspelt.
func TestPlaces(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\n"
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\n"
	for template, says := range map[string]string{
		pod + "metadata: 5\nspec: {containers: [{name: c}]}\n":                                    "t.yml, line 3, column 1: metadata of the Pod is not a mapping; write metadata: and below it name: NAME",
		pod + "metdata:\n  name: x\nspec: {containers: [{name: c}]}\n":                            "line 3, column 1: the Pod has no name",
		pod + "metadata:\n  nam: x\nspec: {containers: [{name: c}]}\n":                            "line 4, column 3: the Pod has no name",
		pod + "metadata:\n  name: x\n  labels: 5\nspec: {containers: [{name: c}]}\n":              "line 5, column 3: labels are not a mapping",
		pod + "metadata:\n  name: x\nspec:\n  container: [{name: c}]\n":                           "line 6, column 3: the Pod has no container; write spec.containers, a list",
		pod + "metadata:\n  name: x\nspec:\n  containers: 5\n":                                    "line 6, column 3: the Pod has no container",
		pod + "metadata:\n  name: x\nspec: 5\n":                                                   "line 5, column 1: the Pod has no container",
		deployment + "spec:\n  template: 5\n":                                                     "line 6, column 3: the Deployment has no container; write spec.template.spec.containers, a list",
		deployment + "spec:\n  template:\n    spc: {}\n":                                          "line 7, column 5: the Deployment has no container",
		deployment + "spec:\n  template:\n    metadata: 5\n    spec: {containers: [{name: c}]}\n": "line 7, column 5: metadata of the pods is not a mapping",
		"apiversion: v1\nkind: Pod\n":                                                             "line 1, column 1: the Pod has no apiVersion",
	} {
		b := param.Bundle{Text: "jobs: [{name: a, objects: [{objectTemplate: t.yml}]}]", Files: map[string]string{"t.yml": template}}
		if _, err := loadfile.Parse(b.Value(), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", template, err, says)
		}
	}
}

// TestControllerPlaces: what a loader adds to an object of cluster-loader does not hide a mistake of the object's file.
func TestControllerPlaces(t *testing.T) {
	for template, says := range map[string]string{
		"apiVersion: v1\nkind: ReplicationController\nspec: 5\n":                                                                     "rc.yml, line 3, column 1: the ReplicationController has no container",
		"kind: Template\nparameters: [{name: IDENTIFIER}]\nobjects: [{apiVersion: v1, kind: Pod, metadata: {name: 'x${IDENTIFY}'}}]": `line 3, column 56: the template has no parameter "IDENTIFY"; add it below parameters of the template; did you mean "IDENTIFIER"?`,
	} {
		text := "projects: [{num: 1, basename: n, rcs: [{num: 2, replicas: 3, image: i, basename: b, file: rc.yml}]}]"
		if strings.Contains(template, "Template") {
			text = "projects: [{num: 1, basename: n, templates: [{num: 2, file: rc.yml}]}]"
		}
		b := param.Bundle{Text: text, Files: map[string]string{"rc.yml": template}}
		if _, err := loadfile.Parse(b.Value(), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", template, err, says)
		}
	}
}
