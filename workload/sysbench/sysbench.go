// Package sysbench is two workloads with the tool sysbench (1.0 and later): cpu, which tests
// numbers for primes, and memory, which reads or writes a block many times.
//
// The data path: 1. Roles turns the parameters into one sysbench command;
// 2. sysbench prints plain text, since it has no JSON for these tests; 3. parse
// reads the text into reports, intervals and a histogram; 4. Parse makes
// samples of the last report.
//
// sysbench 1.0 has no warm-up option (--warmup-time came with 1.1). --report-checkpoints has the
// same effect: at the checkpoint it prints a whole report and restarts its counters, so the last
// report covers only the time after the warm-up. Reference: sysbench(1), "General command line
// options".
package sysbench

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
)

// NewCPU returns the workload cpu.
func NewCPU() workload.Workload { return cpu{} }

// NewMemory returns the workload memory.
func NewMemory() workload.Workload { return memory{} }

// common are the parameters of both tests.
func common() []param.Param {
	return []param.Param{
		{Name: "threads", Type: param.Int, Default: "1", Min: 1, Max: 1024, Words: []string{all}, Help: "threads that work at the same time; all: as many as the sandbox says that it has processors"},
		{Name: "duration", Type: param.Duration, Default: "2s", Min: 1, Max: 3600, Help: "measured time, in whole seconds"},
		{Name: "warmup", Type: param.Duration, Default: "1s", Min: 0, Max: 3600, Help: "time before the measuring begins, in whole seconds"},
	}
}

// amount is the parameter that ends a test early, for turns shorter than sysbench's whole seconds.
func amount(name, help string, typ param.Type) param.Param {
	return param.Param{Name: name, Type: typ, Default: "0", Min: 0, Max: 1 << 50, Help: help + " end the test before its duration does; 0: the duration alone ends it"}
}

// all is the number of threads that nproc prints inside the sandbox: the processors of its
// cpuset, as it sees them. A CPU limit does not change that.
const all = "all"

// role makes the command of one test. sysbench takes only whole seconds. role refuses a fraction
// and does not round it, so that the study says what was run.
func role(v param.Values, test, amount string, args ...string) ([]workload.Role, error) {
	duration, warmup := v.Duration("duration"), v.Duration("warmup")
	for _, name := range []string{"duration", "warmup"} {
		if d := v.Duration(name); d%time.Second != 0 {
			return nil, fmt.Errorf("%s = %s is not a whole number of seconds, which sysbench needs; write %ds", name, v.Str(name), int(math.Ceil(d.Seconds())))
		}
	}
	if duration <= 0 {
		return nil, errors.New("duration must be at least 1s")
	}
	if v.Str(amount) != "0" && warmup > 0 {
		return nil, fmt.Errorf("%s = %s could be done before the warm-up ends; write warmup: 0s", amount, v.Str(amount))
	}
	opts := []string{
		"--time=" + seconds(warmup+duration),
		"--percentile=99",
		"--report-interval=1",
	}
	if warmup > 0 {
		opts = append(opts, "--report-checkpoints="+seconds(warmup))
	}
	opts = append(append(opts, args...), "run")
	r := workload.Role{Name: "main", Mode: workload.Exec, Needs: []string{"sysbench"}, Warmup: warmup, Expect: duration}
	if v.Str("threads") == all {
		r.Needs = append(r.Needs, "sh", "nproc")
		r.Args = append([]string{"sh", "-c", `n=$(nproc) && exec sysbench "$0" --threads="$n" "$@"`, test}, opts...)
	} else {
		r.Args = append([]string{"sysbench", test, "--threads=" + v.Str("threads")}, opts...)
	}
	return []workload.Role{r}, nil
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// last parses the output and returns the last report, which is not a checkpoint's.
func last(v param.Values, out io.Reader) (result, report, error) {
	o, err := parse(out)
	if err != nil {
		return o, report{}, err
	}
	n := len(o.reports)
	if n == 0 {
		return o, report{}, errors.New("sysbench: the output has no complete report" + o.hint())
	}
	r := o.reports[n-1]
	if r.checkpoint {
		return o, r, errors.New("sysbench: the output ends after the warm-up; the measured part is missing")
	}
	if v.Duration("warmup") > 0 && n < 2 {
		return o, r, errors.New("sysbench: the output lacks a checkpoint report at the end of the warm-up, so the warm-up cannot be left out; this sysbench may be too old for --report-checkpoints")
	}
	return o, r, nil
}

// threads adds the number of threads, if the sandbox chose it.
func threads(rd *record.Reading, v param.Values, o result) {
	if v.Str("threads") == all && o.threads > 0 {
		rd.Value("threads", record.Count, o.threads, "of", "sysbench")
	}
}

type cpu struct{}

func (cpu) Name() string { return "cpu" }
func (cpu) About() string {
	return "sysbench cpu: searches primes, in user space alone; shows what an isolation costs plain computation"
}
func (cpu) Params() []param.Param {
	return append(common(),
		amount("events", "so many events", param.Int),
		param.Param{Name: "max-prime", Type: param.Int, Default: "10000", Min: 3, Max: 100_000_000, Help: "one event tests every number up to this for being a prime"})
}
func (cpu) Responses(param.Values) []record.Response {
	return []record.Response{
		{Name: "events", Unit: record.PerSecond, Better: record.Higher, Operation: "event", Help: "events finished in a second, all threads together"},
		{Name: "latency_mean", Unit: record.Second, Better: record.Lower, Operation: "event", Help: "time of one event"},
		{Name: "latency_p99", Unit: record.Second, Better: record.Lower, Help: "99th percentile of the time of one event, from sysbench's histogram (steps of 1.8 %)"},
	}
}
func (cpu) Roles(v param.Values) ([]workload.Role, error) {
	return role(v, "cpu", "events", "--events="+v.Str("events"), "--cpu-max-prime="+v.Str("max-prime"), "--histogram=on")
}

func (cpu) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	o, r, err := last(v, out)
	if err != nil {
		return rd, err
	}
	if r.eventsPerSecond <= 0 || r.events <= 0 {
		return rd, errors.New("sysbench: no event finished in the measured time; increase duration or lower max-prime")
	}
	rd.Samples = append(rd.Samples,
		record.Sample{Name: "events", Unit: record.PerSecond, Kind: record.Value, Value: r.eventsPerSecond, Original: r.rateText},
		// The printed mean has two decimals of a millisecond, which is 2.5 % of an event of 0.4 ms.
		// The sum divided by the count is exact enough.
		record.Sample{Name: "latency_mean", Unit: record.Second, Kind: record.Value, Value: r.latencySum / r.events / 1e3, Original: r.sumText + " / " + strconv.FormatFloat(r.events, 'f', -1, 64)})
	p99 := record.Sample{Name: "latency_p99", Unit: record.Second, Kind: record.Value, Value: r.percentile[99] / 1e3, Original: r.percentileText}
	h, err := o.histogram()
	if err != nil {
		return rd, err
	}
	if h != nil {
		p99.Value = float64(h.ValueAtQuantile(99)) * 1e-9
		if err := output.Histogram(&rd, "latency", h); err != nil {
			return rd, fmt.Errorf("sysbench: %w", err)
		}
	}
	if p99.Value > 0 {
		rd.Samples = append(rd.Samples, p99)
	} else {
		rd.Warn("no-percentile", "sysbench printed neither a histogram nor a 99th percentile of the latency")
	}
	threads(&rd, v, o)
	o.series(&rd, "events", record.PerSecond, func(i interval) float64 { return i.events })
	return rd, nil
}

