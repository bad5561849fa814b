package system

import (
	"errors"
	"fmt"
	"strconv"

	"tare/collect/internal/metered"
	"tare/internal/held"
	"tare/record"
)

// tick is a clock tick in seconds: the kernel's ABI fixes USER_HZ at 100 on all of Go's
// Linux platforms.
const tick = 0.01

// The fields of /proc/stat's cpu line, in order; guest and guest_nice follow
// and are in user and nice already.
const nModes = 8

func modes() [nModes]record.Labels {
	return [nModes]record.Labels{
		"mode=user", "mode=nice", "mode=system", "mode=idle",
		"mode=iowait", "mode=irq", "mode=softirq", "mode=steal",
	}
}

// Indexes in /proc/stat's softirq line, after the total.
const (
	softNetTX = 2
	softNetRX = 3
	softBlock = 4
)

// Indexes in the lines of processors.
const (
	irq     = 5
	softIRQ = 6
)

// stat is one reading of /proc/stat.
type stat struct {
	cpu                                [nModes]uint64 // ticks
	switches, forks, running, blocked  uint64
	hasCtxt, hasForks, hasRun, hasBlkd bool
	soft                               [softBlock + 1]uint64
	hasSoft                            bool
	interrupts                         []uint64 // ticks of each processor in soft and hard interrupts, by its number
}

// parseStat reads /proc/stat; ok is false if the line of all processors is missing. Modes
// that kernels before 2.6.11 lack stay zero.
//
// The interrupts of single processors go into each, which grows for new processors.
func parseStat(b []byte, each []uint64) (s stat, ok bool) {
	s.interrupts = each
	for len(b) > 0 {
		var line []byte
		line, b = held.Line(b)
		if rest, is := held.After(line, "cpu"); is {
			n := 0
			for more := true; n < nModes && more; {
				if s.cpu[n], rest, more = held.Uint(rest); more {
					n++
				}
			}
			ok = n >= 4
		} else if cpu, modes, is := processor(line); is {
			for len(s.interrupts) <= cpu {
				s.interrupts = append(s.interrupts, 0)
			}
			s.interrupts[cpu] = modes[irq] + modes[softIRQ]
		} else if rest, is := held.After(line, "ctxt"); is {
			s.switches, _, s.hasCtxt = held.Uint(rest)
		} else if rest, is := held.After(line, "processes"); is {
			s.forks, _, s.hasForks = held.Uint(rest)
		} else if rest, is := held.After(line, "procs_running"); is {
			s.running, _, s.hasRun = held.Uint(rest)
		} else if rest, is := held.After(line, "procs_blocked"); is {
			s.blocked, _, s.hasBlkd = held.Uint(rest)
		} else if rest, is := held.After(line, "softirq"); is {
			_, rest, s.hasSoft = held.Uint(rest) // the total
			for i := 0; i < len(s.soft) && s.hasSoft; i++ {
				s.soft[i], rest, s.hasSoft = held.Uint(rest)
			}
		}
	}
	return s, ok
}

// maxProcessors bounds a processor's number, against damaged files: the kernel's bound
// (CONFIG_NR_CPUS) is 8192.
const maxProcessors = 8192

// processor reads the line of one processor: "cpu12 ...".
func processor(line []byte) (cpu int, modes [nModes]uint64, ok bool) {
	if len(line) < 4 || string(line[:3]) != "cpu" {
		return 0, modes, false
	}
	n, rest, ok := held.Uint(line[3:])
	if !ok || n >= maxProcessors {
		return 0, modes, false
	}
	for i, more := 0, true; i < nModes && more; i++ {
		modes[i], rest, more = held.Uint(rest)
	}
	return int(n), modes, true
}

type pressure struct {
	file       *held.File
	some, full record.Labels
}

type probe struct {
	metered.Reader
	stat, meminfo *held.File
	pressure      []pressure
	high          [nModes]uint64
	interrupts    []uint64        // ticks of each processor, as read last
	before        []uint64        // the same when the probe was opened
	labels        []record.Labels // of processors, made on first use
	buf           []byte
}

