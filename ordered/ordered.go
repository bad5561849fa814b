// Package ordered collects values in the order in which they come: each once, or in groups.
//
// The data path: Add makes a list of distinct values; Groups puts values under keys, and hands out
// the groups in the order of their first values.
package ordered

import (
	"iter"
	"slices"
)

// Add appends those of the values that a list does not have.
func Add[T comparable](list []T, values ...T) []T {
	for _, v := range values {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// Groups are values by their keys. The zero value is ready.
type Groups[K comparable, V any] struct {
	keys []K // in the order in which they came
	of   map[K][]V
}

// Add adds a value to the group of a key.
func (g *Groups[K, V]) Add(key K, value V) {
	if g.of == nil {
		g.of = map[K][]V{}
	}
	if _, ok := g.of[key]; !ok {
		g.keys = append(g.keys, key)
	}
	g.of[key] = append(g.of[key], value)
}

// Lists are the groups without their keys.
func (g *Groups[K, V]) Lists() [][]V {
	var out [][]V
	for _, k := range g.keys {
		out = append(out, g.of[k])
	}
	return out
}

// All are the groups.
func (g *Groups[K, V]) All() iter.Seq2[K, []V] {
	return func(yield func(K, []V) bool) {
		for _, k := range g.keys {
			if !yield(k, g.of[k]) {
				return
			}
		}
	}
}
