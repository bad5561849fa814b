package netload

import (
	"fmt"
	"time"

	"tare/record"
	"tare/workload/inside"
	"tare/workload/output"
)

// report is each endpoint's report of a session, one line of JSON. Window means the measured time,
// after the warm-up; totals include the warm-up.
type report struct {
	Format   int    `json:"tare_net"` // 1
	Endpoint string `json:"end"`      // server, client
	Config   config `json:"config"`
	Session  int    `json:"session"` // number of the server's session, from 1

	Window     float64 `json:"window_s"`
	Bytes      int64   `json:"bytes"`      // in the window: received at the receiving end, sent at the other; both in rr
	Operations int64   `json:"operations"` // in the window: round trips, or messages
	User       float64 `json:"cpu_user_s"` // of the process, in the window
	System     float64 `json:"cpu_system_s"`

	TotalSent       int64 `json:"total_sent_bytes"`
	TotalReceived   int64 `json:"total_received_bytes"`
	TotalOperations int64 `json:"total_operations"`

	Lost         int64            `json:"lost,omitempty"`
	NoRoom       int64            `json:"no_room,omitempty"` // of Lost: dropped by the client's full ARP table
	Stale        int64            `json:"stale,omitempty"`
	Due          int64            `json:"due,omitempty"` // open loop: operations in the window
	Unsent       int64            `json:"unsent,omitempty"`
	WakeDelay    float64          `json:"wake_delay_mean_s,omitempty"`
	WakeDelayP99 float64          `json:"wake_delay_p99_s,omitempty"`
	Latency      string           `json:"latency_histogram,omitempty"` // HdrHistogram V2, nanoseconds
	Series       *output.Points   `json:"series,omitempty"`            // every 50 ms: bytes per second of streams, else operations per second
	Profile      *profileReport   `json:"profile,omitempty"`
	Peer         *report          `json:"peer,omitempty"` // at the client: what the server reported
	Warnings     []record.Warning `json:"warnings,omitempty"`
}

// mark is one reading of a session's counters.
type mark struct {
	at           int64
	in, out, ops int64
	user, system time.Duration
}

func (b *bench) mark() mark {
	m := mark{}
	for _, w := range b.workers {
		m.in += w.in.Load()
		m.out += w.out.Load()
		m.ops += w.ops.Load()
	}
	m.at = b.clock.now()
	m.user, m.system = inside.CPU()
	return m
}

// between fills r with what happened between two marks, and the totals up to
// the last one.
func (r *report) between(from, to, last mark) {
	r.Window = time.Duration(to.at - from.at).Seconds()
	r.User = (to.user - from.user).Seconds()
	r.System = (to.system - from.system).Seconds()
	r.Bytes = to.in - from.in + to.out - from.out
	r.Operations = to.ops - from.ops
	r.TotalSent, r.TotalReceived, r.TotalOperations = last.out, last.in, last.ops
}

func (r *report) warn(code, format string, args ...any) {
	r.Warnings = append(r.Warnings, record.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
}

// compare compares the two endpoints' totals. TCP loses nothing, so every byte that one end sent must
// have arrived at the other.
func (r *report) compare(server *report) {
	differ := func(what string, here, there int64) {
		if here != there {
			r.warn("net-ends-differ", "the client counted %d %s, the server %d: do not trust this trial", here, what, there)
		}
	}
	if r.Config.Protocol == "tcp" {
		differ("bytes to the server", r.TotalSent, server.TotalReceived)
		differ("bytes to the client", r.TotalReceived, server.TotalSent)
	}
	if r.Config.Mode != "rr" {
		return
	}
	if r.Config.Protocol == "tcp" {
		differ("operations", r.TotalOperations, server.TotalOperations)
	} else if d := server.TotalOperations - r.TotalOperations; d < 0 || d > r.Lost {
		r.warn("net-ends-differ", "the client counted %d operations and %d losses, the server %d operations: do not trust this trial",
			r.TotalOperations, r.Lost, server.TotalOperations)
	}
}
