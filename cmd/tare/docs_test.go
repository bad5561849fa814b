package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	collectall "tare/collect/all"
	"tare/host"
	workloadall "tare/workload/all"
)

// The documentation is held to what the program does:
//
//	```text help         what the page's verb prints for --help, word for word
//	```console           lines after "$ " are run, in order, in one directory a page
//	```console root      the same, as root alone, since it starts sandboxes
//	```console exact     the same, and what is printed is what is shown
//	```yaml              a study, or a part of one
//	```yaml NAME.yaml    a study that the page's commands find by this name
//	```yaml NAME mapping the same of a mapping, which is no study
//	```csv NAME.csv      the same of a table
//
// A command must end with 0, or with N if "# exit N" stands behind it.
// `go test ./cmd/tare -run Docs -update` writes help and exact output anew.

var update = flag.Bool("update", false, "write what the documentation shows of the program anew")

// TestDocsHelp holds the golden --help of every verb.
func TestDocsHelp(t *testing.T) {
	for _, verb := range verbs() {
		p := readPage(t, "docs/verbs/"+verb+".md")
		raw, err := exec.Command(bin, verb, "--help").CombinedOutput()
		if err != nil {
			t.Fatalf("tare %s --help: %v", verb, err)
		}
		// Without root tare has its files elsewhere.
		want := strings.ReplaceAll(string(raw), host.DefaultDirs().Data, "/var/lib/tare")
		n := 0
		for _, b := range p.blocks {
			if !b.is("text", "help") {
				continue
			}
			n++
			diff := cmp.Diff(want, b.text)
			switch {
			case diff != "" && *update:
				rewrite(t, p.name, b, want)
			case diff != "":
				t.Errorf("%s:%d is not what `tare %s --help` prints (-printed +shown); run this test with -update:\n%s", p.name, b.line, verb, diff)
			}
		}
		if n != 1 {
			t.Errorf("%s has %d blocks ```text help, want one", p.name, n)
		}
	}
}

// verbs are those that a user sees, cobra's own completion among them.
func verbs() []string {
	root := newRoot(&app{})
	root.InitDefaultCompletionCmd("x")
	var out []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			out = append(out, c.Name())
		}
	}
	return out
}

var exitMark = regexp.MustCompile(`\s+# exit (\d+)$`)

// TestDocsCommands runs the examples. The commands of a page share a directory,
// so that a page can tell a story; it holds the studies, and results/rehearsal
// if the page uses it without making it.
func TestDocsCommands(t *testing.T) {
	results := ""
	n := 0
	for _, p := range pages(t) {
		var consoles []block
		for _, b := range p.blocks {
			if b.is("console") {
				consoles = append(consoles, b)
			}
		}
		if len(consoles) == 0 {
			continue
		}
		n++
		if results == "" {
			results = rehearsed(t)
		}
		t.Run(strings.TrimSuffix(p.name, ".md"), func(t *testing.T) {
			dir := furnished(t, p, results)
			for _, b := range consoles {
				if b.has("root") && os.Geteuid() != 0 {
					t.Logf("%s:%d needs root: not run", p.name, b.line)
					continue
				}
				play(t, dir, p, b)
			}
		})
	}
	if n < 9 {
		t.Errorf("only %d pages have examples", n)
	}
}

// play runs one block, line by line.
func play(t *testing.T, dir string, p page, b block) {
	t.Helper()
	var shown strings.Builder
	ran := 0
	for i, line := range strings.Split(strings.TrimSuffix(b.text, "\n"), "\n") {
		cmd, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue // what was printed
		}
		ran++
		want := 0
		if m := exitMark.FindStringSubmatch(cmd); m != nil {
			want, _ = strconv.Atoi(m[1])
			cmd = strings.TrimSuffix(cmd, m[0])
		}
		out, code := shell(t, dir, cmd, b.has("root"))
		if code != want {
			t.Errorf("%s:%d: $ %s\nended with %d, not %d:\n%s", p.name, b.line+i, cmd, code, want, out)
		}
		fmt.Fprintln(&shown, line)
		for l := range strings.Lines(out) {
			fmt.Fprintln(&shown, strings.TrimRight(l, " \n"))
		}
	}
	if ran == 0 {
		t.Errorf("%s:%d: no line begins with $", p.name, b.line)
	}
	if !b.has("exact") {
		return
	}
	if diff := cmp.Diff(shown.String(), b.text); diff != "" {
		if *update {
			rewrite(t, p.name, b, shown.String())
			return
		}
		t.Errorf("%s:%d shows another output (-printed +shown); run this test with -update:\n%s", p.name, b.line, diff)
	}
}

