package modelled

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tare/internal/window"
	"tare/model"
	"tare/plan"
	"tare/record"
	"tare/study"
)

// part is what the model said of a cell in a block.
type part struct {
	result *model.Result
	facts  map[string]string
	res    study.Resolved
}

// play models one trial.
func (p *Player) play(cell record.Cell, block int) (part, error) {
	c, res, err := p.config(cell)
	if err != nil {
		return part{}, err
	}
	c.Seed = p.seed(cell, block)
	out := part{facts: facts(c, res), res: res}
	switch res.Workload.Kind {
	case kindSyscall:
		out.result = calls(c, res)
	case kindFio:
		var d model.Disk
		if d, err = disk(res); err == nil {
			d.Seed = c.Seed
			out.result, err = model.RunDisk(d)
		}
	default:
		out.result, err = model.Run(c)
	}
	return out, err //nolint:wrapcheck // it names the model and the figure
}

// calls is what the workload syscall says: the time of a call on one thread, and the
// rate of all of them; and what a trial says that counts them. Under a quota that is used
// up all of it takes longer by what the threads are held back.
func calls(c model.Config, res study.Resolved) *model.Result {
	took, _ := c.Call()
	busy := float64(min(res.Params.Int("threads"), c.Host.Cores))
	cores := busy
	quota := c.Quota.Cores
	if quota > 0 {
		cores = min(busy, quota)
	}
	rate := cores / took
	value := record.NewValue
	out := &model.Result{
		Measured: window.Span{To: time.Second},
		Reading: record.Reading{Samples: []record.Sample{
			value("time_per_call", record.Second, took*busy/cores), value("rate", record.PerSecond, rate),
			value(record.SystemCalls+record.RateSuffix, record.PerSecond, rate, record.LabelEndpoint, roleMain, record.LabelCall, study.PriceLevel),
			value(record.CPUTime+record.RateSuffix, record.Cores, cores, record.LabelEndpoint, roleMain, record.LabelRole, roleWorkload),
		}},
		Facts: map[string]string{roleMain + "." + record.FactAccelerator: model.Accelerator},
	}
	if quota > 0 {
		const periods = 10 // a second, of 100 ms each (sched-bwc.rst)
		throttled := 0.0
		if busy > quota {
			throttled = periods
		}
		endpoint := []string{record.LabelEndpoint, roleMain}
		out.Reading.Samples = append(out.Reading.Samples,
			value(record.CgroupCPU+record.RateSuffix, record.Cores, cores, endpoint...), value(record.CPUQuota+"_mean", record.Cores, quota, endpoint...),
			value(record.CgroupPeriods+record.RateSuffix, record.PerSecond, periods, endpoint...), value(record.CgroupThrottledPeriods+record.RateSuffix, record.PerSecond, throttled, endpoint...),
			value(record.CgroupThrottledTime+record.RateSuffix, record.Cores, busy-cores, endpoint...))
	}
	return out
}

// trial is the result as the trial that the plan asked for.
func (r part) trial(next plan.Next) (*record.Trial, record.Evidence) {
	t, evidence := r.result.Trial(next.Cell, next.Block, next.Seq)
	t.Attempt = next.Attempt
	maps.Copy(t.Facts, r.facts)
	endpoint := roleMain
	if r.res.Workload.Kind == kindNet {
		endpoint = roleServer
		t.Facts[roleClient+record.FactWhere] = record.WhereNative
		if r.res.Isolate == study.Both && r.res.Traits.Family != record.FamilyNative {
			t.Warnings = append(slices.Clip(t.Warnings), record.Warning{Code: "modelled-end",
				Text: "both ends were to be isolated, and the model has the server's sandbox alone: what the client's would add is not in the figures"})
		}
	}
	for k := range max(1, r.res.Copies) {
		end := record.CopyName(endpoint, k+1)
		t.Facts[end+record.FactWhere] = record.Where(r.res.Sandbox, r.res.Traits)
		maps.Copy(t.Facts, r.res.Traits.Facts(end))
	}
	for _, name := range r.res.Workload.Responses { // of one copy, the first is all
		if of, first := strings.CutPrefix(name, record.FirstPrefix); first && r.res.Copies == 1 {
			if i := slices.IndexFunc(t.Samples, func(s record.Sample) bool { return s.Name == of && s.Labels == "" }); i >= 0 && r.res.Workload.Kind != kindFio {
				s := t.Samples[i]
				s.Name = name
				t.Samples = append(t.Samples, s)
			}
		}
	}
	if next.Counting {
		r.counted(t, endpoint)
	}
	return t, evidence
}

// counted adds what package run adds to a trial that counts system calls.
func (r part) counted(t *record.Trial, endpoint string) {
	cores := 0.0
	for _, s := range t.Samples {
		if s.Name == record.CPUTime+record.RateSuffix && s.Labels.Get(record.LabelRole) == roleWorkload {
			cores += s.Value
		}
	}
	w := r.result.Measured
	t.Samples = append(t.Samples,
		record.NewValue(plan.CoresSample, record.Cores, cores),
		record.NewValue(plan.ActiveSample, record.Fraction, 1),
		record.NewValue(plan.WindowSample, record.Second, (w.To-w.From).Seconds()),
		record.NewValue(plan.IsolatedSample, record.Count, 1, record.LabelEndpoint, endpoint, record.LabelSandbox, r.res.Sandbox))
}

// skips names the cells that the model does not know, the sentinel's last, and why.
func (p *Player) skips() ([]record.Skip, error) {
	var out []record.Skip
	try := func(cell record.Cell) error {
		_, _, err := p.config(cell)
		if u, ok := errors.AsType[*unknown](err); ok {
			out = append(out, record.Skip{Cell: cell, Reason: u.Error()})
			return nil
		}
		if err != nil {
			return fmt.Errorf("cell %s: %w", cell, err)
		}
		return nil
	}
	for i := range p.study.Strata {
		for _, cell := range p.study.Strata[i].Cells {
			if err := try(cell); err != nil {
				return nil, err
			}
		}
	}
	if s := p.study.Sentinel; s != nil {
		if err := try(s.Cell); err != nil {
			return nil, err
		}
	}
	return out, nil
}
