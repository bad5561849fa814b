package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"tare/host/rootfs"
	"tare/record"
)

// weigh is the start-up of runc in `tare weigh -- true`, the whole lifecycle of a sandbox, beside hyperfine on
// `runc run` of a container with the same program.
func (b *bench) weigh(ctx context.Context) ([]row, error) {
	hyperfine, ok := rootfs.Lookup("hyperfine")
	if !ok {
		return nil, errors.New("hyperfine is not installed; apt-get install hyperfine")
	}
	var pairs []pair
	for i := range b.wants(6) {
		dir := filepath.Join(b.work, "weigh"+strconv.Itoa(i))
		if _, err := b.used(ctx, nil, "weigh", "--wait", "--in", "runc", "--budget", "5s", "-o", dir, "--", "true"); err != nil {
			return nil, err
		}
		ours, err := medianWall(dir)
		if err != nil {
			return nil, err
		}
		theirs, err := b.hyperfineAlone(ctx, hyperfine)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{ours, theirs})
	}
	r := row{Figure: "start-up of runc in `tare weigh -- true`, whole lifecycle", Unit: "s"}.beside("difference", "hyperfine", pairs).below(5e-4)
	r.Note = fmt.Sprintf("a round is the median of a weighing of 5 s, beside that of %d launches", launches)
	return []row{r}, nil
}

// hyperfineAlone is hyperfine's figure, with all that it needs made and taken away: a study in between
// would remove it as what an earlier run left.
func (b *bench) hyperfineAlone(ctx context.Context, hyperfine string) (x float64, err error) {
	release, err := b.hold(ctx, "weigh")
	if err != nil {
		return 0, err
	}
	defer release()
	l := lifecycle{bench: b, args: []string{"/tare-hello"}, name: "bench" + strconv.FormatInt(int64(os.Getpid()), 36)}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.open(ctx); err != nil {
		return 0, err
	}
	return l.theirs(ctx, hyperfine)
}

// medianWall is the median lifecycle of runc's sandboxes in results.
func medianWall(dir string) (float64, error) {
	trials, err := trialsOf(dir)
	if err != nil {
		return 0, err
	}
	var v []float64
	for i := range trials {
		if k, _ := trials[i].Cell.Get("sandbox"); k == "runc" && trials[i].Status == record.OK {
			for _, s := range trials[i].Samples {
				if s.Name == record.SandboxLife {
					v = append(v, s.Value)
				}
			}
		}
	}
	if len(v) == 0 {
		return 0, errors.New("no trial of runc is good")
	}
	return median(v), nil
}
