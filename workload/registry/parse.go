package registry

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/param"
	"tare/record"
	"tare/workload/output"
)

// format is that of report.
const format = 1

// report is the client's report, one line of JSON. Counts are of the measured window.
type report struct {
	Format    int     `json:"tare_registry"`
	Operation string  `json:"operation"`
	Clients   int     `json:"clients"`
	Images    float64 `json:"images"` // an image that began before the window, or ended after it, counts in part
	Bytes     float64 `json:"bytes"`  // of their layers
	Window    float64 `json:"window_s"`
	Histogram string  `json:"latency_histogram"` // HdrHistogram V2, nanoseconds, of images that began in the window, or else of all that were under way
	Checked   int     `json:"checked"`           // images that were pushed, and pulled afterwards
	User      float64 `json:"cpu_user_s"`
	System    float64 `json:"cpu_system_s"`

	// Of a pipeline. Images are those that were rolled out in the window, the latencies are of the arrivals that were due in it.
	Arrivals   int     `json:"arrivals,omitempty"`   // due in the window
	Unfinished int     `json:"unfinished,omitempty"` // of them, when the load gave up: they count with the time until then
	Load       float64 `json:"load_s,omitempty"`     // from the window's begin until the last arrival was finished
	Steps      []part  `json:"steps,omitempty"`
}

// part is a step of the arrivals of a pipeline.
type part struct {
	Name  string  `json:"name"`
	Times string  `json:"times"`  // since the step before: HdrHistogram V2, nanoseconds; "": no arrival reached it
	Mean  float64 `json:"mean_s"` // over all arrivals; those that did not reach the step count as 0
}

// Parse reads the client's report. What the registry prints is not parsed.
func (registry) Parse(role string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	if role == "server" {
		return rd, nil
	}
	r, err := output.JSON[report](out)
	if err == nil {
		err = r.sane(v)
	}
	if err != nil {
		return rd, fmt.Errorf("the report of the registry's client: %w", err)
	}
	h, err := hdrhistogram.Decode([]byte(r.Histogram))
	if err != nil {
		return rd, fmt.Errorf("the latencies of the registry's client: %w", err)
	}
	most := 2*r.Images + float64(r.Clients)
	if r.Operation == operationPipeline {
		most = float64(r.Arrivals)
	}
	if n := h.TotalCount(); n <= 0 || float64(n) > most || h.Max() > 2*int64(longest) {
		return rd, fmt.Errorf("the latencies of the registry's client: %d values up to %d ns are out of range", n, h.Max())
	}
	window := r.Window
	if r.Operation == operationPipeline {
		window = r.Load
		if err := r.pipeline(&rd); err != nil {
			return rd, fmt.Errorf("the report of the registry's client: %w", err)
		}
	}
	rd.Value("throughput", record.BytesPerSecond, r.Bytes/r.Window)
	rd.Value("rate", record.PerSecond, r.Images/r.Window)
	rd.Value("latency_p50", record.Second, float64(h.ValueAtPercentile(50))*1e-9)
	rd.Value("latency_p99", record.Second, float64(h.ValueAtPercentile(99))*1e-9)
	add := func(name string, u record.Unit, x float64) { rd.Value(name, u, x, "end", "client") }
	add("window", record.Second, r.Window)
	add("images", record.Count, r.Images)
	add("checked", record.Count, float64(r.Checked))
	add("cpu_user", record.Cores, r.User/window)
	add("cpu_system", record.Cores, r.System/window)
	return rd, output.Histogram(&rd, "latency", h)
}