// take reads each file once.
func (p *probe) take(dst []record.Sample) ([]record.Sample, error) {
	b, err := p.stat.Read(&p.buf)
	if err != nil {
		return dst, fmt.Errorf("system collector: %w", err)
	}
	s, ok := parseStat(b, p.interrupts)
	if !ok {
		return dst, fmt.Errorf("system collector: %s lacks the line of all processors", p.stat.Path())
	}
	dst = p.appendStat(dst, &s)
	dst = p.appendInterrupts(dst, s.interrupts)
	if p.meminfo != nil {
		if b, err = p.meminfo.Read(&p.buf); err != nil {
			return dst, fmt.Errorf("system collector: %w", err)
		}
		// "kB" in this file means 1024 bytes (proc_meminfo(5)).
		if kib, ok := held.Value(b, "MemAvailable"); ok {
			dst = append(dst, record.Sample{Name: availableName, Unit: record.Byte, Kind: record.Gauge, Value: float64(kib) * 1024})
		}
		active, ok := held.Value(b, "Active(file)")
		inactive, also := held.Value(b, "Inactive(file)")
		if ok && also {
			dst = append(dst, record.Sample{Name: cacheName, Unit: record.Byte, Kind: record.Gauge, Value: float64(active+inactive) * 1024})
		}
	}
	for i := range p.pressure {
		f := &p.pressure[i]
		if b, err = f.file.Read(&p.buf); err != nil {
			continue // psi was switched off meanwhile
		}
		dst = stalled(dst, f.some, b, "some")
		dst = stalled(dst, f.full, b, "full")
	}
	return dst, nil
}

func stalled(dst []record.Sample, l record.Labels, b []byte, who string) []record.Sample {
	us, ok := held.Pressure(b, who)
	if !ok {
		return dst
	}
	return append(dst, record.Sample{Name: pressureName, Labels: l, Unit: record.Second, Kind: record.Counter, Value: float64(us) / 1e6})
}

func (p *probe) appendStat(dst []record.Sample, s *stat) []record.Sample {
	labels := modes()
	for i, l := range labels {
		p.high[i] = max(p.high[i], s.cpu[i])
		dst = append(dst, record.Sample{Name: cpuName, Labels: l, Unit: record.Second, Kind: record.Counter, Value: float64(p.high[i]) * tick})
	}
	count := func(has bool, name string, l record.Labels, k record.SampleType, n uint64) {
		if has {
			dst = append(dst, record.Sample{Name: name, Labels: l, Unit: record.Count, Kind: k, Value: float64(n)})
		}
	}
	count(s.hasCtxt, switchesName, "", record.Counter, s.switches)
	count(s.hasForks, forksName, "", record.Counter, s.forks)
	count(s.hasRun, runningName, "", record.Gauge, s.running)
	count(s.hasBlkd, blockedName, "", record.Gauge, s.blocked)
	count(s.hasSoft, softirqsName, "kind=net_tx", record.Counter, s.soft[softNetTX])
	count(s.hasSoft, softirqsName, "kind=net_rx", record.Counter, s.soft[softNetRX])
	count(s.hasSoft, softirqsName, "kind=block", record.Counter, s.soft[softBlock])
	return dst
}

// listed is how long a processor must have served interrupts since the probe was opened to
// get a series: on a large host most serve almost none.
const listed = 1 // ticks

// appendInterrupts appends a sample for each processor that served interrupts, and always
// for the one that served most since the host started.
func (p *probe) appendInterrupts(dst []record.Sample, now []uint64) []record.Sample {
	p.interrupts = now
	for len(p.before) < len(now) { // first reading, or a new processor
		p.before = append(p.before, now[len(p.before)])
		p.labels = append(p.labels, "")
	}
	most := 0
	for cpu, n := range p.before {
		if n > p.before[most] {
			most = cpu
		}
	}
	for cpu, n := range now {
		if n < p.before[cpu]+listed && cpu != most {
			continue
		}
		n = max(n, p.before[cpu])
		if p.labels[cpu] == "" {
			p.labels[cpu] = record.MakeLabels(record.LabelCPU, strconv.Itoa(cpu))
		}
		dst = append(dst, record.Sample{Name: interruptsName, Labels: p.labels[cpu], Unit: record.Second, Kind: record.Counter, Value: float64(n-p.before[cpu]) * tick})
	}
	return dst
}

// Close releases every descriptor. It is idempotent.
func (p *probe) Close() error {
	p.Reader.Close()
	err := errors.Join(p.stat.Close(), p.meminfo.Close())
	for i := range p.pressure {
		err = errors.Join(err, p.pressure[i].file.Close())
	}
	return err
}
