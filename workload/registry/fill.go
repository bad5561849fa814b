package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tare/workload/child"
	"tare/workload/inside"
	"tare/workload/output"
)

// fill starts a registry on loopback, pushes the images to pull, and stops it again: `/tare internal registry fill
// FLAGS -- COMMAND`. So the storage has the form that this registry gives it.
func fill(ctx context.Context, args []string, stderr io.Writer) error {
	fs := inside.Flags("tare internal registry fill", stderr)
	images := fs.Int("images", 1, "how many")
	layers := fs.Int("layers", 1, "of each")
	size := fs.Int64("layer-size", 1<<20, "`bytes` of a layer")
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", inside.ErrUsage, err)
	}
	if fs.NArg() == 0 || *images < 1 || *layers < 1 || *size < 1 {
		return fmt.Errorf("%w: give --images, --layers and --layer-size of at least 1, and the registry's command", inside.ErrUsage)
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	cmd := child.Command(running, fs.Args()...)
	var says output.Tail
	cmd.Stdout, cmd.Stderr = &says, &says
	ended := make(chan error, 1)
	go func() { ended <- child.Run(cmd, nil) }()
	at := "127.0.0.1:" + strconv.Itoa(port)
	err := answers(ctx, at, ended)
	if err == nil {
		err = pushAll(ctx, at, *images, newContent(*layers, *size))
	}
	select {
	case e := <-ended: // something else answered in its place
		return fmt.Errorf("the registry ended (%w): %s", e, output.Said(says.String()))
	default:
	}
	if err != nil {
		return fmt.Errorf("%w; the registry says: %s", err, output.Said(says.String()))
	}
	stop()
	<-ended //nolint:errcheck // by the signal, which some registries call an error
	return nil
}

// answers waits until the registry answers.
func answers(ctx context.Context, at string, ended chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("it does not answer after a minute"))
	defer cancel()
	for {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/v2/", nil)
		if err != nil {
			return err
		}
		if a, err := http.DefaultClient.Do(q); err == nil {
			_ = a.Body.Close()
			if a.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-ended:
			ended <- err
			return errors.New("the registry ended")
		case <-ctx.Done():
			return fmt.Errorf("cannot reach the registry: %w", context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// fillers is how many images pushAll pushes at once.
const fillers = 2

// pushAll pushes the images with the numbers below n.
func pushAll(ctx context.Context, at string, n int, c *content) error {
	next := make(chan uint64)
	go func() {
		defer close(next)
		for i := range uint64(n) { //nolint:gosec // fill checks it
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	var pushers sync.WaitGroup
	var failed sync.Once
	var err error
	for range fillers {
		pushers.Go(func() {
			for i := range next {
				if e := pushImage(ctx, at, i, c); e != nil {
					failed.Do(func() { err = e })
				}
			}
		})
	}
	pushers.Wait()
	if err == nil {
		err = ctx.Err()
	}
	return err
}

func pushImage(ctx context.Context, at string, i uint64, c *content) error {
	ref, err := name.ParseReference(reference(at, i), name.Insecure)
	if err != nil {
		return err
	}
	img, err := c.image(i)
	if err == nil {
		err = remote.Write(ref, img, remote.WithContext(ctx))
	}
	if err != nil {
		return fmt.Errorf("cannot push image %d: %w", i, err)
	}
	return nil
}