// sane refuses impossible reports.
func (r *report) sane(v param.Values) error {
	each := float64(v.Int("layers")) * float64(v.Size("layer-size"))
	switch {
	case r.Format != format:
		return fmt.Errorf("its format is %d, this tare reads %d", r.Format, format)
	case r.Operation != v.Str("operation") || r.Clients != v.Int("clients"):
		return fmt.Errorf("it is of %d clients that %s, but %s clients were to %s", r.Clients, r.Operation, v.Str("clients"), v.Str("operation"))
	case !(r.Window > 1e-3 && r.Window < 1e6):
		return fmt.Errorf("the measured time window_s = %g is out of range", r.Window)
	case r.Images == 0 && r.Operation == operationPipeline:
		return errors.New("no image was rolled out in the measured time; make duration longer, or rate smaller")
	case !(r.Images > 0 && r.Images < 1e9):
		return fmt.Errorf("%g images are out of range", r.Images)
	case math.Abs(r.Bytes-r.Images*each) > 1+1e-6*r.Bytes:
		return fmt.Errorf("%g images of %.0f B are not %g B", r.Images, each, r.Bytes)
	case (len(r.Steps) > 0) != (r.Operation == operationPipeline) || r.Operation == operationPipeline && (r.Arrivals < 1 || r.Arrivals > 1e9 || r.Unfinished < 0 || r.Unfinished > r.Arrivals || !(r.Load >= 0.9*r.Window && r.Load < 1e6)):
		return fmt.Errorf("%d steps of %d arrivals, %d of them unfinished after %g s, are out of range", len(r.Steps), r.Arrivals, r.Unfinished, r.Load)
	case r.Checked < 0 || r.Checked > 1000 || !(r.User >= 0 && r.User < 1e9) || !(r.System >= 0 && r.System < 1e9):
		return fmt.Errorf("%d checked images, %g s and %g s of processor time are out of range", r.Checked, r.User, r.System)
	}
	return nil
}

// bounds has what bounds a pipeline if a step takes most of its time, and the step in words.
func bounds() [][2]string {
	return [][2]string{
		{"workers", "waiting for a client"}, {"build", "building"}, {"push", "pushing"}, {"pull", "pulling and unpacking"}, {"start", "starting"},
	}
}

// pipeline adds the figures of each step, and what bound the load.
func (r *report) pipeline(rd *record.Reading) error {
	sum, worst := 0.0, 1 // of the steps that are work
	var parts []string
	for i, name := range steps() {
		if i >= len(r.Steps) || r.Steps[i].Name != name || !(r.Steps[i].Mean >= 0 && r.Steps[i].Mean < 1e6) {
			return fmt.Errorf("the step %s is missing, or out of range", name)
		}
		s := &r.Steps[i]
		if s.Times == "" {
			return errors.New("no image that was due in the measured time was rolled out; make duration longer, or rate smaller")
		}
		h, err := output.Decode(s.Times, int64(longest))
		if err != nil {
			return fmt.Errorf("the step %s: %w", name, err)
		}
		if h.TotalCount() > int64(r.Arrivals) {
			return fmt.Errorf("the step %s has more times than there are arrivals", name)
		}
		for _, q := range []float64{50, 95, 99} {
			figure, x := fmt.Sprintf("%s_p%g", name, q), float64(h.ValueAtPercentile(q))*1e-9
			rd.Value(figure, record.Second, x)
			rd.Value(figure, record.Second, x, record.LabelStep, "1")
		}
		if err := output.Histogram(rd, name, h); err != nil {
			return err
		}
		if sum += s.Mean; i > 0 && s.Mean > r.Steps[worst].Mean {
			worst = i
		}
		parts = append(parts, output.Seconds(s.Mean)+" "+bounds()[i][1])
	}
	by, share := bounds()[worst][0], r.Steps[worst].Mean/cmp.Or(sum, 1)
	text := fmt.Sprintf("an image took %s: %s", output.Seconds(sum), strings.Join(parts, ", "))
	if waited := r.Steps[0].Mean; waited > sum/2 { // then the clients are full of the longest step
		text += fmt.Sprintf("; all %d clients were busy, most of their time with %s", r.Clients, bounds()[worst][1])
		share = r.Steps[worst].Mean / cmp.Or(sum-waited, 1)
	}
	rd.Samples = append(rd.Samples, record.Sample{Name: record.StepBound, Labels: record.MakeLabels(record.LabelStep, "1", "by", by), Unit: record.Fraction, Kind: record.Value, Value: min(1, share), Original: text})
	step := func(name string, u record.Unit, x float64) { rd.Value(name, u, x, record.LabelStep, "1") }
	step("objects", record.Count, float64(r.Arrivals))
	step("rate", record.PerSecond, r.Images/r.Window)
	rd.Value("arrivals", record.Count, float64(r.Arrivals), "end", "client")
	if rd.Value("unfinished", record.Count, float64(r.Unfinished), "end", "client"); r.Unfinished > 0 {
		rd.Warn("pipeline-behind", "%d of %d images were not rolled out when the load gave up, %.3g s after the measured time; their latencies end there: the rate is above what the pipeline can do", r.Unfinished, r.Arrivals, r.Load-r.Window)
	}
	return nil
}
