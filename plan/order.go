package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
)

// The order is drawn anew for each pass and each block, from PCG (math/rand/v2)
// seeded with the first 16 bytes of SHA-256 over the study's seed, the pass
// (both 8 bytes, little-endian) and a text: "" for the strata of a pass, the
// stratum's key for the cells of a block, followed by " again N" if it is the Nth repetition.
// So a block's order does not depend on earlier events: a resumed study, or one with cells
// that the host cannot run, has the order of the whole study with gaps.

// shuffled returns 0..n-1 in random order. It does not use rand.Shuffle (the algorithm is
// Fisher and Yates; R. Durstenfeld, CACM 7 (1964) 420), because that may draw differently in a
// later Go, and a study must resume in the same order. PCG's stream is fixed. The modulo's
// bias is under n/2^64.
func shuffled(n int, seed uint64, pass int, text string) []int {
	buf := make([]byte, 16, 16+len(text))
	binary.LittleEndian.PutUint64(buf, seed)
	binary.LittleEndian.PutUint64(buf[8:], uint64(pass)) //nolint:gosec // a pass is from 1
	h := sha256.Sum256(append(buf, text...))
	pcg := rand.NewPCG(binary.LittleEndian.Uint64(h[:8]), binary.LittleEndian.Uint64(h[8:16]))
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := int(pcg.Uint64() % uint64(i+1)) //nolint:gosec // at most i
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// passOrder returns the strata of a pass in order: at random, and after the first look of a
// study whose time is limited those with the widest intervals first, of an adaptive study those
// that bring most for their time.
func (p *Plan) passOrder(pass int) []int {
	order := shuffled(len(p.strata), p.study.Seed, pass, "")
	switch {
	case p.study.Stop.Adaptive:
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.strata[b].gain, p.strata[a].gain) })
	case p.study.Budget.Time > 0:
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.strata[b].width, p.strata[a].width) })
	}
	return order
}

// blockOrder returns the cells (indices into p.cells) of a stratum's block in order, without
// those that the host cannot run, and those that needed no more blocks before.
func (p *Plan) blockOrder(pass, stratum, again int) []int {
	s := &p.strata[stratum]
	text := p.study.Strata[stratum].Key
	if again > 0 {
		text += fmt.Sprintf(" again %d", again)
	}
	order := shuffled(len(s.cells), p.study.Seed, pass, text)
	out := order[:0]
	for _, i := range order {
		if id := s.cells[i]; !p.cells[id].skipped && !p.cells[id].over(pass) && s.asks(pass, id) {
			out = append(out, id)
		}
	}
	return out
}
