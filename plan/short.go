package plan

import (
	"time"

	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// Shortage is a budget that allows fewer blocks than a verdict takes, by what trials are expected to take.
type Shortage struct {
	Fits   int           `json:"fits"`             // whole blocks of every workload variant
	Needs  int           `json:"needs"`            // for a verdict
	Time   time.Duration `json:"time,omitempty"`   // that so many blocks take; 0: the time is enough
	Blocks int           `json:"blocks,omitempty"` // the smallest bound of blocks; 0: that is enough
}

// Short returns what a study's budget lacks for a verdict in every workload variant; nil if it lacks nothing, or bounds
// nothing. A search for a level, and a number of blocks that was asked for, have rules of their own.
func Short(st *study.Study, skips []record.Skip, nodes []string, estimate func(record.Cell) time.Duration) *Shortage {
	if st.Stop.Searches() || st.Stop.Fixed > 0 && st.Stop.Fixed < stat.MinN || !New(st, skips, nodes).compares() {
		return nil
	}
	out := &Shortage{Fits: stat.MinN, Needs: stat.MinN}
	if b := st.Budget.Time; b > 0 {
		if t := Takes(st, skips, nodes, out.Needs, estimate); t > b {
			out.Time = t
			for out.Fits--; out.Fits > 1 && Takes(st, skips, nodes, out.Fits, estimate) > b; { // the first block is made whatever it takes
				out.Fits--
			}
		}
	}
	if b := st.Budget.Blocks; b > 0 && b < out.Needs {
		out.Fits, out.Blocks = min(out.Fits, b), out.Needs
	}
	if out.Fits == out.Needs {
		return nil
	}
	return out
}

// Takes returns how long so many blocks of a study are expected to take, with all that is run beside them.
func Takes(st *study.Study, skips []record.Skip, nodes []string, blocks int, estimate func(record.Cell) time.Duration) time.Duration {
	some := *st
	some.Budget, some.Stop.Fixed = study.Budget{}, blocks
	return New(&some, skips, nodes).Remaining(estimate).MostTime
}

// compares reports whether any stratum has a baseline and a treatment that can run.
func (p *Plan) compares() bool {
	for i := range p.strata {
		if s := &p.strata[i]; s.baseline >= 0 && len(p.open(s)) > 0 {
			return true
		}
	}
	return false
}
