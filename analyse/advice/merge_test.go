package advice

import (
	"fmt"
	"strings"
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
	got, clash := mergeTOML([]string{"[a]\n  x = \"1\"\n", "[b]\n  x = \"2\"\n", "[a]\n  x = \"3\"\n  y = \"4\"\n"})
	if want := "[a]\n  x = \"1\"\n  y = \"4\"\n[b]\n  x = \"2\"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if len(clash) != 1 || !strings.Contains(clash[0], `x = "1" stays, not x = "3"`) {
		t.Errorf("clash %q", clash)
	}
}

// TestDocumentsLibvirt: a domain's lines are kept as they are, though TOML is for the same kind of file.
func TestDocumentsLibvirt(t *testing.T) {
	const text = "<iothreads>4</iothreads>\n"
	docs, _, err := Documents([]Item{{Rule: "iothread-pool", Patches: []Patch{{For: "runtime", File: "libvirt domain, by virsh edit", Text: text}}}}, "sandbox", "runtime")
	if err != nil || len(docs) != 1 || docs[0].Text != text {
		t.Errorf("%+v, %v", docs, err)
	}
}

// TestClash: of two limits the larger is taken, of one and none none, and it is said;
// what an item warns of goes with its patch.
func TestClash(t *testing.T) {
	vm := []record.Cell{{{Factor: "sandbox", Value: "vm"}}}
	for _, c := range [][3]string{{`"2"`, `"16"`, `"16"`}, {`"16"`, `"2"`, `"16"`}, {`"2"`, "null", "null"}, {"null", `"2"`, "null"}} {
		var items []Item
		for i, v := range c[:2] {
			items = append(items, Item{Rule: fmt.Sprint("rule", i), Cells: vm, Warning: fmt.Sprint("mind ", i),
				Patches: []Patch{{For: "pod", File: "pod", Text: "limits:\n  cpu: " + v + "\n"}}})
		}
		docs, _, err := Documents(items, "sandbox", "pod")
		if err != nil || len(docs) != 1 {
			t.Fatal(docs, err)
		}
		d := docs[0]
		if want := "limits:\n  cpu: " + c[2] + "\n"; d.Text != want || len(d.Clash) != 1 || !strings.HasPrefix(d.Clash[0], "limits.cpu: "+strings.Trim(c[2], `"`)+" is taken, not ") {
			t.Errorf("%q, %q; want %q", d.Text, d.Clash, want)
		}
		if about := strings.Join(d.About, "\n"); !strings.Contains(about, "take care: mind 0") || !strings.Contains(about, "take care: mind 1") {
			t.Errorf("no warnings: %q", about)
		}
	}
}

// TestNoInventedMemory: a limit of memory that nobody read would kill what runs.
func TestNoInventedMemory(t *testing.T) {
	for _, r := range Rules() {
		for _, p := range r.Patches {
			for line := range strings.Lines(p.Text) {
				if said, _, _ := strings.Cut(line, "#"); strings.Contains(said, "memory:") {
					t.Errorf("%s sets a memory: %s", r.Name, line)
				}
			}
		}
	}
}

// TestTogether: of two settings that must not be made together, the second is left out,
// and only for the same sandbox.
func TestTogether(t *testing.T) {
	cell := func(box string) []record.Cell { return []record.Cell{{{Factor: "sandbox", Value: box}}} }
	limit := func(v string) record.Cell { return record.Cell{{Factor: "cpu-limit", Value: v}} }
	items := []Item{
		{Rule: "quota-limit", Cells: cell("vm"), Sets: limit("4"), NotWith: []string{"vhost-queues"}},
		{Rule: "vhost-queues", Cells: cell("vm"), Sets: record.Cell{{Factor: "default_vcpus", Value: "2"}}},
		{Rule: "vhost-queues", Cells: cell("other"), Sets: record.Cell{{Factor: "default_vcpus", Value: "2"}}},
		{Rule: "guest-limit", Cells: cell("vm"), Sets: limit("2")},
		{Rule: "path-batch", Cells: cell("vm")},
		{Rule: "vhost-queues", Cells: cell("vm"), Sets: limit("2"), Contradicted: true},
	}
	kept, left := Together(items, "sandbox")
	if len(kept) != 4 || kept[1].Cells[0][0].Value != "other" || !strings.Contains(left[1], "beside quota-limit") || !strings.Contains(left[3], "cpu-limit") {
		t.Errorf("kept %+v, left %v", kept, left)
	}
}
