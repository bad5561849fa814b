package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSummarise reads what the real `go test -json` prints for a module that
// passes, fails, skips, panics and does not compile.
func TestSummarise(t *testing.T) {
	for _, test := range []struct {
		name string
		file string // the package's test file
		good bool
		want []string // in this order, the last one at the end
	}{
		{
			"passes and skips", "package x\nimport \"testing\"\n" +
				"func TestA(t *testing.T) {}\n" +
				"func TestB(t *testing.T) { t.Log(\"looked\"); t.Skip(\"no KVM: cannot\") }\n", true,
			[]string{"ok    x ", "skip  x TestB: no KVM: cannot", "1 passed, 0 failed, 1 skipped"},
		},
		{
			"fails", "package x\nimport \"testing\"\n" +
				"func TestA(t *testing.T) {}\n" +
				"func TestB(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { t.Error(\"not equal\") }) }\n", false,
			[]string{"FAIL  x TestB/sub", "not equal", "and again, alone:", "not equal", "1 passed, 2 failed, 0 skipped"},
		},
		{
			"fails once", "package x\nimport (\"os\"; \"testing\")\n" +
				"func TestA(t *testing.T) {}\n" +
				"func TestB(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { if os.Mkdir(\"was\", 0o700) == nil { t.Error(\"too slow\") } }) }\n", true,
			[]string{"again, alone: x\n", "ok    x ", "flaky x TestB/sub\n", "too slow", "flaky x TestB\n", "3 passed (2 flaky), 0 failed, 0 skipped"},
		},
		{
			"many fail once", "package x\nimport (\"fmt\"; \"os\"; \"testing\")\n" +
				"func TestA(t *testing.T) { once := os.Mkdir(\"was\", 0o700) == nil; " +
				"for i := range 5 { t.Run(fmt.Sprint(i), func(t *testing.T) { if once { t.Error(\"too slow\") } }) } }\n", false,
			[]string{"flaky x TestA/0\n", "6 passed (6 flaky, more than the 5 that are let pass), 0 failed, 0 skipped"},
		},
		{
			"fails, then is skipped", "package x\nimport (\"os\"; \"testing\")\n" +
				"func TestA(t *testing.T) { if os.Mkdir(\"was\", 0o700) == nil { t.Error(\"too slow\") }; t.Skip(\"too noisy\") }\n" +
				"func TestB(t *testing.T) {}\n", false,
			[]string{"FAIL  x TestA\n", "too slow", "1 passed, 1 failed, 0 skipped"},
		},
		{
			"each run another", "package x\nimport (\"os\"; \"testing\")\n" +
				"var first = os.Mkdir(\"was\", 0o700) == nil\n" +
				"func TestA(t *testing.T) { if first { t.Error(\"one\") } }\n" +
				"func TestB(t *testing.T) { if !first { t.Error(\"two\") } }\n", false,
			[]string{"FAIL  x TestB when run again\n", "two", "flaky x TestA\n", "one", "1 passed (1 flaky), 1 failed, 0 skipped"},
		},
		{
			"fails, then dies", "package x\nimport (\"os\"; \"testing\")\n" +
				"var first = os.Mkdir(\"was\", 0o700) == nil\n" +
				"func TestA(t *testing.T) { if first { t.Error(\"one\") } }\n" +
				"func TestB(t *testing.T) { if !first { println(\"gone\"); os.Exit(3) } }\n", false,
			[]string{"FAIL  x\n", "FAIL  x TestA\n", "one", "FAIL  x TestB has no end when run again\n", "gone", "0 passed, 2 failed, 0 skipped"},
		},
		{
			"a panic is no flake", "package x\nimport (\"os\"; \"testing\")\n" +
				"func TestA(t *testing.T) { t.Error(\"one\") }\n" +
				"func TestB(t *testing.T) { if os.Mkdir(\"was\", 0o700) == nil { panic(\"out of range\") } }\n", false,
			[]string{"FAIL  x TestA\n", "FAIL  x TestB", "panic: out of range", "0 passed, 2 failed, 0 skipped"},
		},
		{
			"the package's own check is no flake", "package x\nimport (\"os\"; \"testing\")\n" +
				"func TestMain(m *testing.M) { m.Run(); if os.Mkdir(\"was\", 0o700) == nil { println(\"left behind\"); os.Exit(1) } }\n" +
				"func TestA(t *testing.T) {}\n", false,
			[]string{"FAIL  x\n", "left behind", "1 passed, 0 failed, 0 skipped"},
		},
		{
			"panics", "package x\nimport \"testing\"\n" +
				"func TestA(t *testing.T) {}\n" +
				"func TestB(t *testing.T) { panic(\"out of range\") }\n", false,
			[]string{"FAIL  x TestB", "panic: out of range", "1 passed, 1 failed, 0 skipped"},
		},
		{
			"exits", "package x\nimport (\"os\"; \"testing\")\n" +
				"func TestA(t *testing.T) {}\n" +
				"func TestB(t *testing.T) { println(\"gone\"); os.Exit(3) }\n", false,
			[]string{"FAIL  x TestB has no end", "gone", "1 passed, 1 failed, 0 skipped"},
		},
		{
			"does not compile", "package x\nfunc wrong() int { return none }\n", false,
			[]string{"undefined: none", "0 passed, 0 failed, 0 skipped"},
		},
		{
			"nothing to run", "package x\n", false,
			[]string{"0 passed, 0 failed, 0 skipped"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.24\n", "x_test.go": test.file} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("go", "test", "-vet=off", "-json", "./...")
			cmd.Dir = dir
			in, _ := cmd.Output() // its failure is in what it prints
			if len(in) == 0 {
				t.Skip("needs the go command")
			}
			var out strings.Builder
			if good := summarise(strings.NewReader(string(in)), &out, cmd.ProcessState.ExitCode(), again(dir)); good != test.good {
				t.Errorf("good: %v", good)
			}
			rest := out.String()
			for _, want := range test.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("no %q in\n%s", want, out.String())
				}
				rest = after
			}
			if rest != "\n" {
				t.Errorf("after the counts: %q", rest)
			}
		})
	}
}

// TestGarbage holds that what is no event is shown and never taken for success.
func TestGarbage(t *testing.T) {
	var out strings.Builder
	if summarise(strings.NewReader("go: cannot find main module\n"), &out, 0, nil) {
		t.Error("no test ran, and that is good")
	}
	if !strings.Contains(out.String(), "cannot find main module") {
		t.Errorf("the go command's words are lost: %q", out.String())
	}
}

// TestUnexplained holds that the go command's own failure counts.
func TestUnexplained(t *testing.T) {
	var out strings.Builder
	if summarise(strings.NewReader(`{"Action":"pass","Package":"x","Test":"TestA"}`), &out, 2, nil) {
		t.Error("the go command failed, and that is good")
	}
	if !strings.Contains(out.String(), "code 2") {
		t.Errorf("the code is lost: %q", out.String())
	}
}

// TestTooMany holds that a broken tree is not run again.
func TestTooMany(t *testing.T) {
	var in, out strings.Builder
	for i := range maxAgain + 1 {
		fmt.Fprintf(&in, "{\"Action\":\"fail\",\"Package\":\"x\",\"Test\":\"Test%d\"}\n", i)
	}
	in.WriteString(`{"Action":"fail","Package":"x"}`)
	if summarise(strings.NewReader(in.String()), &out, 1, nil) || strings.Contains(out.String(), "again") {
		t.Error(out.String())
	}
}
