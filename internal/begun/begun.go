// Package begun knows when this process began. It imports nothing but time, so that Go initialises it among the first of
// tare's packages.
package begun

import "time"

var first = time.Now() //nolint:gochecknoglobals // the process has one beginning

// Ago is how long this process has run since its first own instruction: on its own clock, to the microsecond. The kernel's start
// of the program and that of Go's runtime are not in it.
func Ago() time.Duration { return time.Since(first) }