type memory struct{}

func (memory) Name() string { return "memory" }
func (memory) About() string {
	return "sysbench memory: reads or writes a block over and over; shows caches, memory bandwidth and page tables"
}
func (memory) Params() []param.Param {
	return append(common(),
		amount("total", "so many bytes, read or written,", param.Size),
		param.Param{Name: "block-size", Type: param.Size, Default: "1MiB", Min: 1024, Max: 1 << 30, Help: "size of the block, a power of two; a small one stays in the processor's cache"},
		param.Param{Name: "operation", Type: param.Enum, Default: "write", Words: []string{"read", "write"}, Help: "what is done with the block"},
		param.Param{Name: "access", Type: param.Enum, Default: "seq", Words: []string{"seq", "rnd"}, Help: "in order, or at random offsets"},
		param.Param{Name: "scope", Type: param.Enum, Default: "global", Words: []string{"global", "local"}, Help: "one block for all threads, or one each"},
	)
}
func (memory) Responses(param.Values) []record.Response {
	return []record.Response{{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher, Operation: "byte", Help: "bytes read or written in a second, all threads together"}}
}
func (memory) Roles(v param.Values) ([]workload.Role, error) {
	size := v.Size("block-size")
	if size <= 0 || size&(size-1) != 0 { // sysbench: "Invalid value for memory-block-size"
		return nil, fmt.Errorf("block-size = %s is not a power of two, which sysbench needs", v.Str("block-size"))
	}
	total := "1024T" // takes hours on any machine, so the time ends the test
	if n := v.Size("total"); n > 0 {
		total = strconv.FormatInt(n, 10)
	}
	return role(v, "memory", "total",
		"--events=0",
		"--memory-block-size="+strconv.FormatInt(size, 10),
		"--memory-total-size="+total,
		"--memory-oper="+v.Str("operation"),
		"--memory-access-mode="+v.Str("access"),
		"--memory-scope="+v.Str("scope"))
}

func (memory) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	o, r, err := last(v, out)
	if err != nil {
		return rd, err
	}
	if r.operationsPerSecond <= 0 {
		return rd, errors.New("sysbench: no block was transferred in the measured time; increase duration or lower block-size")
	}
	// The printed rate in MiB has two decimals, which is coarse for small blocks. Operations times
	// the block's size is exact.
	size := float64(v.Size("block-size"))
	if size <= 0 {
		size = r.mibPerSecond * (1 << 20) / r.operationsPerSecond
	}
	if printed := r.mibPerSecond * (1 << 20); math.Abs(printed-r.operationsPerSecond*size) > 0.01*printed+6000 {
		return rd, fmt.Errorf("sysbench: %s and %g operations a second of %g bytes contradict each other", r.rateText, r.operationsPerSecond, size)
	}
	rd.Samples = append(rd.Samples, record.Sample{
		Name: "throughput", Unit: record.BytesPerSecond, Kind: record.Value, Value: r.operationsPerSecond * size, Original: r.rateText})
	threads(&rd, v, o)
	o.series(&rd, "throughput", record.BytesPerSecond, func(i interval) float64 { return i.mib * (1 << 20) })
	return rd, nil
}
