package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/host/cgroup"
	"tare/host/state"
	"tare/record"
	"tare/site/claim"
	"tare/store"
)

// A CPU quota is a slowdown of known size on a real sandbox: of 0.9 cores, one
// busy thread keeps 90 %, and 2 cores are no limit to it. What the kernel really
// took is known too: the CPU time that it charged to the cgroup, whatever
// neighbours the host has. A study that compares quotas must find these ratios.

const plantedStudy = `study: planted
seed: %d
compare: cpu-limit
baseline: none
factors:
  sandbox: [%s]
  cpu-limit: [none, %s]
workloads:
  cpu: {kind: cpu, duration: 1s, warmup: 0s, responses: [events]}
stop: {%s}
collect: {use: [cgroup], rate: 10Hz}
`

// TestPlantedQuota: a quota that takes 20 % is called slower, with an interval
// that holds what the kernel took; no quota is not. At 99.9 %, so that chance
// fails it once in a thousand runs.
func TestPlantedQuota(t *testing.T) {
	needPlants(t)
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	const tries = 3
	for try := 1; ; try++ {
		busy := plantedQuota(t)
		if busy == "" {
			return
		}
		if try == tries {
			t.Skip(busy)
		}
		t.Logf("once more: %s", busy)
		calm(t)
	}
}

// plantedQuota says what on a busy host hid the quota; "" for nothing.
func plantedQuota(t *testing.T) (busy string) {
	t.Helper()
	study := fmt.Sprintf(plantedStudy, 1, "process", `"2", "0.8"`, "fixed: 6, confidence: 99.9%, margin: 3%")
	for _, p := range plant(t, study) {
		t.Logf("%s", p)
		e := p.Estimate
		if p.taken < e.Lo/1.02 || p.taken > e.Hi*1.02 {
			t.Errorf("%s: the interval does not hold what the kernel charged", p)
		}
		switch limit, _ := p.Cell.Get("cpu-limit"); {
		case limit == "2" && (p.Verdict == stat.Slower || p.Verdict == stat.Faster):
			t.Errorf("%s: no quota is called different", p)
		case limit == "0.8" && math.Abs(p.taken-0.8) > 0.05:
			busy = fmt.Sprintf("this host was too busy to plant a quota: the kernel charged %.3f of the CPU time without one, not 0.8", p.taken)
		case limit == "0.8" && p.Verdict != stat.Slower && e.HalfWidth() > 0.15:
			busy = fmt.Sprintf("this host repeats too badly to see 20 %%: %s", p)
		case limit == "0.8" && p.Verdict != stat.Slower:
			t.Errorf("%s: a slowdown of 20 %% is not found", p)
		}
	}
	return busy
}

// untilCalm is how long all tests together wait for others to leave this host alone. Others who
// work for longer do not end soon.
var untilCalm = 4 * time.Minute

// calm waits until others leave most of this host alone, so that a test that a busy host hid can
// run again. It waits for two minutes at most.
func calm(t *testing.T) {
	t.Helper()
	begun := time.Now()
	late := begun.Add(min(2*time.Minute, untilCalm))
	defer func() { untilCalm -= time.Since(begun) }()
	var before []float64
	for ; time.Now().Before(late) && t.Context().Err() == nil; time.Sleep(2 * time.Second) {
		text, err := os.ReadFile("/proc/stat") // proc_stat(5): "cpu", then ticks in user, nice, system, idle and iowait
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		var now []float64
		for _, word := range strings.Fields(line)[1:6] {
			n, err := strconv.ParseFloat(word, 64)
			if err != nil {
				t.Fatal(err)
			}
			now = append(now, n)
		}
		if before != nil {
			busy := now[0] + now[1] + now[2] - before[0] - before[1] - before[2]
			if idle := now[3] + now[4] - before[3] - before[4]; busy/(busy+idle)*float64(runtime.NumCPU()) < otherLoad {
				return
			}
		}
		before = now
	}
}

// TestPlantedPower prints the table of docs/method.md from so many studies as
// TARE_PLANTED says, a minute or two each:
//
//	TARE_PLANTED=6 go test ./cmd/tare -run PlantedPower -v -timeout 1h
func TestPlantedPower(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("TARE_PLANTED"))
	if err != nil {
		t.Skip("TARE_PLANTED=N plays N studies of a minute or two")
	}
	needPlants(t)
	limits := []string{"2", "0.98", "0.95", "0.9"}
	type row struct {
		of, slower, faster, equal, covered, blocks int
		ratio, taken                               float64
	}
	rows := map[string]*row{}
	for i := range n {
		study := fmt.Sprintf(plantedStudy, i+1, "process, runc", `"`+strings.Join(limits, `", "`)+`"`, "looks: [3, 4, 6, 8], width: 1%, margin: 1%")
		for _, p := range plant(t, study) {
			t.Logf("study %d: %s", i+1, p)
			limit, _ := p.Cell.Get("cpu-limit")
			if rows[limit] == nil {
				rows[limit] = new(row)
			}
			r := rows[limit]
			r.of++
			r.blocks += p.Estimate.N
			r.ratio += math.Log(p.Estimate.Ratio)
			r.taken += math.Log(p.taken)
			if p.Estimate.Lo <= p.taken && p.taken <= p.Estimate.Hi {
				r.covered++
			}
			switch p.Verdict {
			case stat.Slower:
				r.slower++
			case stat.Faster:
				r.faster++
			case stat.Equivalent:
				r.equal++
			}
		}
	}
	var out strings.Builder
	for _, l := range limits {
		r := rows[l]
		of := float64(r.of)
		fmt.Fprintf(&out, "| %s | %.3f | %.3f | %d of %d | %d | %d | %d | %.1f |\n", l, math.Exp(r.taken/of), math.Exp(r.ratio/of),
			r.slower, r.of, r.faster, r.equal, r.covered, float64(r.blocks)/of)
	}
	fmt.Printf("| quota | kernel | ratio | slower | faster | equivalent | covered | blocks |\n%s", out.String())
}

