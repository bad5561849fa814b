package httpload

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/record"
	"tare/workload/output"
)

// Kinds of load.
const (
	Closed = "closed"
	Open   = "open"
	Wrk    = "wrk" // a closed loop by the program wrk, for which the client needs the image WrkImage
)

// What a load of the kind Wrk needs.
const (
	WrkImage = "wrk"                  // the client's root file system
	WrkEnd   = 300 * time.Millisecond // after the measured time: wrk's threads look every 100 ms whether it is over
)

// Bounds of a Loop.
const (
	MaxConnections = maxConnections
	MaxRate        = maxRate
)

// anyBody stands for answers whose length is not known beforehand.
const anyBody = -1

// Loop is load on a server of any kind, by this program itself or by wrk. The former needs no
// other program in the client's sandbox. Each answer must have the status 200.
type Loop struct {
	Kind        string   // Closed, Open or Wrk
	URL         string   // http://HOST:PORT/PATH, or https:// with TLS
	Hosts       []string // names for the header Host, which requests take in turn; none: the URL's
	Body        int64    // bytes of every answer's body; 0: not known. Wrk needs it, but for Each
	Each        []string // URLs without ports that requests take in turn, in the place of URL and Hosts; the name of the host is also that of TLS
	At          string   // the host that has them all
	Ports       [2]int   // of At: for http, and for https
	Connections int
	Threads     int           // Wrk; they share the connections evenly
	Delay       time.Duration // Wrk: the longest pause before a request; pauses are drawn evenly
	Rate        float64       // requests a second; Open
	KeepAlive   bool          // a connection serves many requests
	Warmup      time.Duration
	Duration    time.Duration
	Timeout     time.Duration // of one answer
	TLS         *TLS          // nil: plain HTTP
}

// Args is the client's command.
func (l Loop) Args() []string {
	what, size := "loop", l.Body
	if l.Kind == Wrk {
		what = Closed
	}
	if size == 0 {
		size = anyBody
	}
	args := []string{"/tare", "internal", "http", what, "--url", l.URL, "--size", strconv.FormatInt(size, 10),
		"--connections", strconv.Itoa(l.Connections), "--keep-alive=" + strconv.FormatBool(l.KeepAlive),
		"--warmup", l.Warmup.String(), "--duration", l.Duration.String(), "--timeout", l.Timeout.String()}
	switch l.Kind {
	case Open:
		args = append(args, "--rate", strconv.FormatFloat(l.Rate, 'f', -1, 64))
	case Wrk:
		args = append(args, "--threads", strconv.Itoa(l.Threads), "--delay", l.Delay.String())
	}
	if len(l.Each) > 0 {
		args = append(args, "--each", strings.Join(l.Each, " "), "--at", l.At, "--ports", fmt.Sprintf("%d,%d", l.Ports[0], l.Ports[1]))
	}
	if len(l.Hosts) > 0 {
		args = append(args, "--hosts", strings.Join(l.Hosts, ","))
	}
	if l.TLS != nil {
		args = append(args, "--resume="+strconv.FormatBool(l.TLS.Resume), "--trust", l.TLS.Trust, "--server-name", l.TLS.Name)
	}
	return args
}

// throughput is not known where answers differ in length.
const throughput = "throughput"

// reportKind is the kind of load that a report names.
func reportKind(kind string) string {
	if kind == Wrk {
		return Closed
	}
	return kind
}

// LoopResponses are the responses of a Loop of that kind, with TLS or without. Wrk does not time
// its handshakes.
func LoopResponses(kind string, secure bool) []record.Response {
	all := Workload{}.Responses(map[string]string{"load": reportKind(kind)})
	if secure && kind != Wrk {
		all = append(all, handshake())
	}
	return slices.DeleteFunc(all, func(r record.Response) bool { return r.Name == throughput })
}

// ParseLoop reads what the client of a Loop of that kind printed.
func ParseLoop(kind string, secure bool, out io.Reader) (record.Reading, error) {
	r, err := output.JSON[report](out)
	if err != nil {
		return record.Reading{}, fmt.Errorf("the report of the http client: %w", err)
	}
	if (secure && kind != Wrk) != (r.TLS != nil) {
		return record.Reading{}, errors.New("the report of the http client: its handshakes are not those of the load that was asked for")
	}
	rd, err := r.reading(reportKind(kind))
	rd.Samples = slices.DeleteFunc(rd.Samples, func(s record.Sample) bool { return s.Name == throughput || s.Name == "bytes" })
	return rd, err
}
