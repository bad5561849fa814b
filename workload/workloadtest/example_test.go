package workloadtest_test

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
	"tare/workload/workloadtest"
)

// begin

// Count is the workload: it counts the bytes that cat reads from /dev/zero.
type Count struct{}

func (Count) Name() string  { return "example" }
func (Count) About() string { return "bytes that a shell pipeline copies" }

func (Count) Params() []param.Param {
	return []param.Param{{Name: "size", Type: param.Size, Default: "1MiB", Min: 1, Max: 1 << 30, Help: "bytes to copy"}}
}

func (Count) Responses(param.Values) []record.Response {
	return []record.Response{{Name: "copied", Unit: record.Byte, Better: record.Higher}}
}

func (Count) Roles(v param.Values) ([]workload.Role, error) {
	return []workload.Role{{
		Name: "main", Mode: workload.Exec, Needs: []string{"sh", "head", "wc"},
		Args: []string{"sh", "-c", fmt.Sprintf("head -c %d /dev/zero | wc -c", v.Size("size"))},
	}}, nil
}

func (Count) Parse(_ string, _ param.Values, out io.Reader) (record.Reading, error) {
	b, err := output.Read(out)
	if err != nil {
		return record.Reading{}, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 63)
	if err != nil {
		return record.Reading{}, fmt.Errorf("cannot read a number from the output of wc: %w", err)
	}
	return record.Reading{Samples: []record.Sample{{Name: "copied", Unit: record.Byte, Value: float64(n)}}}, nil
}

func TestContract(t *testing.T) { workloadtest.Run(t, Count{}, cases...) }

func FuzzParse(f *testing.F) { workloadtest.Fuzz(f, Count{}, cases...) }

var cases = []workloadtest.Case{
	{Name: "default", Outputs: map[string]string{"main": "testdata/wc.txt"}},
}

// end

// TestPageShowsThisCode keeps the example in the documentation one that passes
// the suite.
func TestPageShowsThisCode(t *testing.T) {
	src, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(src), "// begin\n")
	code, _, _ = strings.Cut(code, "// end\n")
	page, err := os.ReadFile("../../docs/add-a-workload.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), strings.TrimSpace(code)) {
		t.Error("docs/add-a-workload.md does not hold the code between begin and end of example_test.go; copy it there")
	}
}
