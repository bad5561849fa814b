// Package sysnames names the system calls of the architecture that this program was
// built for, which is that of the kernel's own 64-bit calls.
package sysnames

import (
	"strconv"
	"strings"
)

// Max is above every number of the table, and of the kernels to come for a while.
const Max = 512

// Name is the name of a system call, "nr_500" for one that is not in the table. It
// reads through the table: whoever asks often keeps the answer.
func Name(nr int) string {
	next := 0
	for w := range strings.FieldsSeq(table) {
		if n, err := strconv.Atoi(w); err == nil {
			next = n
			continue
		}
		if next == nr {
			return w
		}
		next++
	}
	return "nr_" + strconv.Itoa(nr)
}
