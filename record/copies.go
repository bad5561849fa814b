package record

import (
	"slices"
	"strconv"
	"strings"
)

// A trial may run several copies of its workload at once. The roles of the first have the workload's
// own names, those of copy k are called ROLE-k.
const (
	// LabelCopy is on a response's value in one copy, from 1, and on its series.
	LabelCopy = "copy"
	// FirstPrefix begins the name of a response of the first copy alone: the victim of its neighbours.
	FirstPrefix = "first_"
	// CopiesOverlap is a sample without labels: the part of the time from the first copy's measured
	// start to the last one's end in which all copies were measured, from 0 to 1.
	CopiesOverlap = "copies_overlap"
	// CopiesApart is the code of the warning that this part is small.
	CopiesApart = "copies-apart"
)

// CopyName is the name of a role in the k-th copy, from 1.
func CopyName(role string, k int) string {
	if k < 2 {
		return role
	}
	return role + "-" + strconv.Itoa(k)
}

// CopyOf is what CopyName was made from: the workload's role and the number of the copy.
func CopyOf(name string) (role string, k int) {
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if k, err := strconv.Atoi(name[i+1:]); err == nil && k >= 2 && name == CopyName(name[:i], k) {
			return name[:i], k
		}
	}
	return name, 1
}

// First describes the responses of the first copy, from those of the workload. They count no
// operations: what a trial used, it used for all copies.
func First(all []Response) []Response {
	return among(all, FirstPrefix, "; of the first copy alone")
}

// With returns the labels and one more, or another value of it.
func (l Labels) With(name, value string) Labels {
	pairs := []string{name, value}
	for _, p := range slices.DeleteFunc(l.Pairs(), func(p [2]string) bool { return p[0] == name }) {
		pairs = append(pairs, p[0], p[1])
	}
	return MakeLabels(pairs...)
}
