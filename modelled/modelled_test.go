package modelled_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	catalogues "tare/catalogue"
	"tare/model"
	"tare/modelled"
	"tare/param"
	"tare/plan"
	"tare/record"
	"tare/run"
	sandboxall "tare/sandbox/all"
	"tare/site"
	"tare/store"
	"tare/study"
	"tare/workload"
	workloadall "tare/workload/all"
)

// catalogue has the real workloads and sandboxes: their parameters are what is read.
func catalogue(t *testing.T) study.Catalogue {
	t.Helper()
	return catalogues.Of(workloadall.Workloads(), sandboxall.Kinds(sandboxall.Env{StateDir: t.TempDir()}), nil)
}

func parse(t *testing.T, text string) (*study.Study, study.Catalogue) {
	t.Helper()
	cat := catalogue(t)
	st, err := study.Parse("test.yaml", []byte(text), cat, nil)
	if err != nil {
		t.Fatal(err)
	}
	return st, cat
}

const small = `study: small
seed: 5
factors: {sandbox: [process, runc, runsc-systrap, runsc-ptrace, vm], default_vcpus: [1, all], isolate: [server]}
workloads:
  rr: {kind: net, mode: rr, warmup: 100ms, duration: 200ms, connections: 2, responses: [rate, latency_p99]}
  stream: {kind: net, mode: stream, warmup: 100ms, duration: 200ms, responses: [throughput]}
  getpid: {kind: syscall, responses: [time_per_call]}
stop: {fixed: 2}
`

func takes(record.Cell) time.Duration { return 7 * time.Second }

