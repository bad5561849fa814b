package netload

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/net/uperf"
)

// beside lists the parameters that have an effect with a profile.
func beside() []string { return []string{"profile", "vars", "spin", "port", "timeout"} }

// profileRoles are the two endpoints of a profile. The text goes with the client's
// command line, so that a sandbox needs no file.
func profileRoles(v param.Values) ([]workload.Role, error) {
	prog, err := newProgram(v.Str("profile"), v.Str("vars"))
	if err != nil {
		return nil, fmt.Errorf("workload net: %w", err)
	}
	var wrong []string
	for _, p := range (Workload{}).Params() {
		if strings.TrimSpace(v.Str(p.Name)) != p.Default && !slices.Contains(beside(), p.Name) {
			wrong = append(wrong, p.Name)
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("workload net: %s have no effect with a profile, which says what is sent; remove them, or use a $variable of the profile",
			strings.Join(wrong, ", "))
	}
	port := strconv.Itoa(v.Int("port"))
	env := []string{"GODEBUG=asyncpreemptoff=1"}
	return []workload.Role{
		serverRole(port, env),
		{
			Name: "client", Mode: workload.Exec, Env: env, Expect: prog.expect(),
			Args: []string{"/tare", "internal", "net", "client", "--server", "{server}", "--port", port,
				"--profile-text", v.Str("profile"), "--vars", v.Str("vars"),
				"--spin", v.Duration("spin").String(), "--timeout", v.Duration("timeout").String()},
		},
	}, nil
}

// profileResponses follow from the measured transactions: the tail if they are paced, the bytes
// of a stream, otherwise the iterations.
func profileResponses(v param.Values) []record.Response {
	prog, err := newProgram(v.Str("profile"), v.Str("vars"))
	if err != nil {
		prog = &program{} // Roles refuses it; a study of an older tare can still be read
	}
	lat := func(name, help string) record.Response {
		return record.Response{Name: name, Unit: record.Second, Better: record.Lower, Help: help}
	}
	per := func(name, of, help string) record.Response {
		r := record.Response{Name: name, Unit: record.PerSecond, Better: record.Higher, Operation: of, Help: help}
		if prog.paced {
			r.Better = record.Neither
		}
		return r
	}
	latencies := []record.Response{lat("latency_p50", "median iteration of a transaction"), lat("latency_p99", "99th percentile"),
		lat("latency_p999", "99.9th percentile"), lat("latency_mean", "mean iteration")}
	rates := []record.Response{per("transactions", "transaction", "iterations of transactions, over all strands")}
	if prog.sends || prog.receives {
		through := record.Response{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher, Network: true, Operation: "byte",
			Help: "payload that the client wrote and read"}
		if prog.unheard() {
			through.Help = "payload that the server read, without what UDP lost"
		}
		if prog.paced {
			through.Better = record.Neither
		}
		if prog.oneWay() {
			rates = append([]record.Response{through}, rates...)
		} else {
			rates = append(rates, through)
		}
	}
	rates = append(rates, per("rate", "flowop", "flowops, as uperf counts them"))
	if prog.paced {
		latencies[0], latencies[1] = latencies[1], latencies[0]
		return append(latencies, rates...)
	}
	return append(rates, latencies...)
}

// profileSeries names the client's progress after its response. What a client sends by UDP is
// not a response: the throughput is what arrives.
func profileSeries(v param.Values, s record.Series) record.Series {
	prog, err := newProgram(v.Str("profile"), v.Str("vars"))
	s.Name = "transactions"
	if err == nil && prog.oneWay() {
		s.Name, s.Unit = "throughput", record.BytesPerSecond
		if prog.unheard() {
			s.Name, s.Labels = "sent", record.MakeLabels("end", "client")
			return s
		}
	}
	s.Labels = record.MakeLabels("end", "client", record.LabelResponse, s.Name)
	return s
}

// profileReading reads the client's report of a profile.
func (r *report) profileReading(v param.Values, rd *record.Reading) error {
	p := r.Profile
	if p == nil || r.Peer == nil || r.Config.Mode != modeProfile {
		return errors.New("the report of the net client has no profile, or lacks the server's report inside")
	}
	prog, err := newProgram(v.Str("profile"), v.Str("vars"))
	if err != nil {
		return fmt.Errorf("the profile that was run: %w", err)
	}
	if min(p.Iterations, p.Errors, p.Cut, p.RunBytes, p.RunOps, int64(p.Strands)) < 0 {
		return errors.New("the report of the net client has negative counts of its profile")
	}
	if !(p.RunWindow >= 1e-9 && p.RunWindow < 1e6) {
		return fmt.Errorf("the report of the net client: the measured time run_window_s = %g is out of range", p.RunWindow)
	}
	rd.Value("transactions", record.PerSecond, float64(p.Iterations)/r.Window)
	if prog.sends || prog.receives {
		through := float64(r.Bytes) / r.Window
		if prog.unheard() {
			rd.Value("sent", record.BytesPerSecond, through, "end", r.Endpoint)
			if got := r.Peer.Profile; got != nil && got.Received != nil { // a server of an older tare does not report it
				if *got.Received < 0 {
					return fmt.Errorf("the report of the net server: received is negative: %d", *got.Received)
				}
				through = float64(*got.Received) / r.Peer.Window
			}
		}
		rd.Value("throughput", record.BytesPerSecond, through)
	}
	if err := r.latencies(rd); err != nil { // and the rate
		return err
	}
	rd.Value("strands", record.Count, float64(p.Strands))
	rd.Value("errors", record.Count, float64(p.Errors))
	rd.Value("uperf_throughput", record.BytesPerSecond, float64(p.RunBytes)/p.RunWindow)
	rd.Value("uperf_rate", record.PerSecond, float64(p.RunOps)/p.RunWindow)
	if len(p.Transactions) > 100 || len(p.Flowops) > 9 {
		return errors.New("the report of the net client has more transactions or flowops than a profile")
	}
	for _, t := range p.Transactions {
		if !(t.Window >= 1e-9 && t.Window < 1e6) || t.Bytes < 0 || t.Operations < 0 || t.Iterations < 0 || t.N < 1 || t.N > 100 {
			return fmt.Errorf("the report of the net client: transaction %d is out of range: %+v", t.N, t)
		}
		n := strconv.Itoa(t.N)
		rd.Value("transaction_window", record.Second, t.Window, "transaction", n)
		rd.Value("transaction_bytes", record.Byte, float64(t.Bytes), "transaction", n)
		rd.Value("transaction_operations", record.Count, float64(t.Operations), "transaction", n)
	}
	return p.flowops(rd)
}

// flowops reads the latencies by type of flowop.
func (p *profileReport) flowops(rd *record.Reading) error {
	for _, f := range p.Flowops {
		op := uperf.Op(f.Op)
		if op.Peer() == op && op != uperf.Disconnect {
			return fmt.Errorf("the report of the net client has latencies of %q, which is not a flowop with latencies", f.Op)
		}
		if _, err := percentiles(rd, "flowop", f.Latency, "flowop", f.Op); err != nil {
			return fmt.Errorf("the latency histogram of %s: %w", op, err)
		}
	}
	return nil
}
