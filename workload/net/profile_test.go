package netload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/param"
)

// group writes one group of a profile; each text is a transaction's attributes, a
// bar, and its flowops, parted by semicolons: "iterations=2|write size=4k; read size=4k".
func groupText(strands int, transactions ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<group nthreads=%d>\n", strands)
	for _, t := range transactions {
		attrs, ops, _ := strings.Cut(t, "|")
		fmt.Fprintf(&b, "<transaction %s>\n", attrs)
		for op := range strings.SplitSeq(ops, ";") {
			name, options, _ := strings.Cut(strings.TrimSpace(op), " ")
			if name == "connect" || name == "accept" {
				options = "remotehost=$h " + options
				if !strings.Contains(options, "protocol") {
					options += " protocol=tcp"
				}
			}
			fmt.Fprintf(&b, "<flowop type=%s options=\"%s\"/>\n", name, options)
		}
		b.WriteString("</transaction>\n")
	}
	b.WriteString("</group>\n")
	return b.String()
}

func profileText(groups ...string) string {
	return "<profile name=test>" + strings.Join(groups, "") + "</profile>"
}

// playProfile runs a profile against the server and wants both ends to agree.
func playProfile(t *testing.T, port int, text string) *report {
	t.Helper()
	r, code, errs := runClientArgs(t.Context(), port, "--profile-text", text)
	if code != 0 {
		t.Fatalf("exit code %d: %s\n%s", code, errs, text)
	}
	for _, w := range r.Warnings {
		if w.Code == "net-ends-differ" {
			t.Errorf("%s\n%s", w.Text, text)
		}
	}
	if r.Profile == nil || r.Peer == nil || r.Peer.Profile == nil {
		t.Fatalf("an incomplete report: %+v", r)
	}
	return r
}

// TestFlowops: counts and bytes of every flowop at both ends. What is measured is
// the transaction of most flowops.
func TestFlowops(t *testing.T) {
	port, _ := startServer(t)
	const open, end = "|connect tcp_nodelay", "|disconnect"
	for _, c := range []struct {
		name                string
		text                string
		bytes, ops, peerOps int64 // peerOps, of the whole session; 0: not looked at
	}{
		{"write", profileText(groupText(2, open, "iterations=5|write size=4k count=3", end)), 2 * 5 * 3 * 4096, 30, 34},
		{"read", profileText(groupText(2, open, "iterations=5|read size=4k count=3", end)), 2 * 5 * 3 * 4096, 30, 34},
		{"send and recv", profileText(groupText(1, open, "iterations=4|send size=100; recv size=7", end)), 4 * 107, 8, 10},
		{"more than a buffer", profileText(groupText(1, open, "iterations=2|write size=9m; read size=1", end)), 2 * (9<<20 + 1), 4, 6},
		{"buffers of the socket", profileText(groupText(1, "|connect wndsz=8k", "iterations=3|write size=1m; read size=1m", end)), 6 << 20, 6, 8},
		{"accept", profileText(groupText(3, "|accept tcp_nodelay", "iterations=5|write size=64; read size=64", end)), 3 * 5 * 128, 30, 36},
		{"named", profileText(groupText(1, "|connect conn=1; accept conn=2; connect", "iterations=2|write conn=1 size=10; read conn=2 size=20; write size=1; write conn=2 size=5", "|disconnect conn=2; disconnect; disconnect conn=1")),
			72, 8, 14},
		{"connections", profileText(groupText(2, "iterations=20|connect; write size=10; read size=10; disconnect")), 800, 160, 160},
		{"many open", profileText(groupText(2, "iterations=10|connect; nop count=2", "iterations=10|disconnect")), 0, 60, 80},
		{"udp", profileText(groupText(2, "|connect protocol=udp", "iterations=10|write size=500; read size=60000", end)), 2 * 10 * 60500, 40, 44},
		{"udp accept", profileText(groupText(1, "|accept protocol=udp", "iterations=5|send size=9; recv size=9", end)), 90, 10, 12},
		{"udp again and again", profileText(groupText(2, "iterations=5|connect protocol=udp; write size=3; read size=3; disconnect")), 60, 40, 40},
		{"rsize of a count", profileText(groupText(1, open, "iterations=4|write count=10 size=8k rsize=16k; read count=10 size=8k rsize=30k", end)), 4 * 160 << 10, 80, 4*(5+3) + 2},
		{"rsize of iterations", profileText(groupText(1, open, "iterations=10|write size=8k rsize=32k", end)), 80 << 10, 10, 0},
		{"think", profileText(groupText(1, open, "iterations=3|think duration=2m; think duration=1m busy count=2; nop", end)), 0, 12, 14},
		{"two groups", profileText(groupText(1, open, "iterations=9|write size=1k", end), groupText(2, "iterations=1|connect; write size=10; disconnect")), 9 << 10, 9, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := playProfile(t, port, c.text)
			if r.Bytes != c.bytes {
				t.Errorf("%d bytes, want %d", r.Bytes, c.bytes)
			}
			if r.Operations != c.ops {
				t.Errorf("%d operations, want %d", r.Operations, c.ops)
			}
			if c.peerOps > 0 && r.Peer.TotalOperations != c.peerOps {
				t.Errorf("%d operations of the peer, want %d", r.Peer.TotalOperations, c.peerOps)
			}
			if r.Profile.Errors != 0 || r.Latency == "" {
				t.Errorf("%d errors, latencies %q", r.Profile.Errors, r.Latency)
			}
		})
	}
}

