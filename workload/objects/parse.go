package objects

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/objects/loadfile"
	"tare/workload/output"
)

// Parse reads the lines of the load generator.
func (objects) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	return parse(v, v.Str("object"), out)
}

// parse reads the lines of a load on objects of one kind.
func parse(v param.Values, kind string, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	r, err := read(out)
	var want *expect
	if err == nil {
		want, err = expected(v, kind)
	}
	if err == nil {
		err = r.sane(want, kind)
	}
	if err == nil {
		err = r.saneNode(kind != Claim && v.Str("nodes") == Own)
	}
	if err == nil {
		err = r.samples(&rd, want, v, kind)
	}
	if err != nil {
		return rd, fmt.Errorf("the report of the load on objects: %w", err)
	}
	return rd, nil
}

// report is all lines of a load.
type report struct {
	steps []Step
	end   *End
}

func read(out io.Reader) (r report, err error) {
	b, err := output.Read(out)
	if err != nil {
		return r, err
	}
	for n, text := range bytes.Split(b, []byte("\n")) {
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var l Line
		switch err := json.Unmarshal(text, &l); {
		case err != nil:
			return r, fmt.Errorf("line %d is not JSON, or is cut off: %w", n+1, err)
		case r.end != nil:
			return r, fmt.Errorf("line %d comes after the end", n+1)
		case l.Step != nil && len(r.steps) == maxSteps:
			return r, fmt.Errorf("there are more than %d steps", maxSteps)
		case l.Step != nil:
			r.steps = append(r.steps, *l.Step)
		case l.End != nil:
			r.end = l.End
		case !l.Measured:
			return r, fmt.Errorf("line %d is not a step, and no end", n+1)
		}
	}
	return r, nil
}

// Bounds of what lines say: a day, and more of anything than a load has.
const (
	maxTime  = 86400.0
	maxSum   = 1e12
	maxCalls = 64
	maxText  = 2 << 10
)

