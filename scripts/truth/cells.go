package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"

	"tare/analyse/tune"
)

// A study often tunes the same factor for several neighbouring cells, such as block sizes. plan/seed.go lets each
// search but the first begin where that of its neighbour found a clear answer. This part compares that with searches that all screen.

// neighbours is how many cells each such study has.
const neighbours = 6

// kinship is how neighbouring cells resemble each other.
type kinship struct {
	name string
	walk float64 // standard deviation of the step from one to the next, of ln of the scale of the levels and of the effect
	any  bool    // each has a form of its own
}

func kinships() []kinship {
	return []kinship{{"alike", 0.1, false}, {"shifting", 0.35, false}, {"unrelated", 0.35, true}}
}

// terrain is how a value depends on the levels of some factors.
type terrain struct {
	name string
	at   func(x ...float64) float64
	size []int
}

func levelCells() []terrain {
	var out []terrain
	for _, f := range forms() {
		out = append(out, terrain{f.name, func(x ...float64) float64 { return f.at(x[0]) }, []int{levels}})
	}
	return out
}

// grow makes neighbours of a terrain: the levels of each are stretched against those of the one before, and the effect
// is stronger or weaker.
func grow(r *rand.Rand, all []terrain, own int, kin kinship) []ground {
	var out []ground
	scale, part := 0.0, 0.0 // logarithms
	for range neighbours {
		t := all[own]
		if kin.any {
			t.at = all[r.IntN(len(all))].at
		}
		stretch, power := math.Exp(scale), math.Exp(part)
		out = append(out, newGround(t.name, func(x ...float64) float64 {
			y := make([]float64, len(x))
			for f := range x {
				y[f] = x[f] * stretch
			}
			return math.Pow(t.at(y...), power)
		}, t.size...))
		scale, part = scale+kin.walk*r.NormFloat64(), part+kin.walk*r.NormFloat64()
	}
	return out
}

// right reports whether a level reaches the share, or nearly, and no lower one clearly does.
func (s *surface) right(level int, g tune.Goal) bool {
	if s.share[level] < g.Reach-farBelow {
		return false
	}
	for i, v := range s.share {
		if steps(s.grid.At[i]) < steps(s.grid.At[level]) && v >= g.Reach+farBelow {
			return false
		}
	}
	return true
}

func steps(at []int) int {
	sum := 0
	for _, p := range at {
		sum += p
	}
	return sum
}

// cellsEach is how many studies of each form on each machine are searched.
const cellsEach = 2

// cellsEconomy is about studies of neighbouring cells.
func (l *lab) cellsEconomy(ctx context.Context, title string, terrains func() []terrain, out io.Writer) error {
	n, all, ms := max(1, int(cellsEach*l.scale)), terrains(), hosts()
	goals := []tune.Goal{{Reach: 0.9, Margin: 0.03, Confidence: 0.95}, {Reach: 1, Margin: 0.03, Confidence: 0.95}}
	ways := []string{"each screens", "tune"}
	type key struct{ kin, goal, tuned, way int }
	total, rightly := map[key]*found{}, map[key]float64{}
	var mu sync.Mutex
	kin := kinships()
	err := l.each(ctx, len(kin)*len(all)*len(ms)*n, func(j int) error {
		f, m, k := j%len(all), j/len(all)%len(ms), j/len(all)/len(ms)%len(kin)
		u := unit{section: "cells of " + all[f].name, machine: machine{name: ms[m].name + ms[m].scatter()}}
		seed := u.seed(l.seed, j)
		near := map[[2]int][]int{}
		for i, ground := range grow(fork(seed, 7), all, f, kin[k]) {
			s := newSurface(l.pop, ground, ms[m], ground.blocks(), seed+uint64(i))
			for g, goal := range goals {
				for way := range ways {
					step, readings := tuneNear(s, goal, near[[2]int{g, way}])
					if delete(near, [2]int{g, way}); way == 1 && step.Stage == tune.Found {
						near[[2]int{g, way}] = []int{step.Answer, step.Best}
					}
					far, sure := s.share[step.Answer] < goal.Reach-farBelow, step.Stage == tune.Found
					mu.Lock()
					at := key{k, g, int(one(ms[m].tuned)), way}
					if total[at] == nil {
						total[at] = &found{}
					}
					t := total[at]
					t.n, t.far, t.readings, t.whole = t.n+1, t.far+one(far), t.readings+float64(readings), t.whole+float64(16*len(s.share))
					t.sure, t.sureFar = t.sure+one(sure), t.sureFar+one(sure && far)
					rightly[at] += one(s.right(step.Answer, goal))
					mu.Unlock()
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	rows := [][]string{{"reach", "scatter", "neighbours", "search", "trials each", "fewer than all levels, 16 blocks, %", "fewer than each screens, %", "right, %", "more than 3 % below, %", "clear, %", "of these more than 3 % below, %"}}
	for g, goal := range goals {
		for _, h := range []machine{{tuned: true}, {}} {
			for k := range kin {
				before := total[key{k, g, int(one(h.tuned)), 0}].readings
				for way, name := range ways {
					at := key{k, g, int(one(h.tuned)), way}
					t := total[at]
					rows = append(rows, []string{reachName(goal), h.scatter(), kin[k].name, name, fmt.Sprintf("%.1f", t.readings/t.n), fmt.Sprintf("%.1f", 100-100*t.readings/t.whole),
						fmt.Sprintf("%.1f", 100-100*t.readings/before), share(rightly[at], t.n), share(t.far, t.n), fmt.Sprintf("%.1f", 100*t.sure/t.n), share(t.sureFar, t.sure)})
				}
			}
		}
	}
	return l.write(out, fmt.Sprintf("%s: %d cells in each study, %.0f searches for each line; wanted: right >= 95, more than 3 %% below < 2", title, neighbours, total[key{}].n), rows)
}