// TestRandomSizes: the writer draws, the reader takes what comes.
func TestRandomSizes(t *testing.T) {
	port, _ := startServer(t)
	for _, text := range []string{
		profileText(groupText(2, "|connect", "iterations=50|write size=rand(10,2000); read size=rand(1,100)", "|disconnect")),
		profileText(groupText(2, "|connect", "duration=200ms|write size=rand(10,2000)", "|disconnect")),
		profileText(groupText(1, "iterations=10|connect; write size=rand(1k,64k); disconnect")),
		profileText(groupText(1, "|connect protocol=udp", "iterations=50|write size=rand(10,2000); read size=rand(1,100)", "|disconnect")),
	} {
		if r := playProfile(t, port, text); r.Bytes < 10*r.Profile.Iterations {
			t.Errorf("%d bytes in %d iterations", r.Bytes, r.Profile.Iterations)
		}
	}
}

// TestCutStreams: a duration ends wherever the strands are; what follows on the
// same connections finds them in order.
func TestCutStreams(t *testing.T) {
	port, _ := startServer(t)
	for _, body := range []string{"write size=64k count=100", "read size=64k", "write size=1m rsize=2m", "read size=100 rsize=64k", "write size=10; read size=10"} {
		r := playProfile(t, port, profileText(groupText(2, "|connect", "duration=150ms|"+body, "iterations=20|write size=33; read size=44", "|disconnect")))
		if got := r.Profile.Transactions; len(got) != 4 || !got[1].Measured || got[2].Measured || got[2].Bytes != 2*20*77 || got[1].Bytes == 0 {
			t.Errorf("%s: %+v", body, got)
		}
		if r.Window < 0.15 {
			t.Errorf("%s: the window is %gs, want the duration", body, r.Window)
		}
	}
	// Whole iterations where connections come and go.
	for _, body := range []string{"connect; write size=10; read size=10; disconnect", "accept; write size=10; disconnect"} {
		r := playProfile(t, port, profileText(groupText(2, "duration=150ms|"+body, "iterations=3|connect; write size=5; disconnect")))
		if r.Profile.Transactions[1].Operations != 18 {
			t.Errorf("%s: %+v", body, r.Profile.Transactions)
		}
	}
}

// TestLockstep: the second transaction of a group waits for the first of all.
func TestLockstep(t *testing.T) {
	port, _ := startServer(t)
	r := playProfile(t, port, profileText(
		groupText(1, "|think duration=300ms", "|think duration=1ms"),
		groupText(1, "|connect", "iterations=10|write size=1", "|disconnect")))
	tx := r.Profile.Transactions
	if len(tx) != 3 || tx[0].Window < 0.3 || !tx[1].Measured || tx[1].Operations != 11 {
		t.Errorf("%+v", tx)
	}
}

// TestRate: each iteration that was due is there, on time or late or as unsent.
func TestRate(t *testing.T) {
	port, _ := startServer(t)
	// The last one is under way when the time is over, while others are due.
	for _, body := range []string{"write size=10; read size=10", "read size=10", "write size=10; think duration=400ms"} {
		r := playProfile(t, port, profileText(groupText(2, "|connect", "duration=500ms rate=100|"+body, "|disconnect")))
		h, err := hdrhistogram.Decode([]byte(r.Latency))
		if err != nil || h.TotalCount() < 98 || h.TotalCount() > 102 {
			t.Errorf("%s: %v iterations, %v; want the 100 that were due", body, h.TotalCount(), err)
		}
	}
}

