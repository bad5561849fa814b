package redis

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"tare/param"
	"tare/record"
	"tare/workload/output"
)

// Bounds of valid figures.
const (
	maxRate    = 1e12 // requests a second
	maxSeconds = 1e5
	maxCount   = int64(1) << 53
)

// row is one test of redis-benchmark's CSV, in base units.
type row struct {
	rate     float64
	rateText string
	p50, p99 float64
	all      map[string]float64 // every latency, by column without latency_ms
}

// Parse reads the driver's lines. The server's log only shows that it was ready.
func (redis) Parse(role string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	b, err := output.Read(out)
	if err != nil {
		return rd, fmt.Errorf("redis %s: %w", role, err)
	}
	if role == "server" {
		if !bytes.Contains(b, []byte("eady to accept connections")) {
			return rd, errors.New("redis-server: its log does not say that it was ready to accept connections")
		}
		return rd, nil
	}
	ts, err := chosen(v.Str("tests"))
	if err != nil {
		return rd, err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	for i, t := range ts {
		var r result
		if err := dec.Decode(&r); err != nil {
			return rd, fmt.Errorf("redis: test %d of %d, %s: its line of JSON is missing or broken: %w", i+1, len(ts), t.name, err)
		}
		if r.Test != t.name {
			return rd, fmt.Errorf("redis: test %d of %d is reported as %q, want %s", i+1, len(ts), r.Test, t.name)
		}
		if err := r.add(&rd, t, len(ts) == 1); err != nil {
			return rd, fmt.Errorf("redis: %s: %w", t.name, err)
		}
	}
	if dec.More() {
		return rd, fmt.Errorf("redis: more is printed than the lines of %d tests", len(ts))
	}
	return rd, nil
}

// add checks one test and makes samples of it.
func (r *result) add(rd *record.Reading, t test, alone bool) error {
	got, err := parseCSV(r.CSV, t.name)
	if err != nil {
		return err
	}
	if err := r.sane(t); err != nil {
		return err
	}
	rate := t.name
	if alone {
		rate = "rate"
		rd.Value("latency_p50", record.Second, got.p50)
		rd.Value("latency_p99", record.Second, got.p99)
	}
	rd.Samples = append(rd.Samples, record.Sample{Name: rate, Unit: record.PerSecond, Kind: record.Value, Value: got.rate, Original: got.rateText + " requests/s"})
	for _, stat := range []string{"avg", "min", "p50", "p95", "p99", "max"} {
		if x, ok := got.all[stat]; ok {
			rd.Value("latency", record.Second, x, "stat", stat, "test", t.name)
		}
	}
	rd.Value("requests", record.Count, float64(r.Requests), "test", t.name)
	rd.Value("warmup_rate", record.PerSecond, r.WarmRate, "test", t.name)
	if t.fill == everyKey || t.fill == longList {
		rd.Value("found", record.Fraction, float64(r.Hits)/float64(max(1, r.Hits+r.Misses)), "test", t.name)
	}
	return nil
}

// sane compares redis-benchmark's figures with the server's: every request arrived as the right
// command, none failed, and each found its data.
func (r *result) sane(t test) error {
	for name, n := range map[string]int64{"requests": r.Requests, "calls": r.Calls, "failed": r.Failed, "hits": r.Hits, "misses": r.Misses} {
		if n < 0 || n > maxCount {
			return fmt.Errorf("%s = %d is out of range", name, n)
		}
	}
	switch {
	case !(r.WarmRate >= 0 && r.WarmRate <= maxRate):
		return fmt.Errorf("a rate of %g requests a second while warming up is out of range", r.WarmRate)
	case r.Failed > 0:
		return fmt.Errorf("the server answered %d of %d requests with an error", r.Failed, r.Calls)
	case r.Calls < r.Requests || r.Requests == 0:
		return fmt.Errorf("the server saw %d requests of %d", r.Calls, r.Requests)
	case r.Ran:
		return errors.New("the elements that were filled in ran out, so the last requests found nothing")
	case t.fill == everyKey && r.Misses > 0:
		return fmt.Errorf("%d of %d requests found no value", r.Misses, r.Calls)
	}
	return nil
}

// parseCSV finds a test in the output of `redis-benchmark --csv`:
//
//	"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms",...
//	"LPUSH (needed to benchmark LRANGE)","134228.19","0.210",...
//	"LRANGE_100 (first 100 elements)","83333.34","0.409",...
//
// Columns are found by the header, which redis-benchmark has since 6.2.
func parseCSV(text, name string) (row, error) {
	var out row
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		return out, fmt.Errorf("redis-benchmark's CSV is broken: %w", err)
	}
	if len(rows) == 0 || len(rows[0]) < 2 || rows[0][0] != "test" || rows[0][1] != "rps" {
		return out, errors.New("redis-benchmark's CSV has no header with test and rps; version 6.2 or later is needed")
	}
	for _, fields := range rows[1:] {
		first, note, _ := strings.Cut(fields[0], " ")
		if !strings.EqualFold(first, name) || strings.Contains(note, "needed") {
			continue
		}
		if len(fields) != len(rows[0]) {
			return out, fmt.Errorf("redis-benchmark's line of %s has %d fields, its header %d", fields[0], len(fields), len(rows[0]))
		}
		return parseRow(rows[0], fields)
	}
	return out, fmt.Errorf("redis-benchmark printed no line of %s: this version does not have the test", strings.ToUpper(name))
}

func parseRow(header, fields []string) (row, error) {
	out := row{rateText: fields[1], all: map[string]float64{}}
	var err error
	if out.rate, err = strconv.ParseFloat(fields[1], 64); err != nil || !(out.rate > 0 && out.rate <= maxRate) {
		return out, fmt.Errorf("the rate %.40q is out of range", fields[1])
	}
	for i, column := range header {
		stat, ok := strings.CutSuffix(column, "_latency_ms")
		if !ok {
			continue
		}
		ms, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || !(ms >= 0 && ms <= maxSeconds*1e3) || math.Signbit(ms) {
			return out, fmt.Errorf("%s = %.40q is out of range", column, fields[i])
		}
		out.all[stat] = ms / 1e3
	}
	var ok50, ok99 bool
	out.p50, ok50 = out.all["p50"]
	out.p99, ok99 = out.all["p99"]
	if !ok50 || !ok99 {
		return out, errors.New("redis-benchmark's CSV lacks p50_latency_ms or p99_latency_ms; version 6.2 or later is needed")
	}
	return out, nil
}
