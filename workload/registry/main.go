package registry

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"tare/workload/inside"
)

// Main is `tare internal registry`: serve, fill, push or pull, by the first argument. It returns the
// exit code: 0, 1 for a failed run, 2 for wrong arguments. The report goes to stdout, errors go to stderr.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return inside.Exit(stderr, "registry", command(ctx, args, stdout, stderr))
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	what := ""
	if len(args) > 0 {
		what, args = args[0], args[1:]
	}
	switch what {
	case "serve":
		return serve(ctx, args, stderr)
	case "fill":
		return fill(ctx, args, stderr)
	case push, pull:
		l, err := parseLoad(what, args, stderr)
		if err != nil {
			return err
		}
		r, err := l.run(ctx)
		if err != nil {
			return err
		}
		return inside.Print(stdout, r)
	}
	return fmt.Errorf("%w: write serve, fill, push or pull first", inside.ErrUsage)
}
