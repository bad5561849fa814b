package analyse

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
)

// Sentinel is what the workload that watches the machine showed.
type Sentinel struct {
	Cell     record.Cell     `json:"cell"`
	Kind     string          `json:"kind"`              // of the workload
	Response record.Response `json:"response"`          // what is watched
	Skipped  string          `json:"skipped,omitempty"` // why this host cannot run it
	Failed   int             `json:"failed,omitempty"`  // of its trials, interrupted ones left out
	Time     time.Duration   `json:"time"`              // of its trials together
	Share    float64         `json:"share"`             // of the time of all trials
	Scatter  float64         `json:"scatter,omitempty"` // within epochs, relative: 0.02 is 2 %; 1.4826 times the median deviation
	Again    int             `json:"again,omitempty"`   // blocks that ran again
	Wait     float64         `json:"wait,omitempty"`    // median of the points' run-queue waits
	Points   []SentinelPoint `json:"points"`            // in order
}

// SentinelPoint is one good trial of the sentinel.
type SentinelPoint struct {
	Seq   int       `json:"seq"`
	Node  string    `json:"node,omitempty"` // where there are several
	Start time.Time `json:"start"`
	Value float64   `json:"value"`
	Wait  float64   `json:"wait"`  // run-queue wait: share of the time in which threads waited for a processor; 0 when it was not read
	Epoch int       `json:"epoch"` // of the node, from 1
}

// Epoch is a stretch of the study in which a machine stayed as it was, as far
// as the sentinel shows.
type Epoch struct {
	Node   string       `json:"node,omitempty"`  // where there are several
	Seq    int          `json:"seq"`             // of its first sentinel
	Start  time.Time    `json:"start"`           // of that trial
	After  int          `json:"after"`           // the last sentinel before it; the change lies between the two. 0 for the first epoch
	What   []string     `json:"what,omitempty"`  // that changed: plan.ChangedTime, plan.ChangedWait
	Level  float64      `json:"level"`           // median of the sentinel's values
	Ratio  float64      `json:"ratio,omitempty"` // of Level to that of the epoch before
	Wait   float64      `json:"wait"`            // median of the run-queue waits
	Blocks []EpochBlock `json:"blocks,omitempty"`
}

// EpochBlock is a block that lies about the beginning of an epoch.
type EpochBlock struct {
	Stratum string `json:"stratum"` // Stratum.Key
	Block   int    `json:"block"`
	Again   bool   `json:"again"` // it ran again
}

// BusyWait is the median run-queue wait of the sentinel from which the machine is
// called busy. Alone on a machine it is a few per cent, since the sentinel has one
// thread; at a fifth, every figure of processor time has waiting in it.
const BusyWait = 0.2

// WarnBusy is the code of the warning that says so.
const WarnBusy = "busy-machine"

// Busy says that threads waited for a processor while the study ran, also where
// they did so evenly, so that no epoch shows it; "" where they hardly did.
func (s *Sentinel) Busy() string {
	if s.Wait < BusyWait || len(s.Points) == 0 {
		return ""
	}
	most := "most of the time"
	if slices.MinFunc(s.Points, func(a, b SentinelPoint) int { return cmp.Compare(a.Wait, b.Wait) }).Wait >= BusyWait {
		most = "throughout"
	}
	return fmt.Sprintf("threads waited %.0f %% of the time for a processor: the machine was busy %s", 100*s.Wait, most)
}

// MinSentinels is the number of sentinels below which no change can be seen.
const MinSentinels = stat.MinSequence

func (a *analysis) isSentinel(c record.Cell) bool { return a.sentinel != "" && c.Key() == a.sentinel }

// epochs adds what the sentinel showed.
func (a *analysis) epochs(r *Result) {
	if a.sentinel == "" {
		return
	}
	w := a.study.Sentinel.Workload
	s := &Sentinel{Cell: a.study.Sentinel.Cell, Kind: w.Kind, Skipped: a.skipped[a.sentinel]}
	s.Response = a.responses(w)[0]
	starts := a.sentinels(s)
	nodes := a.watched(s, starts)
	if len(s.Points) == 0 && s.Skipped == "" && s.Failed == 0 {
		return // begun without one
	}
	r.Sentinel = s
	if len(s.Points) > 0 {
		waits := make([]float64, len(s.Points))
		for i, p := range s.Points {
			waits[i] = p.Wait
		}
		s.Wait = stat.Median(waits)
	}
	if busy := s.Busy(); busy != "" {
		r.Warnings = append(r.Warnings, Warning{Code: WarnBusy, Trials: len(s.Points),
			Text: busy + "; ratios hold for a machine that is shared like this one, and other load is what to stop before measuring again"})
	}
	var deviations []float64
	for _, n := range nodes {
		own, from := a.levels(n, starts)
		r.Epochs, deviations = append(r.Epochs, own...), append(deviations, from...)
		for _, e := range own[min(1, len(own)):] {
			for _, b := range e.Blocks {
				if b.Again {
					s.Again++
				}
			}
		}
	}
	if len(deviations) > 1 {
		s.Scatter = 1.4826 * stat.Median(deviations)
	}
	for _, own := range r.EpochsByNode() {
		a.interaction(r, own)
	}
}

