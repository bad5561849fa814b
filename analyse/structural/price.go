package structural

import (
	"slices"

	"tare/record"
	"tare/study"
)

// price is what a sandbox adds to one call of a kind, from the study's own trials
// of the workload syscall.
type price struct {
	call      string // the workload's parameter call
	treatment string
	shared    record.Cell
	cost      Figure // seconds a call
}

// Words of the workload syscall, as a study file has them.
const (
	timePerCall  = "time_per_call"
	callsRate    = "rate"
	threadsParam = "threads"
)

// pricesOf lists the prices that the study measures. A loop on several threads at
// once weighs their contention too, and is left out.
func pricesOf(st *study.Study, rows []Row) []price {
	var out []price
	for k := range rows {
		c := &rows[k]
		if c.Kind != study.PriceKind || c.Response.Name != timePerCall || c.Missing != "" {
			continue
		}
		call, threads := parameter(st, c, study.PriceParam, study.PriceLevel), parameter(st, c, threadsParam, "1")
		if threads != "1" || !(c.Estimate.Base > 0) {
			continue
		}
		f := extra(record.Response{Unit: record.Second}, c.Estimate).scale(c.Estimate.Base / callsIn(call))
		out = append(out, price{call: call, treatment: c.Treatment, shared: c.Shared, cost: f})
	}
	return out
}

// parameter is a workload's parameter in a cell: a level, or what the study fixes.
func parameter(st *study.Study, c *Row, name, otherwise string) string {
	if v, ok := c.Cell.Get(name); ok {
		return v
	}
	for i := range st.Workloads {
		if st.Workloads[i].Label == c.Workload {
			if v, ok := st.Workloads[i].Params[name]; ok {
				return v
			}
		}
	}
	return otherwise
}

// priceFor finds the price of a kind in the sandbox of a comparison. Limits and
// pinning must not differ where both are given; of several that fit, that which
// has more of them in common is taken, then the first.
func priceFor(prices []price, call string, c *Row) (price, bool) {
	best, most := -1, -1
	for i := range prices {
		p := &prices[i]
		if p.call != call || p.treatment != c.Treatment {
			continue
		}
		same := 0
		for _, f := range []string{study.FactorCPULimit, study.FactorMemoryLimit, study.FactorCPUs} {
			a, hasA := p.shared.Get(f)
			b, hasB := c.Shared.Get(f)
			if hasA && hasB {
				if a != b {
					same = -2
					break
				}
				same++
			}
		}
		if same > most {
			best, most = i, same
		}
	}
	if best < 0 {
		return price{}, false
	}
	return prices[best], true
}

// PricedCall is a call that the workload syscall can make, and the calls that its price is of.
type PricedCall struct {
	Name  string
	Calls float64  // that one of its operations makes
	Of    []string // the calls that it stands for
}

// PricedCalls are all of them. Calls that switch threads are not among them: what the
// switch costs cannot be told from the call.
func PricedCalls() []PricedCall {
	return []PricedCall{
		{"getpid", 1, []string{"getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid"}},
		{"clock_gettime", 1, []string{"clock_gettime", "gettimeofday", "time"}},
		{"sched_yield", 1, []string{"sched_yield"}},
		{"read_zero", 1, []string{"read", "readv"}},
		{"write_null", 1, []string{"write", "writev"}},
		{"pread_file", 1, []string{"pread64", "preadv"}},
		{"pwrite_memfd", 1, []string{"pwrite64", "pwritev"}},
		{"stat", 1, []string{"newfstatat", "fstatat64", "stat", "lstat", "fstat", "statx"}},
		{"open_close", 2, []string{"openat", "open", "close"}},
		{"mmap_munmap", 2, []string{"mmap", "munmap"}},
		{"futex_wake", 1, []string{"futex"}},
		{"epoll_wait", 1, []string{"epoll_wait", "epoll_pwait", "epoll_pwait2"}},
		{"send_recv", 2, []string{"sendto", "recvfrom", "sendmsg", "recvmsg"}},
	}
}

// Words are those of the workload syscall's responses and parameters that prices are
// read by, beside study.PriceParam; its package tests that it has them.
func Words() (responses, params []string) {
	return []string{timePerCall, callsRate}, []string{threadsParam}
}

// callsIn is the number of calls in an operation of a kind.
func callsIn(kind string) float64 {
	for _, k := range PricedCalls() {
		if k.Name == kind {
			return k.Calls
		}
	}
	return 1
}

// kindOf finds the price of the kind that stands for a call.
func kindOf(prices []price, name string, c *Row) (price, bool) {
	for _, k := range PricedCalls() {
		if slices.Contains(k.Of, name) {
			return priceFor(prices, k.Name, c)
		}
	}
	return price{}, false
}