func needPlants(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups and namespaces")
	}
	if _, err := exec.LookPath("sysbench"); err != nil {
		t.Skip("needs sysbench")
	}
}

// plantedResult is a comparison, and the ratio of the CPU time that the kernel
// charged in the same blocks.
type plantedResult struct {
	analyse.Comparison
	taken float64
}

func (p plantedResult) String() string {
	sandbox, _ := p.Cell.Get("sandbox")
	limit, _ := p.Cell.Get("cpu-limit")
	return fmt.Sprintf("%s, quota %s: kernel %.3f, ratio %.3f (%.3f-%.3f), n %d, %s", sandbox, limit, p.taken,
		p.Estimate.Ratio, p.Estimate.Lo, p.Estimate.Hi, p.Estimate.N, p.Verdict)
}

// plant runs a study and returns its comparisons.
func plant(t *testing.T, study string) []plantedResult {
	t.Helper()
	dir := t.TempDir()
	file, results := filepath.Join(dir, "planted.yaml"), filepath.Join(dir, "r")
	if err := os.WriteFile(file, []byte(study), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, bin, "run", file, "--results", results, "--wait")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var favours sync.WaitGroup
	favours.Go(func() { favour(cmd.Process.Pid, done) })
	err := cmd.Wait()
	close(done)
	favours.Wait()
	if err != nil {
		t.Fatalf("tare run: %v\n%s", err, said.Bytes())
	}
	raw, err := exec.CommandContext(ctx, bin, "report", results, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var r analyse.Result
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	charged := charges(t, results)
	var out []plantedResult
	for _, c := range r.Compared {
		if c.Baseline || c.Skipped != "" {
			continue
		}
		if !c.Estimate.HasInterval() {
			t.Fatalf("no interval: %s, %v", c.Cell.Key(), c.Failures)
		}
		out = append(out, plantedResult{c, stat.Summarise(charged(c.Cell)).Estimate(stat.Prior{}, 0.95).Ratio})
	}
	return out
}

// favour gives the sandboxes of that run the largest weight among the host's
// control groups, while it holds the host: a quota takes nothing from a thread
// that gets less than it anyway, for a neighbour is in the way. It looks all the
// time, because the group is made anew for each trial.
func favour(pid int, done <-chan struct{}) {
	h, err := cgroup.Detect()
	if err != nil {
		return
	}
	top, _ := h.Path("cpu", cgroup.Top)
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		var holder claim.Holder
		raw, err := os.ReadFile(filepath.Join(state.RunDir, "lock"))
		if err != nil || json.Unmarshal(raw, &holder) != nil || holder.Pid != pid {
			continue
		}
		for file, most := range map[string]string{"cpu.shares": "262144", "cpu.weight": "10000"} {
			f := filepath.Join(top, file)
			if had, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(had)) != most {
				_ = os.WriteFile(f, []byte(most), 0o600) // the group may be gone again
			}
		}
	}
}

// charges pairs the CPU that the kernel charged to a cell, in cores, with that
// of the cell without a quota in the same block.
func charges(t *testing.T, results string) func(record.Cell) []stat.Pair {
	t.Helper()
	db, err := store.OpenReadOnly(results)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	cores := map[string]map[int]float64{}
	for trial, err := range db.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range trial.Samples {
			if s.Name == "cgroup_cpu_rate" && trial.Status == record.OK {
				key := trial.Cell.Key()
				if cores[key] == nil {
					cores[key] = map[int]float64{}
				}
				cores[key][trial.Block] = s.Value
			}
		}
	}
	return func(c record.Cell) []stat.Pair {
		base := make(record.Cell, len(c))
		for i, l := range c {
			if base[i] = l; l.Factor == "cpu-limit" {
				base[i].Value = "none"
			}
		}
		var out []stat.Pair
		for block, v := range cores[c.Key()] {
			if b, ok := cores[base.Key()][block]; ok {
				out = append(out, stat.Pair{Base: b, Other: v})
			}
		}
		if len(out) == 0 {
			t.Fatalf("no CPU time of %s", c.Key())
		}
		return out
	}
}
