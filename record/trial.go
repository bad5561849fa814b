package record

import "strings"

// Identity tells a trial apart from all others of its results. Copies of a trial have the
// same one, because they share its cell.
type Identity struct {
	cell                *Level
	seq, block, attempt int
}

// Identity returns it.
func (t *Trial) Identity() Identity {
	x := Identity{seq: t.Seq, block: t.Block, attempt: t.Attempt}
	if len(t.Cell) > 0 {
		x.cell = &t.Cell[0]
	}
	return x
}

// Drop takes samples out of a trial. It makes a list of the size that is left, since
// results have many trials.
func (t *Trial) Drop(which func(*Sample) bool) {
	n := 0
	for i := range t.Samples {
		if which(&t.Samples[i]) {
			n++
		}
	}
	if n == 0 {
		return
	}
	kept := make([]Sample, 0, len(t.Samples)-n)
	for i := range t.Samples {
		if !which(&t.Samples[i]) {
			kept = append(kept, t.Samples[i])
		}
	}
	t.Samples = kept
}

// Offered is the share of the requests due in the measured time that the load generator had sent by the end: 1 where
// nothing says otherwise.
func (t *Trial) Offered() float64 {
	due, unsent := 0.0, 0.0
	for i := range t.Samples {
		switch s := &t.Samples[i]; s.Name {
		case SampleDue:
			due += s.Value
		case SampleUnsent:
			unsent += s.Value
		}
	}
	if !(due > 0) {
		return 1
	}
	return 1 - unsent/due
}

// Modelled reports whether the trial says that a model made it, as all of its folder then are.
func (t *Trial) Modelled() bool {
	for name, v := range t.Facts {
		if v == AcceleratorModel && strings.HasSuffix(name, "."+FactAccelerator) {
			return true
		}
	}
	return false
}
