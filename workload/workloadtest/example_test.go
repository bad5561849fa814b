package workloadtest_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
	"tare/workload/workloadtest"
)

// begin

// New returns the workload: dd reads zeros and throws them away.
func New() workload.Workload { return zeros{} }

type zeros struct{}

func (zeros) Name() string  { return "example" }
func (zeros) About() string { return "dd reads zeros: shows what an isolation costs large reads" }

func (zeros) Params() []param.Param {
	return []param.Param{{Name: "size", Type: param.Size, Default: "4GiB", Min: 1 << 20, Max: 1 << 40, Help: "bytes to read"}}
}

func (zeros) Responses(param.Values) []record.Response {
	return []record.Response{{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher, Operation: "byte"}}
}

func (zeros) Roles(v param.Values) ([]workload.Role, error) {
	dd := fmt.Sprintf("dd if=/dev/zero of=/dev/null bs=64K iflag=count_bytes count=%d 2>&1", v.Size("size"))
	return []workload.Role{{
		Name: "main", Mode: workload.Exec, Expect: time.Second,
		Needs: []string{"sh", "dd"}, Args: []string{"sh", "-c", dd}, Env: []string{"LC_ALL=C"},
	}}, nil
}

// 4294967296 bytes (4.3 GB, 4.0 GiB) copied, 0.476647 s, 9.0 GB/s
var copied = regexp.MustCompile(`(?m)^(\d+) bytes .*copied, ([0-9.]+) s`)

func (zeros) Parse(_ string, _ param.Values, out io.Reader) (record.Reading, error) {
	b, err := output.Read(out)
	if err != nil {
		return record.Reading{}, err
	}
	m := copied.FindSubmatch(b)
	if m == nil {
		return record.Reading{}, errors.New("dd did not say how much it copied in what time")
	}
	size, err1 := strconv.ParseUint(string(m[1]), 10, 63)
	seconds, err2 := strconv.ParseFloat(string(m[2]), 64)
	if err := errors.Join(err1, err2); err != nil || seconds < 1e-6 {
		return record.Reading{}, fmt.Errorf("cannot read a throughput from dd's output %q", m[0])
	}
	var r record.Reading
	r.Value("throughput", record.BytesPerSecond, float64(size)/seconds)
	return r, nil
}

// end

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases...) }

func FuzzParse(f *testing.F) { workloadtest.Fuzz(f, New(), cases...) }

var cases = []workloadtest.Case{
	{Name: "default", Outputs: map[string]string{"main": "testdata/dd.txt"}},
}

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
