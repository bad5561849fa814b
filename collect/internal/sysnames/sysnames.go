// Package sysnames names the 64-bit system calls of the architecture that this program was
// built for. Its table, in a file for each architecture, has the numbers of include/uapi and arch
// of Linux, as golang.org/x/sys/unix gives them (zsysnum_linux_amd64.go): each word is the name of
// the number after the one before, a number sets where to go on.
package sysnames

import (
	"strconv"
	"strings"
)

// Max is above every number of the table, with room for future kernels.
const Max = 512

// Name returns the name of a system call, "nr_500" for one that is not in the table. It
// searches the table, so callers that ask often should cache the result.
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
