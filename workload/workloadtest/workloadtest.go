// Package workloadtest is the contract suite that every workload passes. A
// workload's test calls Run with real captured output of each of its roles, and
// its fuzz target calls Fuzz:
//
//	func TestContract(t *testing.T) { workloadtest.Run(t, Workload{}, cases...) }
//	func FuzzParse(f *testing.F)    { workloadtest.Fuzz(f, Workload{}, cases...) }
//
// The data path: 1. the descriptions (Params, Responses) are checked; 2. Roles is called with the
// defaults, with each word and bound of each parameter, and with each Case; 3. each Case's
// captured output goes through Parse, whole, truncated, altered and endless; 4. Run reports every
// violation as one sentence.
package workloadtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tare/param"
	"tare/workload"
)

// Case is one set of parameters with the real output of every role.
type Case struct {
	Name    string
	Params  param.Values      // only what differs from the defaults
	Outputs map[string]string // role to a file below the test's directory, such as testdata/client.json

	// Lacks are responses that the sandboxes of the outputs do not have.
	Lacks []string

	// Refused marks parameters that Roles must refuse with an error that names
	// them; Outputs is not used.
	Refused bool
}

// Run runs the whole suite. It fails without a case with output, because a parser must be tested
// with real output.
func Run(t *testing.T, w workload.Workload, cases ...Case) {
	t.Helper()
	c, err := load(w, cases)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range c.steps() {
		t.Run(step.name, func(t *testing.T) {
			for _, p := range step.check() {
				t.Error(p)
			}
		})
	}
}

// Fuzz feeds Parse with alterations of the cases' outputs. For every input, Parse must return an
// error or a valid reading, and must not panic.
func Fuzz(f *testing.F, w workload.Workload, cases ...Case) {
	f.Helper()
	c, err := load(w, cases)
	if err != nil {
		f.Fatal(err)
	}
	for i, out := range c.outputs {
		f.Add(i, out.data)
		f.Add(i, out.data[:len(out.data)/2])
		f.Add(i, []byte{})
	}
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		// The index selects the role and the parameters for the input; any integer is mapped to one.
		out := c.outputs[int(uint(i)%uint(len(c.outputs)))]
		r, err := c.w.Parse(out.role, out.values, bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, p := range soundReading(w.Responses(out.values), r) {
			t.Error(p)
		}
	})
}

// captured is one role's output with the values that produced it.
type captured struct {
	name   string // case and role, for messages
	role   string
	values param.Values
	data   []byte
}

type suite struct {
	w       workload.Workload
	cases   []Case
	outputs []captured
	docs    string // the workload's page of documentation
}

type step struct {
	name  string
	check func() []string
}

func (s *suite) steps() []step {
	return []step{
		{"describes itself", s.describes},
		{"params", s.params},
		{"documentation", s.documented},
		{"roles", s.roles},
		{"roles are deterministic", s.deterministic},
		{"every word and bound", s.extremes},
		{"refuses", s.refuses},
		{"responses match the output", s.responses},
		{"parse truncated", s.truncated},
		{"parse altered", s.altered},
		{"parse empty", s.empty},
		{"parse endless", s.endless},
	}
}

// load reads the cases' outputs and finds the documentation in docs/workloads of the module
// that has the outputs.
func load(w workload.Workload, cases []Case) (*suite, error) {
	s := &suite{w: w, cases: cases}
	beside := ""
	for _, c := range cases {
		if c.Refused {
			continue
		}
		v, err := param.Fill(w.Params(), c.Params)
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", c.Name, err)
		}
		for _, role := range sorted(c.Outputs) {
			data, err := os.ReadFile(c.Outputs[role])
			if err != nil {
				return nil, fmt.Errorf("case %s: the captured output of %s: %w; capture it by running the role's command", c.Name, role, err)
			}
			beside = filepath.Dir(c.Outputs[role])
			s.outputs = append(s.outputs, captured{c.Name + "/" + role, role, v, data})
		}
	}
	if len(s.outputs) == 0 {
		return nil, fmt.Errorf("workload %s has no case with captured output; give Run at least one", w.Name())
	}
	root, err := moduleRoot(beside)
	if err != nil {
		return nil, err
	}
	s.docs = filepath.Join(root, "docs", "workloads", w.Name()+".md")
	return s, nil
}

// moduleRoot is the folder of the nearest go.mod, in dir or above it.
func moduleRoot(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := start; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no go.mod at or above %s; keep the captured output in the workload's module", start)
		}
	}
}