// sane refuses what no load of these parameters prints.
func (r *report) sane(want *expect, kind string) error {
	steps := len(want.steps)
	switch {
	case len(r.steps) == 0 || r.end == nil:
		return errors.New("it has no step or no end: it is cut off")
	case len(r.steps) > steps:
		return fmt.Errorf("it has %d steps, but there were to be %d", len(r.steps), steps)
	case len(r.steps) < steps && !r.steps[len(r.steps)-1].Ended:
		return fmt.Errorf("it has %d of %d steps and does not say why", len(r.steps), steps)
	case r.end.Namespaces < 1 || r.end.Namespaces > want.namespaces || r.end.Removed > maxTime || !fine(maxSum, r.end.User, r.end.System, r.end.Memory):
		return fmt.Errorf("its end %+v is out of range", *r.end)
	}
	for i := range r.steps {
		s := &r.steps[i]
		if err := s.sane(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if w := want.steps[i]; s.Number != i+1 || s.Objects != w.Objects || s.Made+s.Failed > w.Requests || s.Ended && i < len(r.steps)-1 {
			return fmt.Errorf("step %d says that it is step %d, with %d and %d requests of %d, and %d objects; there were to be %d", i+1, s.Number, s.Made, s.Failed, w.Requests, s.Objects, w.Objects)
		}
		if (s.Claims != nil) != (kind == Claim) {
			return fmt.Errorf("step %d: the figures do not fit the workload (with claims: %t)", i+1, s.Claims != nil)
		}
	}
	return nil
}

// Target is how many objects there are to be after a step, from 1.
func Target(count, steps, step int) int { return count * step / steps }

var wordRE = regexp.MustCompile(`^[a-z]{1,40}$`)

func (s *Step) sane() error {
	switch {
	case s.Made < 0 || s.Failed < 0 || s.Pods < 0 || s.Pods > 2*maxCount || s.Broken < 0 || s.Broken > maxCount:
		return errors.New("a number of objects or pods is out of range")
	case !fine(maxTime, s.Begin, s.Create, s.Settle, s.Churn, s.Late, s.Down, s.Paced, s.Paused) || !fine(maxSum, s.Limited, s.Busy, s.Asked):
		return errors.New("a time is out of range")
	case len(s.Calls) > maxCalls || len(s.Why) > maxText || len(s.Node) > MaxReadings+1:
		return errors.New("it is too long")
	}
	for _, c := range s.Calls {
		if !wordRE.MatchString(c.Verb) || !wordRE.MatchString(c.Resource) || c.Count < 0 || c.Count > maxCount*10 || c.Errors < 0 || c.Throttled < 0 || c.Errors > maxSum || c.Throttled > maxSum {
			return fmt.Errorf("its calls %q of %q are out of range", c.Verb, c.Resource)
		}
	}
	if p := s.Start; p != nil && (p.Never < 0 || p.Never > maxCount || p.Nodes < 0 || p.Nodes > maxCount || len(p.Message) > maxText || !fine(maxTime, p.Answered, p.Placed, p.Ran, p.Launched, p.Handed, p.Booted)) {
		return errors.New("the starts of its pods are out of range")
	}
	if s.Start != nil {
		if err := saneStages(s.Start.Image, ImageStages()); err != nil {
			return fmt.Errorf("its images: %w", err)
		}
	}
	if x := s.Server; x != nil && (!fine(maxSum, x.Cores, x.Rejected, x.Queued, x.Store, x.Stores) || !fine(1e18, x.Memory) || x.Processors < 0 || x.Processors > 1e6) {
		return errors.New("the readings of the API server are out of range")
	}
	if k := s.Kubelets; k != nil {
		if err := k.sane(); err != nil {
			return err
		}
	}
	last := -1
	for _, p := range s.Control {
		i := slices.Index(Parts(), p.Name)
		if i <= last || p.Pods < 1 || p.Pods > maxCount || !fine(maxSum, p.Cores) || !fine(1e18, p.Memory) {
			return errors.New("the readings of the control plane are out of range")
		}
		last = i
	}
	if s.Claims != nil {
		return s.Claims.sane(s.Made)
	}
	return nil
}

// mutating reports whether a verb changes objects.
func mutating(verb string) bool { return verb != "get" && verb != "list" && verb != "watch" }

// samples makes samples of the lines.
func (r *report) samples(rd *record.Reading, want *expect, v param.Values, kind string) error {
	latency, starts := NewHistogram(), NewHistogram()
	made, creating := 0, 0.0
	for i := range r.steps {
		s := &r.steps[i]
		made, creating = made+s.Made, creating+s.Create
		if err := s.samples(rd, &want.steps[i], v, kind, latency, starts); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	switch {
	case made == 0 && r.steps[0].refused():
		return &workload.Refused{Why: "the API server refused every object: " + remedy(r.steps[0].Why)}
	case made == 0:
		return fmt.Errorf("no object was created: %s", remedy(r.steps[0].Why))
	case creating <= 0 || latency.TotalCount() == 0:
		return errors.New("objects were created in no time")
	case want.pods && starts.TotalCount() == 0:
		if i := slices.IndexFunc(r.steps, func(s Step) bool { return s.refused() }); i >= 0 {
			return &workload.Refused{Why: "the API server refused every pod: " + r.steps[i].Why}
		}
		return errors.New("there are no starts of pods")
	}
	if kind == Claim {
		if err := r.claims(rd); err != nil {
			return err
		}
	} else {
		rd.Value("rate", record.PerSecond, float64(made)/creating)
	}
	rd.Value("api_latency_p99", record.Second, percentile(latency, 99))
	if err := output.Histogram(rd, "api_latency", latency); err != nil {
		return err
	}
	if want.pods {
		never := 0
		for i := range r.steps {
			if s := r.steps[i].Start; s != nil {
				never += s.Never
			}
		}
		for _, q := range []float64{50, 99} {
			quantile(rd.Value, startOf(kind), starts, q, never)
		}
		if err := output.Histogram(rd, startOf(kind), starts); err != nil {
			return err
		}
	}
	if err := r.images(rd); err != nil {
		return err
	}
	if v.Str("nodes") == Simulated && kind == VM {
		rd.Warn("objects-simulated", "the nodes are simulated, so no guest booted; the times are those of KubeVirt's controllers, the API server and the scheduler")
	}
	if v.Str("nodes") == Own {
		if err := r.nodeSamples(rd); err != nil {
			return err
		}
	}
	for i := range r.steps {
		if s := &r.steps[i]; s.Down > 0 {
			rd.Warn("objects-outage", "the API server could not be reached for %s in step %d of %d; the times of that step have the outage in them", output.Seconds(s.Down), s.Number, len(want.steps))
		}
	}
	if last := &r.steps[len(r.steps)-1]; last.Ended {
		rd.Warn("objects-ended", "the load ended at step %d of %d (%d objects): %s", last.Number, len(want.steps), last.Objects, remedy(last.Why))
	}
	if r.end.Removed < 0 {
		held := strings.ToValidUTF8(r.end.Held[:min(len(r.end.Held), MaxHeld)], "")
		rd.Warn("objects-left", "the load's namespaces were not gone in time: %s", cmp.Or(held, "`kubectl get namespaces -l app.kubernetes.io/managed-by=tare` lists them"))
	} else {
		rd.Value("removed", record.Second, r.end.Removed)
	}
	for _, w := range r.end.Warnings[:min(len(r.end.Warnings), MaxWarnings)] {
		rd.Warn("objects-api", "the API server warned: %.*s", MaxWarning, w)
	}
	rd.Value("cpu_user", record.Second, r.end.User, "end", "client")
	rd.Value("cpu_system", record.Second, r.end.System, "end", "client")
	rd.Value("memory", record.Byte, r.end.Memory, "end", "client")
	return nil
}

// refused reports whether the API server answered requests, and refused them.
func (s *Step) refused() bool {
	return s.Down == 0 && slices.ContainsFunc(s.Calls, func(c Call) bool { return mutating(c.Verb) && c.Errors > 0 })
}

func percentile(h *hdrhistogram.Histogram, p float64) float64 {
	return float64(h.ValueAtPercentile(p)) * 1e-9
}

// quantile adds a percentile of a step or of all. late of the times are those until a step's end: if the percentile is one of them,
// it is a lower bound.
func quantile(add func(name string, u record.Unit, x float64, labels ...string), name string, h *hdrhistogram.Histogram, q float64, late int) {
	name = fmt.Sprintf("%s_p%g", name, q)
	add(name, record.Second, percentile(h, q))
	if late > 0 && int64(math.Ceil(q/100*float64(h.TotalCount()))) > h.TotalCount()-int64(late) {
		add(record.StepLate, record.Count, float64(late), record.LabelFigure, name)
	}
}

// samples adds a step's figures. It merges the latencies of calls that change something, and the starts of pods.
func (s *Step) samples(rd *record.Reading, want *loadfile.Step, v param.Values, kind string, latency, starts *hdrhistogram.Histogram) error {
	step := strconv.Itoa(s.Number)
	add := func(name string, u record.Unit, x float64, labels ...string) {
		rd.Value(name, u, x, append([]string{record.LabelStep, step}, labels...)...)
	}
	objects := s.Objects
	if v.Str("file") == "" { // all requests of a step create objects
		objects = max(0, objects-s.Failed)
	}
	add("objects", record.Count, float64(objects))
	add("create", record.Second, s.Create)
	if s.Create > 0 && kind != Claim { // the rate of claims counts bound ones (stages.go)
		add("rate", record.PerSecond, float64(s.Made)/s.Create)
	}
	add("limited", record.Second, s.Limited)
	add("down", record.Second, s.Down)
	own, err := s.calls(add)
	if err != nil {
		return err
	}
	latency.Merge(own)
	if own.TotalCount() > 0 {
		add("api_latency_p99", record.Second, percentile(own, 99))
	}
	if want.Pods {
		if s.Start == nil {
			return errors.New("it does not say how its pods started")
		}
		h, err := decode(s.Start.Total)
		if err != nil {
			return err
		}
		if n := h.TotalCount(); n > maxCount || n < int64(s.Start.Never) {
			return fmt.Errorf("%d starts of pods, of which %d never ran, are out of range", n, s.Start.Never)
		}
		starts.Merge(h)
		add("settle", record.Second, s.Settle)
		add("pods", record.Count, float64(s.Pods))
		add("churned", record.Second, s.Churn)
		add("pod_nodes", record.Count, float64(s.Start.Nodes))
		if h.TotalCount() > 0 {
			for _, q := range []float64{50, 99} {
				quantile(add, startOf(kind), h, q, s.Start.Never)
			}
		}
		if err := s.Start.images(add); err != nil {
			return err
		}
		add("start_answered", record.Second, s.Start.Answered)
		add("start_placed", record.Second, s.Start.Placed)
		add("start_ran", record.Second, s.Start.Ran)
		if kind == VM {
			add("start_launched", record.Second, s.Start.Launched)
			add("start_handed", record.Second, s.Start.Handed)
			add("start_booted", record.Second, s.Start.Booted)
		}
	}
	s.Server.samples(add)
	s.Kubelets.samples(add)
	for _, p := range s.Control {
		add(p.Name+"_cpu", record.Cores, p.Cores)
		add(p.Name+"_memory", record.Byte, p.Memory)
	}
	bound := func(name string, b Bound) {
		rd.Samples = append(rd.Samples, record.Sample{Name: name, Labels: record.MakeLabels(record.LabelStep, step, record.LabelBound, string(b.By)), Unit: record.Fraction, Kind: record.Value, Value: b.Share, Original: b.Text})
	}
	if kind != Claim {
		bound(record.StepBound, s.Bound(want.Rate, v.Int("workers")))
		return nil
	}
	bound(record.StepBound, s.BoundWay(v.Float("rate"), Workers(v.Int("workers"), v.Int("parallel"))))
	bound(record.RemovalBound, s.BoundRemoval())
	return s.Claims.samples(rd, step)
}

// samples adds what the API server used; nil: nobody read it.
func (x *Server) samples(add func(name string, u record.Unit, v float64, labels ...string)) {
	if x == nil {
		return
	}
	add("server_cpu", record.Cores, x.Cores)
	add("server_memory", record.Byte, x.Memory)
	add("server_rejected", record.Count, x.Rejected)
	add("server_queued", record.Second, x.Queued)
	if x.Stores > 0 {
		add("store_mean", record.Second, x.Store/x.Stores)
	}
}

// calls adds the figures of a step's calls. It returns the latencies of those that change something.
func (s *Step) calls(add func(name string, u record.Unit, x float64, labels ...string)) (*hdrhistogram.Histogram, error) {
	own := NewHistogram()
	for _, c := range s.Calls {
		h, err := decode(c.Latency)
		if err != nil {
			return nil, err
		}
		server, err := decode(c.Server)
		if err != nil {
			return nil, err
		}
		if h.TotalCount() != c.Count || server.TotalCount() != c.Count {
			return nil, fmt.Errorf("%d calls have %d latencies and %d times of the server", c.Count, h.TotalCount(), server.TotalCount())
		}
		if mutating(c.Verb) {
			own.Merge(h)
		}
		of := []string{record.LabelVerb, c.Verb, record.LabelResource, c.Resource}
		add("calls", record.Count, float64(c.Count), of...)
		add("errors", record.Count, float64(c.Errors), of...)
		add("throttled", record.Count, float64(c.Throttled), of...)
		for _, q := range []float64{50, 90, 99, 100} {
			name := strconv.Itoa(int(q))
			add("latency_p"+name, record.Second, percentile(h, q), of...)
			add(record.CallTime+name, record.Second, percentile(server, q), of...)
		}
	}
	return own, nil
}
