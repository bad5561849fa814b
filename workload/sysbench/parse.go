package sysbench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/record"
	"tare/workload/output"
)

// maxHistogram, in nanoseconds, is the longest latency that sysbench's histogram can hold:
// 100 000 ms.
const maxHistogram = int64(100e9)

// result is a whole sysbench output.
type result struct {
	reports   []report
	intervals []interval
	buckets   []bucket // of the latency, whichever came last
	threads   float64  // started threads; 0 if not printed
	first     string   // the first line that looks like an error message
}

// report is one block "CPU speed" or "Total operations" to "Threads fairness".
// Latencies are in milliseconds as printed, zero when absent.
type report struct {
	checkpoint          bool
	eventsPerSecond     float64
	operationsPerSecond float64
	mibPerSecond        float64
	totalTime           float64 // s
	events              float64
	latencyMax          float64
	latencySum          float64
	percentile          map[int]float64

	rateText, sumText, percentileText string // as printed
}

// interval is one "[ 3s ]" line.
type interval struct {
	at          time.Duration
	events, mib float64 // a second
}

// bucket is one line of the histogram: an upper bound in ms, and a count.
type bucket struct {
	ms    float64
	count int64
}

// patterns are the regular expressions of the lines, made once a parse.
type patterns struct{ ops, mib, pct, eps, rate, bar *regexp.Regexp }

func compile() patterns {
	const num = `([0-9]+(?:\.[0-9]+)?)`
	return patterns{
		ops: regexp.MustCompile(`^Total operations: +` + num + ` +\( *` + num + ` per second\)`),
		mib: regexp.MustCompile(`^` + num + ` MiB transferred \( *(` + num + ` MiB/sec)\)`),
		pct: regexp.MustCompile(`^([0-9]{1,3})th percentile: +` + num + `$`),
		eps: regexp.MustCompile(`^\[ ([0-9]{1,9})s \] thds: [0-9]+ eps: ` + num),
		// sysbench 1.0 prints a memory interval without the word "thds".
		rate: regexp.MustCompile(`^\[ ([0-9]{1,9})s \] ` + num + ` MiB/sec`),
		bar:  regexp.MustCompile(`^` + num + ` \|\** +([0-9]{1,18})$`),
	}
}