// furnished makes the directory in which a page's commands run.
func furnished(t *testing.T, p page, results string) string {
	t.Helper()
	dir := t.TempDir()
	err := os.CopyFS(filepath.Join(dir, "studies"), os.DirFS(filepath.Join(top, "studies")))
	if err == nil && !strings.Contains(strings.Join(p.lines, "\n"), "```yaml rehearsal.yaml") {
		err = os.CopyFS(filepath.Join(dir, "results", "rehearsal"), os.DirFS(results))
	}
	for _, b := range p.blocks {
		if err == nil && (b.is("yaml") || b.is("csv")) && len(b.info) > 1 {
			err = os.WriteFile(filepath.Join(dir, b.info[1]), []byte(b.text), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// rehearsed runs the study of the page of run, on the sandbox fake.
func rehearsed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, b := range readPage(t, "docs/verbs/run.md").blocks {
		if b.is("yaml", "rehearsal.yaml") {
			if err := os.WriteFile(filepath.Join(dir, "rehearsal.yaml"), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out, code := shell(t, dir, "tare run rehearsal.yaml", false); code != 0 {
		t.Fatalf("the rehearsal ended with %d:\n%s", code, out)
	}
	return filepath.Join(dir, "results", "rehearsal")
}

var topKey = regexp.MustCompile(`(?m)^([a-z]+):`)

// TestDocsStudies plans every study shown, and every part of one with what it
// lacks added.
func TestDocsStudies(t *testing.T) {
	dir := t.TempDir()
	n := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.is("ini") && len(b.info) == 2 { // a job file, which a study after it names
				if err := os.WriteFile(filepath.Join(dir, b.info[1]), []byte(b.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if !b.is("yaml") || b.has("mapping") {
				continue
			}
			n++
			text, has := b.text, map[string]bool{}
			for _, m := range topKey.FindAllStringSubmatch(text, -1) {
				has[m[1]] = true
			}
			for _, add := range [][2]string{{"study", "study: part"}, {"factors", "factors: {sandbox: [process, runc]}"}, {"workloads", "workloads: {noop: {}}"}} {
				if !has[add[0]] {
					text += add[1] + "\n"
				}
			}
			file := filepath.Join(dir, "study.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"plan", "--no-check", file}
			if b.has("k8s") { // of a cluster; its manifests need none
				args = []string{"plan", "--on", "k8s", "--manifests", file}
			}
			if out, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
				t.Errorf("%s:%d: tare plan: %v\n%s", p.name, b.line, err, out)
			}
		}
	}
	if n < 12 {
		t.Errorf("only %d studies were looked at", n)
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestDocsLinks follows every relative link; the index must lead to every page.
func TestDocsLinks(t *testing.T) {
	indexed := map[string]bool{}
	all := pages(t)
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(p.prose(), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "#") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(p.name), path)
			if _, err := os.Stat(filepath.Join(top, target)); err != nil {
				t.Errorf("%s: the link %s leads nowhere", p.name, m[1])
			} else if anchor != "" && !slices.Contains(anchors(readPage(t, target)), anchor) {
				t.Errorf("%s: the link %s: %s has no such heading", p.name, m[1], target)
			}
			if p.name == "docs/README.md" {
				indexed[target] = true
			}
		}
	}
	for _, p := range all {
		if !indexed[p.name] && p.name != "README.md" && p.name != "docs/README.md" {
			t.Errorf("docs/README.md does not lead to %s", p.name)
		}
	}
}

// anchors are the names that GitHub gives to headings.
func anchors(p page) []string {
	var out []string
	for line := range strings.Lines(p.prose()) {
		if h := strings.TrimLeft(line, "#"); h != line && strings.HasPrefix(h, " ") {
			h = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(h)), "")
			out = append(out, strings.ReplaceAll(h, " ", "-"))
		}
	}
	return out
}

// TestDocsComplete: everything that `tare list` lists has its page, and no page
// describes what is not there. The levels of one runtime (runsc-kvm) share one.
func TestDocsComplete(t *testing.T) {
	want := map[string]bool{"docs/sandboxes/oci.md": true, "docs/sandboxes/pod.md": true, "docs/sandboxes/kubevirt.md": true, "docs/collectors/host.md": true, "docs/workloads/uperf.md": true, "docs/workloads/objects-files.md": true}
	for _, v := range verbs() {
		want["docs/verbs/"+v+".md"] = true
	}
	for _, w := range workloadall.Workloads() {
		want["docs/workloads/"+w.Name()+".md"] = true
	}
	for _, c := range append(collectall.Collectors(), collectall.Counting()) {
		want["docs/collectors/"+c.Name()+".md"] = true
	}
	_, names, err := kinds(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		base, _, _ := strings.Cut(n, "-")
		p := "docs/sandboxes/" + base + ".md"
		want[p] = true
		if raw, err := os.ReadFile(filepath.Join(top, p)); err == nil && !bytes.Contains(raw, []byte("`"+n+"`")) && base != n {
			t.Errorf("%s does not mention %s", p, n)
		}
	}
	for name := range want {
		if _, err := os.Stat(filepath.Join(top, name)); err != nil {
			t.Errorf("%s is missing", name)
		}
	}
	for _, p := range pages(t) {
		family := filepath.Base(filepath.Dir(p.name))
		if slices.Contains([]string{"verbs", "workloads", "sandboxes", "collectors"}, family) && !want[p.name] {
			t.Errorf("%s describes what is not there", p.name)
		}
	}
	for _, v := range verbs() {
		if !strings.Contains(readPage(t, "docs/verbs/"+v+".md").prose(), "(../exit-codes.md)") {
			t.Errorf("docs/verbs/%s.md does not lead to the exit codes", v)
		}
	}
}

var exitRow = regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \|`)

// TestDocsExitCodes compares the page with the constants of exit.go and the
// words beside them.
func TestDocsExitCodes(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "exit.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if ok && strings.HasPrefix(v.Names[0].Name, "exit") && len(v.Values) == 1 && v.Comment != nil {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				want[lit.Value] = strings.TrimSpace(v.Comment.Text())
			}
		}
		return true
	})
	if len(want) < 7 {
		t.Fatalf("only %d codes in exit.go", len(want))
	}
	got := map[string]string{}
	for _, m := range exitRow.FindAllStringSubmatch(readPage(t, "docs/exit-codes.md").prose(), -1) {
		got[m[1]] = strings.TrimSpace(m[2])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/exit-codes.md (-exit.go +page):\n%s", diff)
	}
}
