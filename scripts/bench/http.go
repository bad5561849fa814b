package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"tare/host/network"
)

// httpPort is where nginx listens, in a network namespace of its own.
const httpPort = 8080

// http compares the HTTP driver with wrk, both loading nginx between two namespaces on tare's bridge, nginx on one
// processor and the client on another. Then it says how late the driver's open loop sends at half the driver's own rate.
func (b *bench) http(ctx context.Context) (_ []row, err error) {
	for _, p := range []string{"nginx", "wrk"} {
		if _, err := exec.LookPath(p); err != nil {
			return nil, fmt.Errorf("%w; install %s", err, p)
		}
	}
	bridge, err := network.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bridge.Close()) }()
	name := "bench" + strconv.FormatInt(int64(os.Getpid()), 36)
	w := webWire{wire: wire{tare: b.tare, last: min(1, runtime.NumCPU()-1)}, dir: b.work}
	if w.server, err = bridge.Attach(name + "a"); err != nil {
		return nil, err
	}
	if w.client, err = bridge.Attach(name + "b"); err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`daemon off; master_process off; worker_processes 1; pid %[1]s/nginx.pid; error_log stderr crit;
events { worker_connections 1024; }
http { access_log off; keepalive_requests 100000000; client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
server { listen %[2]d; location / { return 200 "%[3]s"; } } }
`, w.dir, httpPort, strings.Repeat("x", webBody))
	if err := os.WriteFile(w.config(), []byte(config), 0o600); err != nil {
		return nil, err
	}
	rounds := b.wants(6)
	var cores, rates, achieved []pair
	var late, woke []float64
	for i := range rounds {
		var ours, peer webReport
		one := func(what string, r *webReport) func() error {
			return func() (err error) { *r, err = w.load(ctx, what, "--connections", "16"); return err }
		}
		turns := []func() error{one("loop", &ours), one("closed", &peer)}
		if i%2 == 1 {
			turns[0], turns[1] = turns[1], turns[0]
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return nil, err
			}
		}
		cores = append(cores, pair{ours.perCore(), peer.perCore()})
		rates = append(rates, pair{ours.rate(), peer.rate()})
		rate := ours.rate() / 2
		// So many that no request has to wait for one while nginx has no processor.
		open, err := w.load(ctx, "open", "--connections", "256", "--rate", strconv.FormatFloat(rate, 'f', 0, 64))
		if err != nil {
			return nil, err
		}
		achieved = append(achieved, pair{open.rate(), rate})
		late, woke = append(late, open.Send.P99), append(woke, open.Wake.P99)
	}
	return []row{
		row{Figure: "HTTP driver, closed loop: requests per second of its processor time", Unit: "1/s"}.beside("ratio", "wrk", cores).atLeast(1),
		row{Figure: "HTTP driver, closed loop: requests a second", Unit: "1/s"}.beside("ratio", "wrk", rates).atLeast(1),
		row{Figure: "HTTP driver, open loop at half that rate: achieved beside asked", Unit: "1/s"}.beside("ratio", "the rate asked for", achieved).atLeast(0.999),
		row{Figure: "HTTP driver, open loop at half that rate: time from due to sent, p99", Unit: "s", Tare: median(late), Rounds: rounds}.below(50e-6),
		{Figure: "the same, of requests before which it slept", Unit: "s", Tare: median(woke), Rounds: rounds},
	}, nil
}

// webBody is the bytes of an answer's body.
const webBody = 128

// webWire is a wire with nginx at the server's end.
type webWire struct {
	wire
	dir string
}

func (w webWire) config() string { return filepath.Join(w.dir, "nginx.conf") }

// load runs one load of `tare internal http`; closed is wrk.
func (w webWire) load(ctx context.Context, what string, args ...string) (r webReport, err error) {
	out, err := w.between(ctx, []session{{
		port:   httpPort,
		server: []string{"nginx", "-p", w.dir, "-c", w.config()},
		client: append([]string{
			w.tare, "internal", "http", what, "--url", fmt.Sprintf("http://%s:%d/", w.server.Addr.Addr(), httpPort), "--size", strconv.Itoa(webBody),
			"--warmup", fmt.Sprintf("%ds", warm), "--duration", fmt.Sprintf("%ds", measured),
		}, args...),
	}})
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(out[0], &r); err != nil {
		return r, fmt.Errorf("the report of the http client: %w", err)
	}
	if r.Window <= 0 || r.Requests <= 0 || r.User+r.System <= 0 {
		return r, errors.New("the report of the http client has no requests, or no processor time")
	}
	return r, nil
}

// webReport is what is used of the driver's report.
type webReport struct {
	Window   float64 `json:"window_s"`
	Requests float64 `json:"requests"`
	User     float64 `json:"cpu_user_s"`
	System   float64 `json:"cpu_system_s"`
	Send     struct {
		P99 float64 `json:"p99"`
	} `json:"send_delay_s"`
	Wake struct {
		P99 float64 `json:"p99"`
	} `json:"wake_delay_s"`
}

func (r webReport) rate() float64    { return r.Requests / r.Window }
func (r webReport) perCore() float64 { return r.Requests / (r.User + r.System) }
