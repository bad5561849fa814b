// Package ordered collects values in the order in which they arrive: each value once, or in groups.
//
// The data path: Add makes a list of distinct values; Groups collects values by keys, and returns
// the groups in the order of their first values.
package ordered

import (
	"iter"
	"slices"
)

// Add appends the values that the list does not have yet.
func Add[T comparable](list []T, values ...T) []T {
	for _, v := range values {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// Groups has values by key. The zero value is ready to use.
type Groups[K comparable, V any] struct {
	keys []K // in the order in which they arrived
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

// Lists returns the groups without their keys.
func (g *Groups[K, V]) Lists() [][]V {
	var out [][]V
	for _, k := range g.keys {
		out = append(out, g.of[k])
	}
	return out
}

// All returns the groups with their keys.
func (g *Groups[K, V]) All() iter.Seq2[K, []V] {
	return func(yield func(K, []V) bool) {
		for _, k := range g.keys {
			if !yield(k, g.of[k]) {
				return
			}
		}
	}
}
