package analyse

import (
	"fmt"
	"slices"
	"strings"

	"tare/ordered"
	"tare/record"
)

// Copies tells on which nodes the copies of a cell ran, over all trials that count.
type Copies struct {
	Count  int      `json:"count"`                    // of a trial
	AtOnce int      `json:"nodes"`                    // that a trial had copies on; the fewest, if trials differ
	Most   int      `json:"most"`                     // copies on one node
	On     []string `json:"on"`                       // nodes that had copies, in any trial
	Shared bool     `json:"shared_machine,omitempty"` // two of a trial's nodes share a machine
}

func (c *Copies) count() int {
	if c == nil {
		return 0
	}
	return c.Count
}

// copiesOf returns where the copies of a cell's trials ran. It returns nil if the trials name no nodes.
func copiesOf(trials map[int]*record.Trial) *Copies {
	var out *Copies
	for _, t := range trials {
		on := map[string]map[int]bool{}                // copies, by node
		machines, shared := map[string]string{}, false // a node of each machine
		count := 0
		for name, node := range t.Facts {
			if role, is := strings.CutSuffix(name, "."+record.FactNode); is {
				if m := t.Facts[role+"."+record.FactMachine]; m != "" {
					first, is := machines[m]
					shared = shared || is && first != node
					machines[m] = node
				}
				_, k := record.CopyOf(role)
				if on[node] == nil {
					on[node] = map[int]bool{}
				}
				on[node][k] = true
				count = max(count, k)
			}
		}
		if count == 0 {
			continue
		}
		if out == nil {
			out = &Copies{AtOnce: len(on)}
		}
		out.Count, out.AtOnce = max(out.Count, count), min(out.AtOnce, len(on))
		out.Shared = out.Shared || shared
		for node, of := range on {
			out.Most, out.On = max(out.Most, len(of)), ordered.Add(out.On, node)
		}
	}
	if out != nil {
		slices.Sort(out.On)
	}
	return out
}

// unlike notes the first difference between the nodes of a trial's copies. It is for a baseline whose copies ran elsewhere: the
// same copies on both sides would differ as much.
func unlike(trials map[int]*record.Trial, differ map[string]string) {
	for _, x := range terms() {
		if !slices.Contains([]string{record.FactKernel, record.FactOS, record.FactRuntime}, x.fact) {
			continue
		}
		for _, t := range trials {
			for name, v := range t.Facts {
				copied, is := strings.CutSuffix(name, "."+x.fact)
				role, k := record.CopyOf(copied)
				first := t.Facts[role+"."+x.fact]
				if !is || k == 1 || first == "" || first == v {
					continue
				}
				text := fmt.Sprintf("%s: %s %s, of the first copy %s", copied, x.name, x.show(v), x.show(first))
				if differ[x.name] == "" || text < differ[x.name] {
					differ[x.name] = text
				}
			}
		}
	}
}