// TestFailures: what may fail is counted, what may not ends the session with the
// flowop's line.
func TestFailures(t *testing.T) {
	port, _ := startServer(t)
	text := func(canfail string) string {
		return profileText(groupText(1, "iterations=3|connect; disconnect; disconnect "+canfail))
	}
	r := playProfile(t, port, text("canfail"))
	if r.Profile.Errors != 3 || r.Operations != 6 || len(r.Warnings) == 0 || r.Warnings[0].Code != "net-errors" {
		t.Errorf("%d errors, %d operations, %v", r.Profile.Errors, r.Operations, r.Warnings)
	}
	_, code, errs := runClientArgs(t.Context(), port, "--profile-text", text(""))
	if code != 1 || !strings.Contains(errs, "line 5") || !strings.Contains(errs, "is not open") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	_, code, errs = runClientArgs(t.Context(), port, "--profile-text",
		profileText(groupText(1, "|connect", "iterations=1|think duration=200m; read size=1 timeout=20", "|disconnect")))
	if code != 0 {
		t.Errorf("data that was there in time: exit code %d: %s", code, errs)
	}
	// The peer's counterpart of nop sends nothing: the datagram never comes.
	_, code, errs = runClientArgs(t.Context(), port, "--timeout", "400ms", "--profile-text",
		profileText(groupText(1, "|connect protocol=udp", "iterations=2|recv size=1 non_blocking count=1000000", "|disconnect")))
	if code != 1 || !strings.Contains(errs, "non_blocking") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// TestShippedProfiles runs every one of studies/profiles, and reads what comes out.
func TestShippedProfiles(t *testing.T) {
	files, err := filepath.Glob("../../studies/profiles/*.xml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: no profiles", err)
	}
	port, _ := startServer(t)
	for _, f := range files {
		vars, ok := shippedVars()[strings.TrimSuffix(filepath.Base(f), ".xml")]
		if !ok {
			t.Errorf("%s: no variables for it here", f)
			continue
		}
		r, code, errs := runClientArgs(t.Context(), port, "--profile", f, "--vars", vars)
		if code != 0 || r.Profile.Errors != 0 || r.Profile.Iterations == 0 {
			t.Errorf("%s: exit code %d: %s", f, code, errs)
		}
	}
}

func shippedVars() map[string]string {
	return map[string]string{
		"request-response": "nthr=2 size=90 duration=600ms",
		"stream":           "nthr=2 duration=600ms",
		"connections":      "nthr=2 iterations=200",
		"voice":            "calls=4 duration=600ms",
	}
}