// parse reads sysbench's text. It ignores unknown lines, so that later versions may print more.
// Known lines with impossible numbers are errors.
func parse(in io.Reader) (result, error) {
	var o result
	re := compile()
	cur := report{percentile: map[int]float64{}}
	text, err := output.Read(in)
	if err != nil {
		return o, fmt.Errorf("sysbench: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		// The first interval and the checkpoint share a line: "[ 1s ] Checkpoint report:".
		if strings.HasSuffix(line, "Checkpoint report:") {
			cur.checkpoint = true
			continue
		}
		if line == "Latency histogram (values are in milliseconds)" {
			o.buckets = nil
			continue
		}
		if err := o.line(re, &cur, line); err != nil {
			return o, err
		}
		if strings.HasPrefix(line, "execution time (avg/stddev):") { // a report's last line
			o.reports = append(o.reports, cur)
			cur = report{percentile: map[int]float64{}}
		}
	}
	return o, nil
}

// line adds one line to the current report or the result.
func (o *result) line(re patterns, cur *report, line string) error {
	key, rest, _ := strings.Cut(line, ":")
	rest = strings.TrimSpace(rest)
	switch key {
	case "events per second":
		cur.rateText = rest + " events/s"
		return number(line, rest, &cur.eventsPerSecond)
	case "total time":
		return number(line, strings.TrimSuffix(rest, "s"), &cur.totalTime)
	case "total number of events":
		return number(line, rest, &cur.events)
	case "Number of threads":
		return number(line, rest, &o.threads)
	case "max":
		return number(line, rest, &cur.latencyMax)
	case "sum":
		cur.sumText = rest + " ms"
		return number(line, rest, &cur.latencySum)
	case "FATAL", "ERROR", "WARNING", "invalid option", "sysbench":
		o.first = cmp.Or(o.first, line)
		return nil
	}
	switch {
	case strings.HasPrefix(line, "Total operations"):
		if m := re.ops.FindStringSubmatch(line); m != nil {
			return number(line, m[2], &cur.operationsPerSecond)
		}
	case strings.Contains(line, "MiB transferred"):
		if m := re.mib.FindStringSubmatch(line); m != nil {
			cur.rateText = m[2]
			return number(line, m[3], &cur.mibPerSecond)
		}
	case strings.Contains(line, "th percentile"):
		if m := re.pct.FindStringSubmatch(line); m != nil {
			p, _ := strconv.Atoi(m[1])
			var x float64
			if err := number(line, m[2], &x); err != nil {
				return err
			}
			cur.percentile[p], cur.percentileText = x, m[2]+" ms"
		}
	case strings.HasPrefix(line, "["):
		return o.interval(re, line)
	case strings.Contains(line, "|"):
		if m := re.bar.FindStringSubmatch(line); m != nil {
			var b bucket
			if err := number(line, m[1], &b.ms); err != nil {
				return err
			}
			b.count, _ = strconv.ParseInt(m[2], 10, 64) // 18 digits always fit
			o.buckets = append(o.buckets, b)
		}
	}
	return nil
}

func (o *result) interval(re patterns, line string) error {
	var i interval
	m := re.eps.FindStringSubmatch(line)
	into := &i.events
	if m == nil {
		m, into = re.rate.FindStringSubmatch(line), &i.mib
	}
	if m == nil {
		return nil
	}
	s, _ := strconv.Atoi(m[1]) // nine digits always fit
	i.at = time.Duration(s) * time.Second
	if n := len(o.intervals); n > 0 && i.at < o.intervals[n-1].at {
		return fmt.Errorf("sysbench: the intervals are not in order at %q", line)
	}
	if err := number(line, m[2], into); err != nil {
		return err
	}
	o.intervals = append(o.intervals, i)
	return nil
}

// number reads a printed number, which must be finite and not negative.
func number(line, text string, into *float64) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return fmt.Errorf("sysbench: %q is not a number in the line %q", text, line)
	}
	*into = x
	return nil
}

// hint returns the end of an error message: sysbench's first error message, if there is one.
func (o result) hint() string {
	if o.first == "" {
		return ""
	}
	return "; it says: " + o.first
}

// series adds the time series of a response from the intervals; offsets are from the role's
// start. It includes the warm-up.
func (o result) series(rd *record.Reading, name string, unit record.Unit, get func(interval) float64) {
	s := record.Series{Name: name, Labels: record.MakeLabels("source", "sysbench", record.LabelResponse, name), Unit: unit, Kind: record.Gauge}
	for _, i := range o.intervals {
		s.T = append(s.T, i.at)
		s.V = append(s.V, get(i))
	}
	if len(s.T) > 0 {
		rd.Series = append(rd.Series, s)
	}
}

// histogram turns the printed buckets into an HdrHistogram of nanoseconds; nil if there are no
// buckets. sysbench's buckets are 1.8 % wide.
func (o result) histogram() (*hdrhistogram.Histogram, error) {
	if len(o.buckets) == 0 {
		return nil, nil
	}
	h := hdrhistogram.New(1, maxHistogram, 3)
	var total int64
	for _, b := range o.buckets {
		ns := int64(math.Round(b.ms * 1e6))
		if total += b.count; ns > maxHistogram || total > 1<<53 {
			return nil, fmt.Errorf("sysbench: the histogram's line %g ms, %d is out of range", b.ms, b.count)
		}
		if b.count == 0 {
			continue
		}
		if err := h.RecordValues(max(ns, 1), b.count); err != nil {
			return nil, fmt.Errorf("sysbench: the histogram's line %g ms: %w", b.ms, err)
		}
	}
	if total == 0 {
		return nil, nil
	}
	return h, nil
}
