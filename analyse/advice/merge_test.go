package advice

import (
	"fmt"
	"testing"

	"tare/record"
)

func ExampleDocuments() {
	vm := []record.Cell{{{Factor: "sandbox", Value: "vm"}}}
	pod := func(text string) []Patch { return []Patch{{For: "pod", File: "pod", Text: text}} }
	items := []Item{
		{Rule: "vhost-queues", Treatment: "a", Cells: vm, NotWith: []string{"quota-limit"}, Sets: record.Cell{{Factor: "default_vcpus", Value: "2"}},
			Patches: pod("spec:\n  template:\n    metadata:\n      annotations:\n        vcpus: \"2\"\n")},
		{Rule: "quota-limit", Treatment: "a", Cells: vm, Sets: record.Cell{{Factor: "cpu-limit", Value: "4"}}, Patches: pod("spec: {}\n")},
		{Rule: "guest-vcpus", Treatment: "a", Cells: vm, Sets: record.Cell{{Factor: "default_vcpus", Value: "4"}}, Patches: pod("spec: {}\n")},
		{Rule: "host-exclusive", Treatment: "b", Cells: vm,
			Patches: pod("spec:\n  template:\n    spec:\n      containers:\n      - name: APP # its own\n        limits: {cpu: \"2\"}\n")},
		{Rule: "virtiofsd-block", Treatment: "b", Cells: vm,
			Patches: pod("spec:\n  template:\n    spec:\n      containers:\n      - name: APP\n        volume: x\n")},
	}
	docs, left, err := Documents(items, "sandbox", "pod")
	for _, d := range docs {
		fmt.Println(d.Of, d.About)
		fmt.Print(d.Text)
	}
	fmt.Println(left, err)
	// Output:
	// vm [a: vhost-queues b: host-exclusive b: virtiofsd-block]
	// spec:
	//   template:
	//     metadata:
	//       annotations:
	//         vcpus: "2"
	//     spec:
	//       containers:
	//         - name: APP # its own
	//           limits: {cpu: "2"}
	//           volume: x
	// map[1:must not be set beside vhost-queues 2:sets default_vcpus to 4, and a, which costs more, to 2] <nil>
}

func TestMergeTOML(t *testing.T) {
	got := mergeTOML([]string{"[a]\n  x = \"1\"\n", "[b]\n  x = \"2\"\n", "[a]\n  x = \"3\"\n  y = \"4\"\n"})
	if want := "[a]\n  x = \"1\"\n  y = \"4\"\n[b]\n  x = \"2\"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
