package objects

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tare/workload/objects"
	"tare/workload/registry/app"
)

// builder builds an image for each object, and pushes it.
type builder struct {
	source    *app.Source
	to        name.Repository
	load      string // its id: each object's tag begins with it
	transport http.RoundTripper
	next      atomic.Uint64
}

// made has the times of an object's image.
type made struct{ begun, built, pushed time.Time }

// sourceDir is where the files of the images are, on the load's volume.
const sourceDir = "/data"

func newBuilder(o *options, load string) (*builder, error) {
	to, err := name.NewRepository(o.build, name.Insecure)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", objects.Build, err)
	}
	dir, err := os.MkdirTemp(sourceDir, "source-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for the files of the images: %w", err)
	}
	t := remote.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is documented to be one
	t.MaxIdleConnsPerHost = 2 * o.workers                  // so that connections are kept
	b := &builder{to: to, load: load, transport: t}
	b.next.Store(uint64(time.Now().UnixNano())) // no load before had these numbers
	b.source, err = app.New(filepath.Join(dir, "app"), 1, o.buildSize)
	return b, err
}

// image builds and pushes the image of an object. It returns a reference with the digest, and the times.
func (b *builder) image(ctx context.Context, object string) (reference string, times made, err error) {
	times.begun = time.Now()
	img, err := b.source.Build(b.next.Add(1))
	if err != nil {
		return "", times, err
	}
	digest, err := img.Digest()
	if err != nil {
		return "", times, err
	}
	times.built = time.Now()
	err = remote.Write(b.to.Tag(b.load+"-"+object), img, remote.WithContext(ctx), remote.WithTransport(b.transport),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}), remote.WithRetryPredicate(func(error) bool { return false }))
	if err != nil {
		return "", times, fmt.Errorf("cannot push an image to %s: %w", b.to, err)
	}
	times.pushed = time.Now()
	return b.to.Digest(digest.String()).String(), times, nil
}

// made notes the times of an object's image.
func (p *pods) made(name string, times made) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.waited[name]; o != nil {
		o.made = &times
	}
}

// pullTime matches the time of a pull, with the wait for other pulls, in the kubelet's event (pkg/kubelet/images/image_manager.go in
// k8s.io/kubernetes):
//
//	Successfully pulled image "r/app@sha256:..." in 1.3s (1.5s including waiting). Image size: 41234567 bytes.
var pullTime = regexp.MustCompile(`^Successfully pulled image .* in [^ ]+ \(([0-9a-zµ.]{1,20}) including waiting\)`)

func pullOf(message string) time.Duration {
	m := pullTime.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	d, err := time.ParseDuration(m[1])
	if err != nil {
		return 0
	}
	return d
}

// pulls reads how long the nodes took to pull the images of the pods, from the kubelets' events. No two pods of a load have the same name.
func (l *load) pulls(ctx context.Context, all []*start) error {
	pulled := map[string]time.Duration{}
	for _, space := range l.spaces {
		events, _, err := list[seenEvent](ctx, l.api, "/api/v1/namespaces/"+space+"/events?fieldSelector=reason%3DPulled")
		if err != nil {
			return fmt.Errorf("cannot list the events of the pods: %w", err)
		}
		for _, e := range events {
			pulled[e.About.Name] = pullOf(e.Message)
		}
	}
	for _, s := range all {
		s.pulled = pulled[s.name]
	}
	return nil
}

// images sums up the images of a step's pods.
type images struct {
	times map[string]*hdrhistogram.Histogram
	sums  map[string]float64
	ran   float64
}

func newImages() *images {
	return &images{times: map[string]*hdrhistogram.Histogram{}, sums: map[string]float64{}}
}

// note adds the image of a pod. Only pods that ran are part of the means.
func (m *images) note(s *start) {
	if s.made == nil || s.made.pushed.IsZero() {
		return
	}
	if !s.ran.IsZero() {
		m.ran++
	}
	for stage, d := range map[string]time.Duration{
		objects.Waited: s.made.begun.Sub(s.due), objects.Built: s.made.built.Sub(s.made.begun), objects.Pushed: s.made.pushed.Sub(s.made.built), objects.Pulled: s.pulled,
	} {
		if stage == objects.Pulled && d == 0 {
			continue // the event is missing
		}
		if m.times[stage] == nil {
			m.times[stage] = objects.NewHistogram()
		}
		objects.Note(m.times[stage], d)
		if !s.ran.IsZero() {
			m.sums[stage] += d.Seconds()
		}
	}
}

func (m *images) stages() (out []objects.Stage, err error) {
	for _, name := range objects.ImageStages() {
		if m.times[name] == nil {
			continue
		}
		x := objects.Stage{Name: name}
		if m.ran > 0 {
			x.Part = max(0, m.sums[name]/m.ran)
		}
		if x.Times, err = objects.Encode(m.times[name]); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// withImage puts an image into a manifest.
func withImage(manifest []byte, image string) []byte {
	return bytes.ReplaceAll(manifest, []byte(imagePlaceholder), []byte(image))
}