// TestUnheard: what is sent one way by UDP counts as throughput where it arrives, and
// what was sent is told beside it.
func TestUnheard(t *testing.T) {
	const pour = "|connect protocol=udp"
	port, _ := startServer(t)
	for name, c := range map[string]struct {
		text string
		all  int64 // bytes, where so few are sent that the sockets hold them all
	}{
		"by count": {text: profileText(groupText(2, pour, "iterations=5|write size=100 count=3", "|disconnect")), all: 2 * 5 * 3 * 100},
		"by time":  {text: profileText(groupText(4, pour+" wndsz=4k", "duration=300ms|write size=2k", "|disconnect"))},
	} {
		r := playProfile(t, port, c.text)
		got := r.Peer.Profile.Received
		if got == nil || *got <= 0 || *got > r.Bytes || *got > r.Peer.TotalReceived || c.all > 0 && *got != c.all {
			t.Fatalf("%s: sent %d, the server read %d in all and %v measured; all: %d", name, r.Bytes, r.Peer.TotalReceived, got, c.all)
		}
		lossy := func(received *int64) param.Values {
			r.Peer.Profile.Received = received
			b, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			v, err := param.Fill(Workload{}.Params(), param.Values{"profile": c.text})
			if err != nil {
				t.Fatal(err)
			}
			rd, err := Workload{}.Parse("client", v, bytes.NewReader(b))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			out := param.Values{}
			for _, s := range rd.Samples {
				if s.Labels == "" && s.Name == "throughput" || s.Name == "sent" {
					out[s.Name] = fmt.Sprint(s.Value)
				}
			}
			for _, s := range rd.Series {
				if s.Name == "throughput" {
					t.Errorf("%s: a series of what was sent has the name of what arrived", name)
				}
			}
			return out
		}
		sent := fmt.Sprint(float64(r.Bytes) / r.Window)
		less := *got / 2
		if have := lossy(&less); have["sent"] != sent || have["throughput"] != fmt.Sprint(float64(less)/r.Peer.Window) {
			t.Errorf("%s: %v", name, have)
		}
		if have := lossy(nil); have["sent"] != sent || have["throughput"] != sent { // of an older tare
			t.Errorf("%s: without the server's word: %v", name, have)
		}
	}
	// What both read and write, and TCP, is as it was.
	for _, text := range []string{groupText(1, pour, "|write size=10; read size=10"), groupText(1, "|connect", "|write size=10")} {
		p, err := newProgram(profileText(text), "")
		if err != nil || p.unheard() {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// TestEmptyProfile: a file with nothing in it is no profile, and not the workload
// without one.
func TestEmptyProfile(t *testing.T) {
	f := filepath.Join(t.TempDir(), "empty.xml")
	if err := os.WriteFile(f, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, code, errs := runClientArgs(t.Context(), 1, "--profile", f); code != 2 || !strings.Contains(errs, "empty.xml:1:1: ") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// TestManyStrands: more threads than a machine has processors.
func TestManyStrands(t *testing.T) {
	port, _ := startServer(t)
	r := playProfile(t, port, profileText(groupText(300, "|connect", "iterations=3|write size=10; read size=10", "|disconnect")))
	if r.Operations != 1800 || r.Profile.Strands != 300 {
		t.Errorf("%d operations of %d strands", r.Operations, r.Profile.Strands)
	}
}

// TestProfileDeadPeer kills either end in the middle: the other ends soon, by
// itself.
func TestProfileDeadPeer(t *testing.T) {
	text := profileText(groupText(2, "|connect", "duration=30s|write size=10; read size=10", "|disconnect"))
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		port, stop := startServer(t)
		time.AfterFunc(500*time.Millisecond, func() { stop(sig) })
		start := time.Now()
		_, code, errs := runClientArgs(t.Context(), port, "--profile-text", text)
		if code != 1 || len(strings.Fields(errs)) < 6 {
			t.Errorf("%v: exit code %d: %s", sig, code, errs)
		}
		if d := time.Since(start); d > 28*time.Second { // the transaction alone has 30
			t.Errorf("%v: it took %v", sig, d)
		}
	}
	// A client that goes leaves a server that serves the next.
	port, stop := startServer(t)
	c := driver(t.Context(), "client", "--server", "127.0.0.1", "--port", fmt.Sprint(port), "--profile-text", text)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	_ = c.Process.Kill()
	_ = c.Wait()
	for range 50 {
		if _, code, _ := runClientArgs(t.Context(), port, "--profile-text", profileText(groupText(1, "|connect; write size=1; disconnect"))); code == 0 {
			if code, out := stop(syscall.SIGTERM); code != 0 {
				t.Errorf("the server ended with %d: %s", code, out)
			}
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("the server serves nobody after a client that died")
}

// TestProfileOverTheWire: what no client of ours sends.
func TestProfileOverTheWire(t *testing.T) {
	port, _ := startServer(t)
	good := strings.ReplaceAll(profileText(groupText(1, "|connect; write size=1; disconnect")), "\"", "\\\"")
	good = strings.ReplaceAll(good, "\n", " ")
	for _, lines := range []string{
		`{"version":1,"mode":"profile","profile":"nonsense","timeout_s":1}`,
		`{"version":1,"mode":"profile","timeout_s":1}`,
		`{"version":2,"mode":"profile","profile":"` + good + `","timeout_s":1}`,
		`{"version":1,"mode":"profile","profile":"` + good + `","timeout_s":1}`,
		`{"version":1,"mode":"profile","profile":"` + good + `","timeout_s":1,"listen":[{"tcp":-7}]}`,
		`{"version":1,"mode":"profile","profile":"` + good + `","timeout_s":1,"listen":[{}]}` + "\n" + `{"op":"finish","n":7}`,
		`{"version":1,"mode":"profile","profile":"` + good + `","timeout_s":1,"listen":[{}]}` + "\n" + `{"op":"transaction","n":4}`,
	} {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, lines+"\n")
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		b, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(b), `"error"`) {
			t.Errorf("%s: answer %q, %v", lines, b, err)
		}
		_ = c.Close()
	}
}

// TestProfileRefused: before anything runs, with the line.
func TestProfileRefused(t *testing.T) {
	for _, c := range []struct{ text, vars, want string }{
		{profileText(groupText(1, "|write size=4k")), "", "line 3, column 1: write has no connection without a name; connect or accept"},
		{profileText(groupText(1, "|connect conn=2", "|disconnect")), "", "line 6, column 1: disconnect has no connection"},
		{profileText(groupText(1, "|connect protocol=udp; write size=64k")), "", "line 4, column 34: 65536 bytes do not fit"},
		{profileText(groupText(1, "|connect; write conn=2 size=4k")), "", "line 4, column 34: write has no connection conn=2;"},
		{profileText(groupText(2, "|connect port=5000")), "", "several strands would listen on port 5000"},
		{profileText(groupText(1, "|connect port=5000"), groupText(1, "|connect port=5000")), "", "several strands"},
		{profileText(groupText(1000, "|nop"), groupText(25, "|nop")), "", "more than 1024 strands"},
		{profileText(groupText(1, "duration=3000s|nop", "duration=3000s|nop")), "", "at most 1h"},
		{profileText(groupText(1, "|nop count=$n")), "", "line 3, column 33: the variable $n has no value"},
		{profileText(groupText(1, "|nop")), "n=3", "no variable $n; it has no variables, so remove vars"},
		{profileText(groupText(1, "|nop count=$n")), "n=3 z=3", "no variable $z; it has n"},
		{profileText(groupText(1, "|nop count=$n")), "n", "is not name=value"},
		{profileText(groupText(1, "|nop count=$n")), "n=1 N=2", "given twice"},
		{strings.Repeat(" ", maxProfileText+1), "", "at most 65536"},
	} {
		if _, err := newProgram(c.text, c.vars); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q\n%.200s", err, c.want, c.text)
		}
	}
	v, err := param.Fill(Workload{}.Params(), param.Values{"profile": profileText(groupText(1, "|nop")), "connections": "4", "rate": "7"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Workload{}).Roles(v); err == nil || !strings.Contains(err.Error(), "connections, rate have no effect with a profile") {
		t.Errorf("%v", err)
	}
}

// TestProfileResponses: the first response is what the profile is about.
func TestProfileResponses(t *testing.T) {
	for body, want := range map[string]string{
		"duration=1s|write size=1; read size=1":           "transactions",
		"duration=1s|write size=1":                        "throughput",
		"duration=1s rate=5|write size=1":                 "latency_p99",
		"iterations=5|think duration=1ms":                 "transactions",
		"iterations=100|connect; disconnect; nop count=9": "transactions",
	} {
		v := param.Values{"profile": profileText(groupText(1, "|connect", body))}
		if got := (Workload{}).Responses(v)[0].Name; got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// FuzzProgram: what the network brings as a profile is refused in words, or becomes
// bounded work.
func FuzzProgram(f *testing.F) {
	for name, vars := range shippedVars() {
		f.Add(shipped(name), vars)
	}
	f.Add(profileText(groupText(1, "|connect", "iterations=2000000000|write size=2g count=1000000000 rsize=2g")), "")
	f.Fuzz(func(t *testing.T, text, vars string) {
		p, err := newProgram(text, vars)
		if err != nil {
			return
		}
		if len(p.strands) < 1 || len(p.strands) > maxStrands || p.expect() < 0 || p.expect() > maxTime || p.patience() < 0 {
			t.Fatalf("%d strands, %v, %v", len(p.strands), p.expect(), p.patience())
		}
		for i := range p.Groups {
			for _, master := range []bool{true, false} {
				ts := tasks(&p.Groups[i], master)
				if b := bufferOf(ts, len(p.strands)); b < 64 || b > maxBuffer {
					t.Fatalf("a buffer of %d bytes", b)
				}
				for _, task := range ts {
					for _, s := range task.steps {
						if s.count < 1 || s.size < 0 || s.last < 0 || s.last > s.size || task.iterations < 0 {
							t.Fatalf("%+v of %+v", s, task)
						}
					}
				}
			}
		}
	})
}

// shipped is the text of a profile of studies/profiles.
func shipped(name string) string {
	b, err := os.ReadFile("../../studies/profiles/" + name + ".xml")
	if err != nil {
		panic(err)
	}
	return string(b)
}
