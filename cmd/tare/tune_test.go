package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestTune: on the model, the level that more vCPUs than clients do not improve is found in fewer
// trials than whole blocks take, and the same command has nothing more to do.
func TestTune(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.yaml")
	err := os.WriteFile(file, []byte(`study: s
factors:
  sandbox: [vm]
  default_vcpus: [1, 2, 3, 4, 5, 6, 7, 8]
workloads:
  bandwidth: {kind: net, mode: stream, size: 4KiB, connections: 4, warmup: 100ms, duration: 300ms, responses: [throughput]}
baseline: vm
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"tune", file, "--factor", "default_vcpus", "--on", "model", "--results", filepath.Join(dir, "r"), "--json"}
	var got struct {
		Modelled bool `json:"modelled"`
		Tuned    []struct {
			Answer, Best, Stage string
			Trials, Whole       int
			Sure                float64
			Patches             []struct{ For, Text string }
		} `json:"tuned"`
	}
	run := func() (code int, out, errs string) {
		var o, e bytes.Buffer
		code = execute(t.Context(), &o, &e, args)
		return code, o.String(), e.String()
	}
	code, out, errs := run()
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v, %s, %s", code, err, out, errs)
	}
	if !got.Modelled || len(got.Tuned) != 1 {
		t.Fatalf("%+v", got)
	}
	x := got.Tuned[0]
	if x.Stage != "found" || x.Answer < "2" || x.Answer > "5" || x.Sure < 0.95 || x.Trials >= x.Whole {
		t.Errorf("%+v", x)
	}
	if len(x.Patches) == 0 || x.Patches[0].For != "pod" {
		t.Errorf("no patch: %+v", x)
	}
	if _, again, _ := run(); again != out {
		t.Errorf("again: %s, before: %s", again, out)
	}
}
