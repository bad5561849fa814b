package modelled

import (
	"runtime"
	"time"

	"tare/model"
	"tare/record"
)

// A guess of the pace looks at so many cells, and at a part of each.
const (
	paceCells    = 8
	paceWarmup   = 0.02
	paceDuration = 0.1
)

// keeping is what storing a trial and asking the plan take, about.
const keeping = 10 * time.Millisecond

// pace is how long this machine takes for one modelled trial, about: it models a bit
// of some cells that are not skipped. 0: there are none.
func (p *Player) pace() time.Duration {
	skipped := make(map[string]bool, len(p.preview.Skips))
	for _, s := range p.preview.Skips {
		skipped[s.Cell.Key()] = true
	}
	var cells []record.Cell
	for i := range p.study.Strata {
		for _, c := range p.study.Strata[i].Cells {
			if !skipped[c.Key()] {
				cells = append(cells, c)
			}
		}
	}
	n := min(len(cells), paceCells)
	var sum time.Duration
	for i := range n {
		// One of each part of the study, and not always of the same place in its blocks.
		sum += p.time(cells[(2*i+1)*len(cells)/(2*n)])
	}
	if n == 0 {
		return 0
	}
	return sum/time.Duration(n)/time.Duration(runtime.GOMAXPROCS(0)) + keeping
}

// time is how long a cell takes to model.
func (p *Player) time(cell record.Cell) time.Duration {
	c, res, err := p.config(cell)
	switch {
	case err != nil:
		return 0
	case res.Workload.Kind == kindFio:
		began := time.Now()
		d, err := disk(res)
		if err == nil {
			_, err = model.RunDisk(d)
		}
		if err != nil {
			return 0
		}
		return time.Since(began)
	case res.Workload.Kind != kindNet:
		return 0
	}
	whole := c.Load.Warmup + c.Load.Duration
	c.Load.Warmup, c.Load.Duration = min(paceWarmup, c.Load.Warmup), min(paceDuration, c.Load.Duration)
	part := c.Load.Warmup + c.Load.Duration
	began := time.Now()
	if _, err := model.Run(c); err != nil {
		return 0
	}
	return time.Duration(float64(time.Since(began)) * whole / part)
}
