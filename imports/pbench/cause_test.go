package pbench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/analyse"
	"tare/imports"
	"tare/model"
	"tare/record"
	"tare/store"
	"tare/study"
)

// sampled is a modelled trial as Pbench would have kept it: uperf's series, and the
// tools' rates of each second.
type sampled struct {
	t     *testing.T
	dir   string
	begin time.Time
	res   *model.Result
}

const sampledSeconds = 3

// rate is what the counters of a series that is meant rose by in each second.
func (s *sampled) rate(is func(*record.Series) bool) (out [sampledSeconds]float64, any bool) {
	for i := range s.res.Reading.Series {
		x := &s.res.Reading.Series[i]
		if !is(x) {
			continue
		}
		any = true
		at := func(d time.Duration) float64 {
			for j := len(x.T) - 1; j >= 0; j-- {
				if x.T[j] <= d {
					return x.V[j]
				}
			}
			return 0
		}
		for k := range out {
			out[k] += at(s.res.Measured.From+time.Duration(k+1)*time.Second) - at(s.res.Measured.From+time.Duration(k)*time.Second)
		}
	}
	return out, any
}

// csv writes a tool's file, in per cent.
func (s *sampled) csv(machine, tool, file string, columns map[string][sampledSeconds]float64) {
	s.t.Helper()
	var names []string
	for n := range columns {
		names = append(names, n)
	}
	text := "timestamp_ms," + strings.Join(names, ",") + "\n"
	for k := -1; k < sampledSeconds; k++ {
		text += strconv.FormatInt(s.begin.Add(time.Duration(k+1)*time.Second).UnixMilli(), 10)
		for _, n := range names {
			v := 0.0 // the first row is of the time before
			if k >= 0 {
				v = 100 * columns[n][k]
			}
			text += fmt.Sprintf(",%.2f", v)
		}
		text += "\n"
	}
	at := filepath.Join(s.dir, "tools-default", machine, tool, "csv")
	if err := os.MkdirAll(at, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, file), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// keep writes the sample.
func (s *sampled) keep(c model.Config) {
	s.t.Helper()
	role := func(name string) ([sampledSeconds]float64, bool) {
		return s.rate(func(x *record.Series) bool { return x.Name == record.CPUTime && x.Labels.Get(record.LabelRole) == name })
	}
	columns := map[string][sampledSeconds]float64{"1-/usr/lib/systemd/systemd": {}}
	if c.Isolation == model.VM {
		vmm, _ := role("vmm")
		vcpu, _ := role("vcpu")
		for k := range vmm {
			vmm[k] += vcpu[k]
		}
		columns["100-KVMguest--kata"] = vmm
		columns["101-/usr/libexec/virtiofsd_--fd=3"], _ = role("virtiofsd")
		for i := range c.Helper.Threads {
			columns[fmt.Sprintf("%d-vhost-100", 102+i)], _ = s.rate(func(x *record.Series) bool {
				return x.Name == "thread_cpu_time" && x.Labels.Get(record.LabelRole) == "vhost" && x.Labels.Get("tid") == strconv.Itoa(2000+i)
			})
		}
	} else {
		columns["200-/usr/bin/uperf_-s"], _ = role("workload")
	}
	s.csv("worker0", "pidstat", "cpu_usage_percent_cpu.csv", columns)
	words := map[string]string{"user": "usr", "system": "sys", "softirq": "softirq", "idle": "idle", "steal": "steal", "iowait": "iowait"}
	mpstat := func(machine string, cpus int, share float64, of func(cpu int) func(*record.Series) bool) {
		for cpu := range cpus {
			columns := map[string][sampledSeconds]float64{}
			for mode, word := range words {
				v, any := s.rate(func(x *record.Series) bool { return of(cpu)(x) && x.Labels.Get(record.LabelMode) == mode })
				for k := range v {
					v[k] *= share
				}
				if any {
					columns[word] = v
				}
			}
			s.csv(machine, "mpstat", fmt.Sprintf("cpu%d_cpu%d.csv", cpu, cpu), columns)
		}
	}
	mpstat("worker0", c.Host.Cores, 1/float64(c.Host.Cores), func(int) func(*record.Series) bool {
		return func(x *record.Series) bool { return x.Name == "system_cpu" }
	})
	if c.Isolation == model.VM {
		mpstat("pod0", c.Guest.Boot+c.Guest.Hotplugged, 1, func(cpu int) func(*record.Series) bool {
			return func(x *record.Series) bool {
				return x.Name == record.GuestCPU && x.Labels.Get(record.LabelCPU) == strconv.Itoa(cpu)
			}
		})
	}
	rate := s.res.Totals.Operations / s.res.Totals.Window
	var points []map[string]any
	for k := range sampledSeconds + 1 {
		points = append(points, map[string]any{"date": s.begin.Add(time.Duration(k) * time.Second).UnixMilli(), "value": rate})
	}
	b, err := json.Marshal(map[string]any{
		"parameters": map[string]any{"benchmark": []any{map[string]any{"benchmark_name": "uperf", "test_type": "rr", "instances": c.Load.Connections, "message_size_bytes": c.Load.Size}}},
		"throughput": map[string]any{"trans_sec": []any{map[string]any{"client_hostname": "c", "server_hostname": "s", "server_port": "1", "timeseries": points}}},
		"latency":    map[string]any{"usec": []any{map[string]any{"client_hostname": "c", "server_hostname": "s", "server_port": "1", "value": 1e6 * s.res.Totals.Latency}}},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "result.json"), b, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestCausesOfImported: what Pbench kept of the published experiment's bottlenecks, as
// the model has them, is enough to name them.
func TestCausesOfImported(t *testing.T) {
	top := t.TempDir()
	mapping := "trees:\n"
	begin := time.Date(2021, 9, 1, 12, 0, 0, 0, time.UTC)
	for _, tree := range []struct {
		name  string
		boot  int
		limit float64
		quota float64
	}{{"runc", 0, 1, 1}, {"runc", 0, 8, 8}, {"kata", 4, 1, 1.25}, {"kata", 1, 8, 8.25}} {
		dir := fmt.Sprintf("%s_%d_%g", tree.name, tree.boot, tree.limit)
		levels := fmt.Sprintf("cpu-limit: %g", tree.limit)
		if tree.boot > 0 {
			levels += fmt.Sprintf(", default_vcpus: %d", tree.boot)
		}
		mapping += fmt.Sprintf("  - {dir: %s, sandbox: %s, levels: {%s}, quota: %g}\n", dir, tree.name, levels, tree.quota)
		for sample := 1; sample <= 2; sample++ {
			c := model.Default()
			c.Seed = uint64(sample)
			c.Load.Connections, c.Load.Size, c.Load.Warmup, c.Load.Duration = 16, 256, 0.2, sampledSeconds
			if tree.boot == 0 {
				c = c.Native(tree.limit)
			} else {
				var err error
				if c, err = c.Sized(tree.boot, tree.limit); err != nil {
					t.Fatal(err)
				}
			}
			r, err := model.Run(c)
			if err != nil {
				t.Fatal(err)
			}
			begin = begin.Add(time.Minute)
			s := &sampled{t: t, dir: filepath.Join(top, dir, "1-tcp_rr-256B-16i", fmt.Sprintf("sample%d", sample)), begin: begin, res: r}
			if err := os.MkdirAll(s.dir, 0o755); err != nil {
				t.Fatal(err)
			}
			s.keep(c)
		}
	}
	m, err := ParseMapping(filepath.Join(top, "m.yaml"), []byte(mapping+"ends: {server: {host: worker0, guest: pod0}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	set, err := Read(m.Trees, m.Endpoints)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(top, "results")
	if _, err := set.Write(t.Context(), out, "test", time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, f := range analysed(t, out).Causes {
		limit, _ := f.Shared.Get("cpu-limit")
		boot, _ := f.Cell.Get("default_vcpus")
		if !f.Baseline {
			found[limit+" "+boot] = string(f.Cause) + " " + f.Role
			t.Logf("limit %s, default_vcpus %s: %s", limit, boot, f.Text)
		}
	}
	for cell, want := range map[string]string{"1 4": "quota ", "8 1": "helper vhost"} {
		if found[cell] != want {
			t.Errorf("limit and default_vcpus %s: %q, want %q", cell, found[cell], want)
		}
	}
}

// analysed is what a results folder of an import says.
func analysed(t *testing.T, dir string) *analyse.Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "study.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cat, ok := imports.Of(text)
	if !ok {
		t.Fatal("it is not imported")
	}
	st, err := study.Parse("study.yaml", text, cat.Study(), nil)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	trials, err := db.Trials()
	if err != nil {
		t.Fatal(err)
	}
	skips, err := db.Skips()
	if err != nil {
		t.Fatal(err)
	}
	info := cat.Study().Workloads
	return analyse.Analyse(st, trials, skips, analyse.Describe(func(w study.Workload) []record.Response { return info[w.Kind].Responses(nil) }))
}
