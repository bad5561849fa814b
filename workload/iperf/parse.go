package iperf

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload/output"
)

// report is the used part of the output of `iperf3 --client --json`. Times are in seconds,
// rates in bits a second.
type report struct {
	Error string `json:"error"` // the exit code may be 0 even with an error
	Start struct {
		Test struct {
			Protocol string  `json:"protocol"`
			Streams  int     `json:"num_streams"`
			Length   int64   `json:"blksize"`
			Omit     float64 `json:"omit"`
			Duration float64 `json:"duration"`
			Reverse  int     `json:"reverse"`
		} `json:"test_start"`
	} `json:"start"`
	Intervals []struct {
		Sum part `json:"sum"` // of all streams
	} `json:"intervals"`
	End struct {
		Streams []struct {
			Sender   *part `json:"sender"`
			Receiver *part `json:"receiver"`
		} `json:"streams"`
		Received *part              `json:"sum_received"`
		CPU      map[string]float64 `json:"cpu_utilization_percent"` // of one processor
	} `json:"end"`
}

// part is one stream, or the sum of all, over some time.
type part struct {
	End         float64 `json:"end"`
	Seconds     float64 `json:"seconds"`
	Bytes       float64 `json:"bytes"`
	Omitted     bool    `json:"omitted"`
	Retransmits *int64  `json:"retransmits"` // of a sender whose kernel counts them
}

// Bounds of valid figures, and the tolerance between figures that should be equal.
const (
	maxSeconds = 1e5
	maxBytes   = 1 << 60
	agree      = 0.01
	// early is the part of the requested time that must have been measured. Each end leaves
	// the warm-up out by its own clock, which costs up to a tenth of a second.
	early = 0.5
)

func read(out io.Reader) (*report, error) {
	r, err := output.JSON[report](out)
	if err != nil {
		return nil, err
	}
	if r.Error != "" {
		return nil, errors.New(strings.ToValidUTF8(r.Error, "?"))
	}
	return &r, nil
}

// check compares the report with what was requested.
func (r *report) check(v param.Values) error {
	t := r.Start.Test
	reverse := 0
	if v.Str("direction") == "download" {
		reverse = 1
	}
	switch {
	case t.Protocol != "TCP":
		return fmt.Errorf("the protocol is %q, not TCP", t.Protocol)
	case t.Reverse != reverse:
		return fmt.Errorf("reverse is %d, which is not direction = %s", t.Reverse, v.Str("direction"))
	case t.Streams != v.Int("streams") || len(r.End.Streams) != t.Streams:
		return fmt.Errorf("%d streams began and %d ended, but %s were requested (streams)", t.Streams, len(r.End.Streams), v.Str("streams"))
	case t.Length != v.Size("length"):
		return fmt.Errorf("a length of %d bytes was used, not %s", t.Length, v.Str("length"))
	case t.Duration != v.Duration("duration").Seconds() || t.Omit != v.Duration("warmup").Seconds():
		return fmt.Errorf("it ran for %g s after %g s left out, not for %s after %s", t.Duration, t.Omit, v.Str("duration"), v.Str("warmup"))
	case r.End.Received == nil:
		return errors.New("the end has no sum_received: the server did not report what arrived")
	}
	if err := r.End.Received.sane(); err != nil {
		return fmt.Errorf("sum_received: %w", err)
	}
	if got := r.End.Received.Seconds; got < early*t.Duration {
		return fmt.Errorf("only %g s of %g s were measured: it ended early", got, t.Duration)
	}
	return nil
}

func (p *part) sane() error {
	if !(p.Seconds > 0 && p.Seconds < maxSeconds) || !(p.Bytes >= 0 && p.Bytes < maxBytes) || !(p.End >= 0 && p.End < maxSeconds) {
		return fmt.Errorf("%g bytes in %g s, until %g s, is out of range", p.Bytes, p.Seconds, p.End)
	}
	return nil
}

// reading makes the samples. The throughput is the sum over the streams of what arrived,
// divided by the receiving end's time; iperf3's sum must be equal.
func (r *report) reading(rd *record.Reading) error {
	add := func(name string, u record.Unit, x float64, original string, labels ...string) {
		rd.Value(name, u, x, labels...)
		rd.Samples[len(rd.Samples)-1].Original = original
	}
	total := r.End.Received
	var bytes float64
	var retransmits int64
	told, starved := true, 0
	for i, s := range r.End.Streams {
		if s.Receiver == nil || s.Sender == nil {
			return fmt.Errorf("stream %d lacks the figures of one of its ends", i+1)
		}
		if err := s.Receiver.sane(); err != nil {
			return fmt.Errorf("stream %d: %w", i+1, err)
		}
		bytes += s.Receiver.Bytes
		rd.Value("throughput", record.BytesPerSecond, s.Receiver.Bytes/total.Seconds, "stream", strconv.Itoa(i+1))
		if s.Receiver.Bytes == 0 {
			starved++
		}
		if told = told && s.Sender.Retransmits != nil; told {
			if n := *s.Sender.Retransmits; n < 0 || n > 1<<40 {
				told = false // gVisor and others without the figure in TCP_INFO
			} else {
				retransmits += n
			}
		}
	}
	switch {
	case bytes == 0:
		return errors.New("nothing arrived in the measured time; increase duration")
	case math.Abs(bytes-total.Bytes) > agree*bytes:
		return fmt.Errorf("the streams received %g bytes, but iperf3's sum is %g", bytes, total.Bytes)
	case starved > 0:
		rd.Warn("starved-streams", "%d of %d streams carried nothing in the measured time", starved, len(r.End.Streams))
	}
	add("throughput", record.BytesPerSecond, bytes/total.Seconds, fmt.Sprintf("%.0f bytes in %g s", bytes, total.Seconds))
	if told {
		rd.Value("retransmits", record.Count, float64(retransmits))
	}
	for _, x := range []struct{ column, name, end string }{
		{"host_user", "cpu_user", "client"}, {"host_system", "cpu_system", "client"},
		{"remote_user", "cpu_user", "server"}, {"remote_system", "cpu_system", "server"},
	} {
		percent, ok := r.End.CPU[x.column]
		if ok && percent >= 0 && percent < 1e6 {
			add(x.name, record.Cores, percent/100, strconv.FormatFloat(percent, 'f', 2, 64)+" %", "end", x.end)
		}
	}
	return r.series(rd)
}

// series adds the progress in intervals, as the client sees it: what it sent to its kernel, or
// received. After a warm-up iperf3 (3.12) restarts its clock, and reports the first interval
// with the bytes of one and the time of two; that interval is left out.
func (r *report) series(rd *record.Reading) error {
	s := record.Series{Name: "throughput", Labels: record.MakeLabels(record.LabelResponse, "throughput"), Unit: record.BytesPerSecond, Kind: record.Gauge}
	omit, warming, last := r.Start.Test.Omit, r.Start.Test.Omit > 0, 0.0
	for i, x := range r.Intervals {
		if err := x.Sum.sane(); err != nil {
			return fmt.Errorf("interval %d: %w", i+1, err)
		}
		t := min(x.Sum.End, omit)
		if !x.Sum.Omitted {
			if warming {
				warming = false
				continue
			}
			t = omit + x.Sum.End
		}
		if t < last {
			return fmt.Errorf("interval %d ends at %g s, before the end of the last one", i+1, x.Sum.End)
		}
		last = t
		s.T, s.V = append(s.T, time.Duration(t*1e9)), append(s.V, x.Sum.Bytes/x.Sum.Seconds)
	}
	if len(s.T) > 0 {
		rd.Series = append(rd.Series, s)
	}
	return nil
}
