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

// weigh is the start-up that `tare weigh -- true` tells of runc, beside hyperfine on `runc run` of a
// container whose command is true. Tare's is the time until a command can run in the sandbox;
// hyperfine's has the end of the container in it too.
func (b *bench) weigh(ctx context.Context) ([]row, error) {
	hyperfine, ok := rootfs.Lookup("hyperfine")
	if !ok {
		return nil, errors.New("hyperfine is not installed; apt-get install hyperfine")
	}
	var pairs []pair
	for i := range b.wants(6) {
		dir := filepath.Join(b.work, "weigh"+strconv.Itoa(i))
		if _, err := b.used(ctx, nil, "weigh", "--wait", "--in", "runc", "--for", "5s", "-o", dir, "--", "true"); err != nil {
			return nil, err
		}
		ours, err := starts(dir)
		if err != nil {
			return nil, err
		}
		theirs, err := b.lifeAlone(ctx, hyperfine)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{ours, theirs})
	}
	r := row{Figure: "start-up of runc, as `tare weigh -- true` tells it", Unit: "s"}.beside("difference", "hyperfine", pairs).below(5e-4)
	r.Note = fmt.Sprintf("a round is the median of a weighing of 5 s, beside that of %d lives", lives)
	return []row{r}, nil
}

// lifeAlone is hyperfine's figure, with all that it needs made and taken away: a study in between
// would remove it as what an earlier run left.
func (b *bench) lifeAlone(ctx context.Context, hyperfine string) (x float64, err error) {
	release, err := b.hold(ctx, "weigh")
	if err != nil {
		return 0, err
	}
	defer release()
	l := life{bench: b, name: "bench" + strconv.FormatInt(int64(os.Getpid()), 36)}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.open(ctx); err != nil {
		return 0, err
	}
	return l.theirs(ctx, hyperfine)
}

// starts is the median start of runc's sandboxes in results.
func starts(dir string) (float64, error) {
	trials, err := trialsOf(dir)
	if err != nil {
		return 0, err
	}
	var v []float64
	for i := range trials {
		if k, _ := trials[i].Cell.Get("sandbox"); k != "runc" || trials[i].Status != record.OK {
			continue
		}
		for _, s := range trials[i].Samples {
			if s.Name == "sandbox_start" {
				v = append(v, s.Value)
			}
		}
	}
	if len(v) == 0 {
		return 0, errors.New("no trial of runc is good")
	}
	return median(v), nil
}
