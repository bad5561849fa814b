package registry

import (
	"fmt"
	"io"
	"math"
	"time"

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
	if n := h.TotalCount(); n <= 0 || float64(n) > 2*r.Images+float64(r.Clients) || h.Max() > 2*int64(time.Hour) {
		return rd, fmt.Errorf("the latencies of the registry's client: %d values up to %d ns are out of range", n, h.Max())
	}
	rd.Value("throughput", record.BytesPerSecond, r.Bytes/r.Window)
	rd.Value("rate", record.PerSecond, r.Images/r.Window)
	rd.Value("latency_p50", record.Second, float64(h.ValueAtPercentile(50))*1e-9)
	rd.Value("latency_p99", record.Second, float64(h.ValueAtPercentile(99))*1e-9)
	add := func(name string, u record.Unit, x float64) { rd.Value(name, u, x, "end", "client") }
	add("window", record.Second, r.Window)
	add("images", record.Count, r.Images)
	add("checked", record.Count, float64(r.Checked))
	add("cpu_user", record.Cores, r.User/r.Window)
	add("cpu_system", record.Cores, r.System/r.Window)
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
	case !(r.Images > 0 && r.Images < 1e9):
		return fmt.Errorf("%g images are out of range", r.Images)
	case math.Abs(r.Bytes-r.Images*each) > 1+1e-6*r.Bytes:
		return fmt.Errorf("%g images of %.0f B are not %g B", r.Images, each, r.Bytes)
	case r.Checked < 0 || r.Checked > 1000 || !(r.User >= 0 && r.User < 1e9) || !(r.System >= 0 && r.System < 1e9):
		return fmt.Errorf("%d checked images, %g s and %g s of processor time are out of range", r.Checked, r.User, r.System)
	}
	return nil
}