// watchedNode is a node that the sentinel ran on.
type watchedNode struct {
	epochs []plan.Epoch
	points []SentinelPoint
}

// watched adds the sentinel's points, and returns them by node.
func (a *analysis) watched(s *Sentinel, starts map[int]time.Time) []*watchedNode {
	epochs := map[string][]plan.Epoch{}
	for _, e := range a.plan.Epochs() {
		epochs[e.Node] = append(epochs[e.Node], e)
	}
	var nodes []*watchedNode
	byName := map[string]*watchedNode{}
	for _, p := range a.plan.Sentinels() {
		n := byName[p.Node]
		if n == nil {
			n = &watchedNode{epochs: epochs[p.Node]}
			byName[p.Node], nodes = n, append(nodes, n)
		}
		x := SentinelPoint{Seq: p.Seq, Node: a.node(p.Node), Start: starts[p.Seq], Value: p.Value, Epoch: 1}
		for x.Epoch < len(n.epochs) && p.Seq >= n.epochs[x.Epoch].Seq {
			x.Epoch++
		}
		if !math.IsNaN(p.Wait) && !math.IsInf(p.Wait, 0) {
			x.Wait = p.Wait
		}
		n.points = append(n.points, x)
		s.Points = append(s.Points, x)
	}
	if a.several {
		slices.SortStableFunc(s.Points, func(x, y SentinelPoint) int { return cmp.Compare(x.Seq, y.Seq) })
	}
	return nodes
}

// levels returns a node's epochs, with what the sentinel took in each, and how far its
// points were from the level of their epoch, as logarithms.
func (a *analysis) levels(n *watchedNode, starts map[int]time.Time) (out []Epoch, deviations []float64) {
	for i := range max(len(n.epochs), 1) {
		var v, logs, waits []float64
		for _, p := range n.points {
			if p.Epoch == i+1 {
				v, logs, waits = append(v, p.Value), append(logs, math.Log(p.Value)), append(waits, p.Wait)
			}
		}
		if len(v) == 0 {
			continue
		}
		m := stat.Median(logs)
		for _, x := range logs {
			deviations = append(deviations, math.Abs(x-m))
		}
		if len(n.epochs) > 0 {
			out = append(out, a.epoch(n.epochs[i], starts, stat.Median(v), stat.Median(waits)))
		}
	}
	for i := 1; i < len(out); i++ {
		out[i].Ratio = out[i].Level / out[i-1].Level
	}
	return out, deviations
}

// EpochsByNode parts the epochs by the nodes that they are of.
func (r *Result) EpochsByNode() (out [][]Epoch) {
	for i := range r.Epochs {
		if i == 0 || r.Epochs[i].Node != r.Epochs[i-1].Node {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], r.Epochs[i])
	}
	return out
}

// sentinels adds up what the sentinel's trials took, and returns when each began, by Seq.
func (a *analysis) sentinels(s *Sentinel) map[int]time.Time {
	starts := make(map[int]time.Time)
	var all time.Duration
	for _, t := range a.trials {
		all += t.Duration
		if !a.isSentinel(t.Cell) {
			continue
		}
		s.Time += t.Duration
		starts[t.Seq] = t.Start
		if t.Status != record.OK && !t.Failure.Passing() {
			s.Failed++
		}
		if s.Response.Unit == "" {
			s.Response.Unit = unitOf(t, s.Response.Name)
		}
	}
	if all > 0 {
		s.Share = float64(s.Time) / float64(all)
	}
	return starts
}

func (a *analysis) epoch(e plan.Epoch, starts map[int]time.Time, level, wait float64) Epoch {
	out := Epoch{Node: a.node(e.Node), Seq: e.Seq, Start: starts[e.Seq], After: e.After, What: slices.Clone(e.What), Level: level, Wait: wait}
	for _, b := range e.Blocks {
		out.Blocks = append(out.Blocks, EpochBlock{Stratum: a.study.Strata[b.Stratum].Key, Block: b.Block, Again: b.Again})
	}
	return out
}
