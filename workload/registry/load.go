package registry

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tare/workload/inside"
	"tare/workload/output"
)

// load is what the clients do.
type load struct {
	at               string // HOST:PORT
	operation        string
	clients, images  int
	content          *content
	warmup, duration time.Duration
	once             bool

	reference func(uint64) (name.Reference, error)
	transport http.RoundTripper
}

// parseLoad reads the flags that all loads have, and those that fs has already.
func parseLoad(operation string, fs *flag.FlagSet, args []string) (*load, error) {
	l := &load{operation: operation}
	fs.StringVar(&l.at, "at", "", "`HOST:PORT` of the registry")
	fs.IntVar(&l.clients, "clients", 1, "at once")
	fs.IntVar(&l.images, "images", 1, "pull: different images")
	layers := fs.Int("layers", 1, "of an image")
	size := fs.Int64("layer-size", 1<<20, "`bytes` of a layer")
	fs.DurationVar(&l.warmup, "warmup", 0, "load before measuring")
	fs.DurationVar(&l.duration, "duration", time.Second, "time to measure")
	fs.BoolVar(&l.once, "once", false, "pull each image once, and measure all of it")
	if err := inside.Parse(fs, args); err != nil {
		return nil, err
	}
	if l.at == "" || l.clients < 1 || l.images < 1 || *layers < 1 || *size < 1 || l.warmup < 0 || l.duration <= 0 {
		return nil, fmt.Errorf("%w: --at is missing, or a number is out of range", inside.ErrUsage)
	}
	l.content = newContent(*layers, *size)
	l.reference = func(n uint64) (name.Reference, error) {
		return name.ParseReference(reference(l.at, n), name.Insecure)
	}
	t := remote.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is documented to be one
	t.MaxIdleConnsPerHost = 2 * l.clients * *layers        // so that connections are kept
	l.transport = t
	return l, nil
}

// options of each call. A registry that refuses is an error, not a reason to ask again.
func (l *load) options(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(l.transport), remote.WithJobs(l.content.layers),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}), remote.WithRetryPredicate(func(error) bool { return false }),
	}
}

// pushed begins the numbers of images that the load pushes, above all that fill pushed.
const pushed = uint64(1) << 32

// run is the load. It returns what was measured.
func (l *load) run(ctx context.Context) (*report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := time.Now()
	from, to := begun.Add(l.warmup), begun.Add(l.warmup+l.duration)
	if l.once {
		from, to = begun, begun.Add(24*time.Hour)
	}
	var next atomic.Uint64
	var clients sync.WaitGroup
	all := make([]times, l.clients)
	var user, system time.Duration
	watch := time.AfterFunc(time.Until(from), func() { user, system = inside.CPU() })
	defer watch.Stop()
	for i := range all {
		clients.Go(func() {
			if err := l.client(ctx, &next, &all[i], from, to); err != nil {
				cancel(err)
			}
		})
	}
	clients.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	end := time.Now()
	if !l.once {
		end = to
	}
	userEnd, systemEnd := inside.CPU()
	r := &report{Format: format, Operation: l.operation, Clients: l.clients, Window: end.Sub(from).Seconds(),
		User: (userEnd - user).Seconds(), System: (systemEnd - system).Seconds()}
	var took, long []time.Duration
	for i := range all {
		r.Images += all[i].whole
		took, long = append(took, all[i].took...), append(long, all[i].long...)
	}
	if len(took) == 0 { // an image takes longer than the window
		took = long
	}
	h := newHistogram()
	for _, d := range took {
		note(h, d)
	}
	r.Bytes = r.Images * float64(l.content.bytes())
	var err error
	if r.Checked, err = l.check(ctx, &next); err != nil {
		return nil, err
	}
	r.Histogram, err = output.Encode(h)
	return r, err
}

// times are what one client measured.
type times struct {
	took  []time.Duration // of the images that began in the window
	long  []time.Duration // of those that began before it, and ended in it or after it
	whole float64         // images, each counted by the part of its time that was in the window
}

// client makes one image after another until the window ends.
func (l *load) client(ctx context.Context, next *atomic.Uint64, out *times, from, to time.Time) error {
	for ctx.Err() == nil && time.Now().Before(to) {
		n := next.Add(1) - 1
		if l.once && n >= uint64(l.images) { //nolint:gosec // not negative
			return nil
		}
		var img v1.Image
		if l.operation == push {
			n += pushed
			var err error
			if img, err = l.content.image(n); err != nil {
				return err
			}
		} else {
			n %= uint64(l.images) //nolint:gosec // not negative
		}
		begun := time.Now()
		if err := l.one(ctx, n, img); err != nil {
			return fmt.Errorf("cannot %s image %d: %w", l.operation, n, err)
		}
		out.add(begun, time.Now(), from, to)
	}
	return nil
}

// add counts an image by the part of its time that lies in the window: whole images alone would be a
// coarse count of large ones.
func (t *times) add(begun, ended, from, to time.Time) {
	in := min(ended.Sub(from), to.Sub(from)) - max(0, begun.Sub(from))
	if in <= 0 {
		return
	}
	t.whole += min(1, in.Seconds()/max(ended.Sub(begun).Seconds(), 1e-9))
	if begun.Before(from) {
		t.long = append(t.long, ended.Sub(begun))
	} else {
		t.took = append(t.took, ended.Sub(begun))
	}
}

// one pushes or pulls one image.
func (l *load) one(ctx context.Context, n uint64, img v1.Image) error {
	ref, err := l.reference(n)
	if err != nil {
		return err
	}
	if img != nil {
		return remote.Write(ref, img, l.options(ctx)...)
	}
	return l.pull(ctx, ref)
}

// pull reads an image with all its layers at once, and compares each with its digest.
func (l *load) pull(ctx context.Context, ref name.Reference) error {
	img, err := remote.Image(ref, l.options(ctx)...)
	if err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	if len(layers) != l.content.layers {
		return fmt.Errorf("it has %d layers, want %d", len(layers), l.content.layers)
	}
	failed := make(chan error, len(layers))
	for _, layer := range layers {
		go func() { failed <- l.read(layer) }()
	}
	for range layers {
		if e := <-failed; e != nil {
			err = e
		}
	}
	return err
}

func (l *load) read(layer v1.Layer) error {
	r, err := layer.Compressed() // which compares the digest at its end
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // it was read
	n, err := io.Copy(io.Discard, r)
	if err == nil && n != l.content.size {
		err = fmt.Errorf("a layer has %d B, want %d", n, l.content.size)
	}
	return err
}

// check pulls some of what was pushed, after the measured time, and returns how many images that were. Every pull has been checked
// already.
func (l *load) check(ctx context.Context, next *atomic.Uint64) (int, error) {
	if l.operation != push {
		return 0, nil
	}
	const most = 4
	done := 0
	for n := next.Load(); n > 0 && done < most; done++ {
		n--
		ref, err := l.reference(pushed + n)
		if err != nil {
			return done, err
		}
		if err := l.pull(ctx, ref); err != nil {
			return done, fmt.Errorf("image %d was pushed, and cannot be pulled: %w", pushed+n, err)
		}
	}
	return done, nil
}
