package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"tare/internal/held"
)

// sampler reads the figures of the kernel that the agent runs on. It is not safe for
// concurrent use.
type sampler struct {
	root                    string // /proc, except in tests
	stat, meminfo, softirqs *kernelFile
	buf                     []byte
	columns                 []int
	memory, free            int64
	remembered              int64 // CLOCK_MONOTONIC of the last reading of meminfo
}

// memoryEvery is how old the figures of memory may be. meminfo costs the kernel as much as
// stat and softirqs together, and memory changes more slowly than the load of processors.
const memoryEvery = time.Second

// open opens the files, once. A kernel without /proc/softirqs, such as gVisor's, is read
// without it.
func (s *sampler) open() error {
	if s.stat != nil {
		return nil
	}
	var err error
	if s.meminfo, err = openKernel(s.root + "/meminfo"); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if s.softirqs, err = openKernel(s.root + "/softirqs"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("agent: %w", err), s.close())
	}
	if s.stat, err = openKernel(s.root + "/stat"); err != nil {
		return errors.Join(fmt.Errorf("agent: %w", err), s.close())
	}
	return nil
}

func (s *sampler) close() error {
	err := errors.Join(s.stat.close(), s.meminfo.close(), s.softirqs.close())
	s.stat, s.meminfo, s.softirqs = nil, nil, nil
	return err
}

// read takes a reading and overwrites into with it.
func (s *sampler) read(into *sampleBody) error {
	if err := s.open(); err != nil {
		return err
	}
	*into = sampleBody{At: monotonic(), CPUs: into.CPUs[:0]}
	b, err := s.stat.read(&s.buf)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if !parseStat(b, into) {
		return fmt.Errorf("agent: %s does not list any processors", s.stat.path)
	}
	if s.softirqs != nil {
		if b, err = s.softirqs.read(&s.buf); err != nil {
			return fmt.Errorf("agent: %w", err)
		}
		s.columns = parseSoftIRQs(b, s.columns, into.CPUs)
	}
	if s.remembered == 0 || into.At-s.remembered >= int64(memoryEvery) {
		if b, err = s.meminfo.read(&s.buf); err != nil {
			return fmt.Errorf("agent: %w", err)
		}
		s.memory, s.free = kibibytes(b, "MemTotal"), kibibytes(b, "MemAvailable")
		s.remembered = into.At
	}
	into.Memory, into.Free, into.Spent = s.memory, s.free, spent()
	return nil
}

// kibibytes finds a size in proc_meminfo(5), where "kB" means 1024 bytes.
func kibibytes(b []byte, key string) int64 {
	n, ok := held.Value(b, key)
	if !ok || n > 1<<50 {
		return 0
	}
	return int64(n) << 10
}

// parseStat reads the lines of single processors, and procs_running, of
// proc_stat(5):
//
//	cpu0 15587 0 4353 198676 393 0 99 119 0 0
//	procs_running 2
//
// Only processors that are online have a line. ok is false if there is no such line.
func parseStat(b []byte, into *sampleBody) (ok bool) {
	into.CPUs = into.CPUs[:0]
	for len(b) > 0 {
		var line []byte
		line, b = held.Line(b)
		if rest, is := held.After(line, "procs_running"); is {
			n, _, _ := held.Uint(rest)
			into.Runnable = int(min(n, 1<<31))
		}
		if len(line) < 4 || string(line[:3]) != "cpu" || len(into.CPUs) == maxCPUs {
			continue
		}
		number, rest, is := held.Uint(line[3:])
		// The line of all processors together has a space in place of a number.
		if last := len(into.CPUs) - 1; !is || line[3] == ' ' || number > 1<<20 || last >= 0 && int(number) <= into.CPUs[last].Number {
			continue
		}
		c := sampleCPU{Number: int(number)}
		var nice uint64
		for _, to := range []*uint64{
			&c.Ticks[tickUser], &nice, &c.Ticks[tickSystem], &c.Ticks[tickIdle], &c.Ticks[tickIOWait],
			&c.Ticks[tickIRQ], &c.Ticks[tickSoftIRQ], &c.Ticks[tickSteal],
		} {
			var more bool
			if *to, rest, more = held.Uint(rest); !more {
				break
			}
		}
		c.Ticks[tickUser] += nice
		into.CPUs = append(into.CPUs, c)
	}
	return len(into.CPUs) > 0
}

// parseSoftIRQs reads three rows of /proc/softirqs (Documentation/filesystems/proc.rst):
//
//	          CPU0       CPU1
//	NET_TX:       4          0
//
// The file has a column for each possible processor; those in cpus are read. columns is
// reused and returned.
func parseSoftIRQs(b []byte, columns []int, cpus []sampleCPU) []int {
	line, b := held.Line(b)
	columns = columns[:0]
	for at := 0; ; { // each column's index in cpus, or -1
		i := 0
		for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
			i++
		}
		if line = line[i:]; len(line) < 4 || string(line[:3]) != "CPU" {
			break
		}
		number, rest, ok := held.Uint(line[3:])
		if !ok {
			break
		}
		line = rest
		for at < len(cpus) && uint64(cpus[at].Number) < number { //nolint:gosec // a processor's number is not negative
			at++
		}
		if at < len(cpus) && uint64(cpus[at].Number) == number { //nolint:gosec // likewise
			columns = append(columns, at)
		} else {
			columns = append(columns, -1)
		}
	}
	for len(b) > 0 {
		line, b = held.Line(b)
		i := 0
		for i < len(line) && line[i] == ' ' {
			i++
		}
		for row, name := range [nSoftIRQ]string{softNetTx: "NET_TX", softNetRx: "NET_RX", softBlock: "BLOCK"} {
			rest, is := held.After(line[i:], name)
			for _, at := range columns {
				var n uint64
				if !is {
					break
				}
				if n, rest, is = held.Uint(rest); is && at >= 0 {
					cpus[at].SoftIRQs[row] = n
				}
			}
		}
	}
	return columns
}