// play runs a study on the model through the engine, into a results folder.
func play(t *testing.T, st *study.Study, cat study.Catalogue) (*store.Store, []record.Trial) {
	t.Helper()
	p, err := modelled.New(st, cat, takes)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Create(t.TempDir(), store.Meta{StudySource: st.Source, Host: modelled.Host(), Started: time.Now(), Modelled: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	e := &run.Engine{Session: p, Store: db}
	if err := e.Run(context.Background(), plan.New(st, p.Preview().Skips, nil)); err != nil {
		t.Fatal(err)
	}
	trials, err := db.Trials()
	if err != nil {
		t.Fatal(err)
	}
	return db, trials
}

// TestSameStudySameFigures: on any machine, in any order of the processors' work.
func TestSameStudySameFigures(t *testing.T) {
	st, cat := parse(t, small)
	db, a := play(t, st, cat)
	_, b := play(t, st, cat)
	if d := cmp.Diff(a, b, cmpopts.IgnoreFields(record.Trial{}, "Start")); d != "" {
		t.Error(d)
	}
	if meta, err := db.Meta(); err != nil || !meta.Modelled || meta.Host.Hostname != "model" || len(meta.Host.Warnings) == 0 {
		t.Errorf("the folder does not say that it is modelled: %+v, %v", meta, err)
	}
	other, _ := parse(t, strings.Replace(small, "seed: 5", "seed: 6", 1))
	_, c := play(t, other, cat)
	differ := 0
	for i := range a {
		for j := range c {
			if a[i].Block == c[j].Block && a[i].Cell.Key() == c[j].Cell.Key() && !cmp.Equal(a[i].Samples, c[j].Samples) {
				differ++
			}
		}
	}
	if differ != len(a) {
		t.Errorf("with another seed %d of %d trials are others", differ, len(a))
	}
}

// TestTrials: every trial is whole, has what the study compares, and says that it is
// modelled, for so long as a real one takes.
func TestTrials(t *testing.T) {
	st, cat := parse(t, small)
	_, trials := play(t, st, cat)
	counting := 0
	for i := range trials {
		tr := &trials[i]
		if tr.Status != record.OK || tr.Duration != takes(nil) || tr.Start.IsZero() {
			t.Fatalf("%+v", tr)
		}
		res, err := st.Resolve(cat, tr.Cell)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range res.Workload.Responses {
			if v, ok := tr.Sample(name); !ok || v <= 0 {
				t.Errorf("%s: %s is %g", tr.Cell, name, v)
			}
		}
		said := 0
		for name, v := range tr.Facts {
			if strings.HasSuffix(name, "."+record.FactAccelerator) && v == record.AcceleratorModel {
				said++
			}
		}
		if said != 1 {
			t.Errorf("%s: its facts do not say that it is modelled: %v", tr.Cell, tr.Facts)
		}
		if study.IsCounting(tr.Cell) {
			counting++
			if v, ok := tr.Sample(plan.WindowSample); !ok || v <= 0 {
				t.Errorf("%s: no %s", tr.Cell, plan.WindowSample)
			}
		}
	}
	if counting == 0 {
		t.Error("the study prices calls, and none were counted")
	}
}

// TestIsolationsDiffer: what is known of each sandbox is in its figures.
func TestIsolationsDiffer(t *testing.T) {
	st, cat := parse(t, small)
	_, trials := play(t, st, cat)
	mean := map[string]float64{}
	for i := range trials {
		box, _ := trials[i].Cell.Get(study.FactorSandbox)
		if v, ok := trials[i].Sample("time_per_call"); ok {
			mean["call "+box] += v / 2
		}
		if v, ok := trials[i].Sample("rate"); ok && strings.Contains(trials[i].Cell.Key(), "workload=rr") {
			mean["rate "+box] += v / 2
		}
	}
	for _, less := range [][2]string{
		{"call process", "call runsc-systrap"}, {"call runsc-systrap", "call runsc-ptrace"},
		{"rate vm", "rate process"}, {"rate runsc-systrap", "rate runc"}, {"rate runsc-ptrace", "rate runsc-systrap"},
	} {
		if a, b := mean[less[0]], mean[less[1]]; a <= 0 || a >= b {
			t.Errorf("%s is %g, %s %g", less[0], a, less[1], b)
		}
	}
}

func skips(st *study.Study, cat study.Catalogue) ([]record.Skip, error) {
	p, err := modelled.New(st, cat, takes)
	if err != nil {
		return nil, err
	}
	return p.Preview().Skips, nil
}

// TestSkips: what the model does not know is named, each thing with its own words.
func TestSkips(t *testing.T) {
	for want, text := range map[string]string{
		"not modelled: memory": "a: {kind: memory}",
		"not modelled: the page cache (cache: warm); write cache: direct": "a: {kind: fio, responses: [throughput]}",
		"not modelled: reads and writes together":                         "a: {kind: fio, rw: randrw, cache: direct, responses: [throughput]}",
		"not modelled: fio on target tmpfs":                               "a: {kind: fio, target: tmpfs, cache: direct, responses: [throughput]}",
		"not modelled: fsync":                                             "a: {kind: fio, rw: write, fsync: 1, cache: direct, responses: [throughput]}",
		"not modelled: net over udp":                                      "a: {kind: net, protocol: udp}",
		"not modelled: streams in the direction down":                     "a: {kind: net, mode: stream, direction: download}",
		"not modelled: replies whose size differs":                        "a: {kind: net, reply: 9}",
		"not modelled: Nagle":                                             "a: {kind: net, nodelay: false}",
		"not modelled: syscall with call stat":                            "a: {kind: syscall, call: stat}",
	} {
		st, cat := parse(t, "study: skips\nfactors: {sandbox: [process, runc]}\nworkloads:\n  "+text+"\nsentinel: off\n")
		skips, err := skips(st, cat)
		if err != nil || len(skips) != 2 || !strings.HasPrefix(skips[0].Reason, want) {
			t.Errorf("%s: %+v, %v", want, skips, err)
		}
	}
	for want, factors := range map[string]string{
		"sandbox fake": "{sandbox: [process, fake]}", "isolate client": "{sandbox: [process, runc], isolate: [client]}",
		"vm with processors emulated": "{sandbox: [process, vm], accel: [tcg]}", "the sentinel": "{sandbox: [process, runc]}",
		"arp-limit 64": "{sandbox: [process, runc], arp-limit: [host, 64]}",
	} {
		st, cat := parse(t, "study: skips\nfactors: "+factors+"\nworkloads: {a: {kind: net}}\n")
		skips, err := skips(st, cat)
		found := false
		for _, s := range skips {
			found = found || strings.HasPrefix(s.Reason, "not modelled: "+want)
		}
		if err != nil || !found {
			t.Errorf("%s: %+v, %v", want, skips, err)
		}
	}
}

// TestAgreesWithNet: sizes that net chooses itself are those of the model.
func TestAgreesWithNet(t *testing.T) {
	for mode, want := range map[string]int{"rr": 64, "stream": 64 << 10} {
		for _, w := range workloadall.Workloads() {
			if w.Name() != "net" {
				continue
			}
			v, err := param.Fill(w.Params(), param.Values{"mode": mode})
			if err != nil {
				t.Fatal(err)
			}
			roles, err := w.Roles(v)
			if err != nil {
				t.Fatal(err)
			}
			if got := argument(roles, "--size"); got != strconv.Itoa(want) {
				t.Errorf("net's %s has messages of %s B, the model's of %d", mode, got, want)
			}
		}
	}
}

func argument(roles []workload.Role, flag string) string {
	for _, r := range roles {
		for i, a := range r.Args {
			if a == flag {
				return r.Args[i+1]
			}
		}
	}
	return ""
}

// TestInterrupted: a rehearsal ends when it is told to, and is gone on with.
func TestInterrupted(t *testing.T) {
	st, cat := parse(t, small)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p, err := modelled.New(st, cat, takes)
	if err != nil {
		t.Fatal(err)
	}
	tr := p.Trials(ctx, []plan.Next{{Cell: st.Strata[0].Cells[0], Block: 1, Attempt: 1, Seq: 1, Stratum: 0}})[0]
	if tr.Status != record.Failed && tr.Facts["server.accelerator"] != model.Accelerator {
		t.Errorf("%+v", tr)
	}
}

func TestPace(t *testing.T) {
	site := modelled.Site{Takes: func(site.Request) (func(record.Cell) time.Duration, error) { return takes, nil }}
	pace := func(text string) time.Duration {
		st, cat := parse(t, text)
		p, err := site.Preview(t.Context(), request(st, cat))
		if err != nil {
			t.Fatal(err)
		}
		return p.Pace
	}
	if d := pace(small); d <= 0 {
		t.Errorf("a trial takes %s", d)
	}
	// More requests in flight take longer to model, which the pace of a study of disks says.
	disk := func(jobs string) time.Duration {
		return pace("study: disk\nfactors: {sandbox: [process]}\nsentinel: off\nworkloads: {a: {kind: fio, jobs: " + jobs + ", iodepth: 64, engine: libaio, cache: direct, target: image}}\n")
	}
	if few, many := disk("1"), disk("64"); few <= 0 || many <= few {
		t.Errorf("a trial of one job takes %s, of 64 jobs %s", few, many)
	}
	if d := pace("study: none\nfactors: {sandbox: [process, runc]}\nworkloads: {a: {kind: fio}}\nsentinel: off\n"); d != 0 {
		t.Errorf("nothing takes %s", d)
	}
}

func request(st *study.Study, cat study.Catalogue) site.Request {
	return site.Request{Study: st, Catalogue: cat}
}

// TestDiskRate: a rate above what the disk's main loop can do is not sent, natively it is.
func TestDiskRate(t *testing.T) {
	st, cat := parse(t, `study: disk
factors: {sandbox: [process, vm], rootfs: [block], disk_cache: [none]}
workloads: {a: {kind: fio, jobs: 4, iodepth: 16, engine: libaio, cache: direct, rate: [50000, 300000], responses: [latency_p99]}}
sentinel: off
`)
	p, err := modelled.New(st, cat, func(record.Cell) time.Duration { return time.Second })
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, s := range st.Strata {
		for _, c := range s.Cells {
			box, _ := c.Get("sandbox")
			rate, _ := c.Get("rate")
			made := p.Trials(t.Context(), []plan.Next{{Cell: c, Block: 1, Seq: 1, Attempt: 1}})[0]
			over := box == "vm" && rate == "300000"
			if seen++; made.Status != record.OK || (made.Offered() < 0.9) != over || made.Warned("fio-overload") != over {
				t.Errorf("%s: %s, offered %g, %v", c, made.Status, made.Offered(), made.Warnings)
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d cells", seen)
	}
}

// TestDisk: a study of disks is rehearsed, natively and in machines with I/O threads.
func TestDisk(t *testing.T) {
	st, cat := parse(t, `study: disk
factors: {sandbox: [process, runc, runsc-systrap, vm], io_threads: [none, 4], rootfs: [block], disk_cache: [none, host], default_vcpus: [4], max_vcpus: [4]}
workloads: {a: {kind: fio, bs: 2KiB, jobs: 4, iodepth: 16, engine: libaio, cache: direct, target: image, responses: [throughput, latency_p99]}}
sentinel: off
`)
	p, err := modelled.New(st, cat, func(record.Cell) time.Duration { return time.Second })
	if err != nil {
		t.Fatal(err)
	}
	skipped := map[string]string{}
	for _, s := range p.Preview().Skips {
		skipped[s.Cell.Key()] = s.Reason
	}
	values := map[string]float64{}
	for i, c := range st.Strata[0].Cells {
		box, _ := c.Get("sandbox")
		threads, _ := c.Get("io_threads")
		cache, _ := c.Get("disk_cache")
		if reason, ok := skipped[c.Key()]; ok {
			if want := map[string]string{"runsc-systrap": "fio in sandbox", "vm": "the host's page cache"}[box]; want == "" || !strings.Contains(reason, want) {
				t.Errorf("%s is skipped: %s", c, reason)
			}
			continue
		}
		made := p.Trials(t.Context(), []plan.Next{{Cell: c, Block: 1, Seq: i + 1, Attempt: 1}})[0]
		v, ok := made.Sample("throughput")
		if made.Status != record.OK || !ok || cache == "host" || made.Facts["main."+"accelerator"] != "model" {
			t.Errorf("%s: %s, %v, facts %v", c, made.Status, ok, made.Facts)
		}
		values[box+threads] = v
	}
	if len(values) != 4 || values["vm4"] < 2*values["vmnone"] || values["process"] < values["vm4"] || values["runc"] < 0.8*values["process"] {
		t.Errorf("throughputs %v", values)
	}
}
