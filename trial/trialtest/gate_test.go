package trialtest_test

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/trial/trialtest"
	"tare/workload"
)

func TestMain(m *testing.M) {
	os.Exit(trialtest.Main(m.Run, map[string]trialtest.Program{"hello": hello}))
}

func hello(_ []string, stdout, _ io.Writer) int {
	_, _ = fmt.Fprintln(stdout, "x")
	return 0
}

// pair is a workload of two ends that start together.
type pair struct{}

func (pair) Name() string          { return "pair" }
func (pair) About() string         { return "two programs that start together" }
func (pair) Params() []param.Param { return nil }
func (pair) Responses(param.Values) []record.Response {
	return []record.Response{{Name: "lines", Unit: record.Count, Better: record.Higher}}
}

func (pair) Roles(param.Values) ([]workload.Role, error) {
	args := []string{"/tare", "internal", "hello"}
	return []workload.Role{
		{Name: "left", Mode: workload.Exec, Args: args},
		{Name: "right", Mode: workload.Exec, Args: args},
	}, nil
}

func (pair) Parse(role string, _ param.Values, out io.Reader) (record.Reading, error) {
	b, err := io.ReadAll(out)
	if err != nil || string(b) != "x\n" {
		return record.Reading{}, fmt.Errorf("%s: %q, %w", role, b, err)
	}
	if role == "left" {
		return record.Reading{}, nil
	}
	return record.Reading{Samples: []record.Sample{{Name: "lines", Unit: record.Count, Kind: record.Value, Value: 1}}}, nil
}

// TestRolesStartTogether runs both ends through the engine and real sandboxes.
func TestRolesStartTogether(t *testing.T) {
	trialtest.New(t, pair{}).Each(t, nil, "both", func(t *testing.T, tr *record.Trial) {
		skew, ok := tr.Sample(record.StartSkew)
		if !ok || skew < 0 { // how much of it there is depends on how busy the host is
			t.Errorf("skew %v s, %v", skew, ok)
		}
		t.Logf("skew %s", time.Duration(skew*1e9))
	})
}
