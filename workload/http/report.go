package httpload

import (
	"fmt"
	"time"

	"tare/workload/output"
)

// report is the client's report, one line of JSON. Counts are of the measured window.
type report struct {
	Format      int    `json:"tare_http"` // 1
	Load        string `json:"load"`      // closed, open
	Connections int    `json:"connections"`
	Threads     int    `json:"threads,omitempty"` // of wrk
	Body        int64  `json:"body_bytes"`        // of each answer
	Answer      int64  `json:"answer_bytes"`      // of each, with its headers

	Window   float64 `json:"window_s"`
	Requests int64   `json:"requests"` // good answers
	Bytes    int64   `json:"bytes"`    // received, including parts of answers in progress at the end
	User     float64 `json:"cpu_user_s"`
	System   float64 `json:"cpu_system_s"`

	// Closed loop: values in microseconds and counts from wrk, including those that wrk adds
	// (correction.go).
	Latency [][2]int64 `json:"latency_us,omitempty"`
	// Open loop: HdrHistogram V2, nanoseconds from the time that each request
	// was due.
	Histogram string         `json:"latency_histogram,omitempty"`
	Rate      float64        `json:"rate_per_s,omitempty"`  // requested
	Due       int64          `json:"due,omitempty"`         // in the window
	Unsent    int64          `json:"unsent,omitempty"`      // due in the window, not sent by its end
	SendDelay spread         `json:"send_delay_s,omitzero"` // from due to sent
	WakeDelay spread         `json:"wake_delay_s,omitzero"` // of the pacer, when it had to wait
	Series    *output.Points `json:"series,omitempty"`      // answers a second
	TLS       *shaken        `json:"tls,omitempty"`         // of a Loop with TLS
	Warnings  []notice       `json:"warnings,omitempty"`
}

type spread struct {
	Mean float64 `json:"mean"`
	P99  float64 `json:"p99"`
}

type notice struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

func (r *report) warn(code, format string, args ...any) {
	r.Warnings = append(r.Warnings, notice{code, fmt.Sprintf(format, args...)})
}

// maxLatency is the longest latency that a histogram tells apart; a longer one
// counts as this.
const maxLatency = int64(time.Hour)
