package inside

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestExit: what each mistake of a program's arguments ends with.
func TestExit(t *testing.T) {
	for args, want := range map[string]int{"": 0, "-n 1": 0, "-h": 0, "-n x": 2, "-m 1": 2, "-n 1 more": 2, "-n 7": 1} {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		n := fs.Int("n", 0, "")
		err := Parse(fs, strings.Fields(args))
		if err == nil && *n == 7 {
			err = errors.New("it failed")
		}
		var said strings.Builder
		if got := Exit(&said, "x", err); got != want || (got == 0) != (said.Len() == 0) || got != 0 && said.String() != fmt.Sprintf("tare x: %v\n", err) {
			t.Errorf("%q: exit code %d, want %d: %q", args, got, want, said.String())
		}
	}
}
