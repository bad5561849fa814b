package registry

import (
	"context"
	"fmt"
	"io"

	"tare/workload/inside"
)

// Main is `tare internal registry`: serve, fill, push, pull or pipeline, by the first argument. It returns the
// exit code: 0, 1 for a failed run, 2 for wrong arguments. The report goes to stdout, errors go to stderr.
func Main(args []string, stdout, stderr io.Writer) int {
	return inside.Main("registry", args, stdout, stderr, command)
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	what, args := inside.Verb(args)
	switch what {
	case "serve":
		return serve(ctx, args, stderr)
	case "fill":
		return fill(ctx, args, stderr)
	case push, pull:
		l, err := parseLoad(what, inside.Flags("tare internal registry "+what, stderr), args)
		if err != nil {
			return err
		}
		return measure(ctx, l.run, stdout)
	case operationPipeline:
		p, err := parsePipeline(args, stderr)
		if err != nil {
			return err
		}
		return measure(ctx, p.run, stdout)
	}
	return fmt.Errorf("%w: write serve, fill, push, pull or pipeline first", inside.ErrUsage)
}

// measure runs a load and prints its report.
func measure(ctx context.Context, run func(context.Context) (*report, error), stdout io.Writer) error {
	r, err := run(ctx)
	if err != nil {
		return err
	}
	return inside.Print(stdout, r)
}
