package plan

import (
	"math"
	"slices"
)

// A block's treatments are compared with each other, so they run on one node. The
// strata take turns: in each pass they are spread evenly over the nodes, and each of
// them goes on to the next node from pass to pass. Which turn a stratum has is drawn
// from the seed, so a block's node depends on the seed, the pass, the stratum and the
// list of nodes.
//
// The list may change while a study is interrupted, and a node may be lost while it
// runs. A block that has begun stays where its trials say that it is. If that node is
// not there any more, or a trial says that it was lost, the round begins again, whole,
// on another node, and what was made of it does not count. What is finished stays.
//
// An older tare stored no node with a trial, because a study had one node. If the list has
// one node, such a trial counts as made there.

// setNodes takes over the list of nodes.
func (p *Plan) setNodes(nodes []string) {
	p.all = slices.Compact(slices.Sorted(slices.Values(nodes)))
	p.nodes = slices.Clone(p.all)
	if len(p.nodes) == 1 {
		p.only = p.nodes[0]
	}
	if len(p.nodes) > 1 {
		p.turns = make([]int, len(p.study.Strata))
		for turn, stratum := range shuffled(len(p.study.Strata), p.study.Seed, 0, "nodes") {
			p.turns[stratum] = turn
		}
	}
}

// named is the node that a trial ran on.
func (p *Plan) named(node string) string {
	if node == "" {
		return p.only
	}
	return node
}

// Lost says that a node is gone: no trial is asked of it from now on. It returns false,
// and keeps the node, if there is no other.
func (p *Plan) Lost(node string) bool {
	i := slices.Index(p.nodes, node)
	if i >= 0 && len(p.nodes) > 1 {
		p.nodes = slices.Delete(p.nodes, i, i+1)
		p.stale = true
		return true
	}
	return i < 0 && len(p.nodes) > 0
}

// has reports whether a block can go on, on a node.
func (p *Plan) has(node string) bool { return len(p.nodes) == 0 || slices.Contains(p.nodes, node) }

// turn is the node of a block that has not begun.
func (p *Plan) turn(pass, stratum int) string {
	switch len(p.nodes) {
	case 0:
		return ""
	case 1:
		return p.nodes[0]
	}
	return p.nodes[(p.turns[stratum]+pass)%len(p.nodes)]
}

// stay is the part of a block's round that one node has.
type stay struct {
	node  string
	until int  // seq of the first trial that is not of it
	lost  bool // the node was lost before the round was complete
}

// stay finds where the round of a block that begins now runs: on the node of its first
// trial, or if it has none, on the given one.
func (p *Plan) stay(of ref, cells []int, node string) stay {
	var first *try
	for _, id := range cells {
		if b := p.cells[id].at(of.pass); b != nil && b.from < len(b.tries) {
			if t := &b.tries[b.from]; first == nil || t.seq < first.seq {
				first = t
			}
		}
	}
	s := stay{node: node, until: math.MaxInt}
	if first == nil {
		return s
	}
	s.node = first.node
	for _, id := range cells {
		b := p.cells[id].at(of.pass)
		if b == nil {
			continue
		}
		for _, t := range b.tries[b.from:] {
			switch {
			case t.node != s.node:
				s.until = min(s.until, t.seq)
			case t.lost:
				s.until = min(s.until, t.seq+1)
			}
		}
	}
	s.until = max(s.until, first.seq+1) // trials out of their order must not keep the walk here
	for _, id := range cells {
		c := &p.cells[id]
		if _, _, settled := c.at(of.pass).settled(p.study.Retries, s.until); !settled && c.gaveUp == "" {
			s.lost = s.until < math.MaxInt || !p.has(s.node)
			break
		}
	}
	return s
}

// leave passes by what a block has on a lost node. The time that it took is spent all
// the same.
func (p *Plan) leave(pass int, cells []int, s stay) {
	for _, id := range cells {
		b := p.cells[id].at(pass)
		if b == nil {
			continue
		}
		for ; b.from < len(b.tries) && b.tries[b.from].seq < s.until; b.from++ {
			if t := &b.tries[b.from]; !t.interrupted {
				p.spend(s.node, t.duration)
			}
		}
		b.left = b.from
	}
}
