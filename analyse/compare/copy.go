package compare

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"tare/record"
)

// distinct refuses results that share trials, and warns where they look alike. A copy says
// nothing about a change, and a partial copy claims to know more than was measured.
func distinct(folders []Folder) (warnings []string, err error) {
	seed := maphash.MakeSeed()
	ids := make([]map[uint64]bool, len(folders)) // of the trials; true: with a time
	for i := range folders {
		ids[i] = make(map[uint64]bool)
		for j := range folders[i].Trials {
			if t := &folders[i].Trials[j]; !t.Start.IsZero() || len(t.Samples) > 0 {
				ids[i][maphash.String(seed, identity(t))] = !t.Start.IsZero()
			}
		}
		for j := range i {
			warning, err := distinctPair(&folders[j], &folders[i], ids[j], ids[i])
			if err != nil {
				return nil, err
			}
			if warning != "" {
				warnings = append(warnings, warning)
			}
		}
	}
	return warnings, nil
}

// distinctPair counts the trials that two results share. One trial that began at the same
// moment is enough to refuse them. Imported results may not know when a trial began, and
// a few of their values may agree by chance. So all of those trials must agree, and it
// warns from half of them on.
func distinctPair(a, b *Folder, inA, inB map[uint64]bool) (warning string, err error) {
	same, timed := 0, 0
	for id, hasTime := range inA {
		if _, ok := inB[id]; ok {
			same++
			if hasTime {
				timed++
			}
		}
	}
	switch {
	case same > 0 && a.Name == b.Name:
		return "", &Refusal{Copy: true, Text: fmt.Sprintf("%s is given twice, so there is nothing to compare; give two results that were measured apart", a.Name)}
	case same > 0 && same == len(inA) && same == len(inB):
		return "", &Refusal{Copy: true, Text: fmt.Sprintf("%s and %s hold the same trials: this is one result twice, so there is nothing to compare; "+
			"measure the other side with `tare run STUDY --results NEW`", a.Name, b.Name)}
	case timed > 0, same > 0 && same == min(len(inA), len(inB)):
		return "", &Refusal{Copy: true, Text: fmt.Sprintf("%s and %s share %d trials (of %d and %d), so the two were not measured apart and cannot be compared; "+
			"measure the other side with `tare run STUDY --results NEW`", a.Name, b.Name, same, len(inA), len(inB))}
	case same > 0 && 2*same >= min(len(inA), len(inB)):
		return fmt.Sprintf("%s and %s agree in %d trials (of %d and %d) to the last digit: one is probably a changed copy of the other, which says nothing about a change; "+
			"compare results that were measured apart", a.Name, b.Name, same, len(inA), len(inB)), nil
	}
	return "", nil
}

// identity is what two trials do not share by chance: the cell, the place,
// the moment, and every value to its last digit.
func identity(t *record.Trial) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%d %d %s %d", cellKey(t.Cell), t.Block, t.Attempt, t.Start.UTC().Format(time.RFC3339Nano), t.Duration)
	for i := range t.Samples {
		s := &t.Samples[i]
		fmt.Fprintf(&b, "\n%s %s %x", s.Name, s.Labels, s.Value)
	}
	return b.String()
}
