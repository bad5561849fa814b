package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/plan"
	"tare/record"
	"tare/site"
)

// start starts a real Prometheus that scrapes itself each second, and waits until it has.
func start(t *testing.T) *Server {
	t.Helper()
	program, err := filepath.Abs("../../.cache/tools/prometheus/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("there is no Prometheus; make setup-test takes one from its package")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_ = l.Close() // for the server
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: self, static_configs: [{targets: [%q]}]}]\n", at)
	if err := os.WriteFile(filepath.Join(dir, "p.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--config.file", filepath.Join(dir, "p.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", at)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	s := &Server{URL: "http://" + at, Scrape: time.Second}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got, err := s.Range(t.Context(), "up", time.Now().Add(-2*time.Second), time.Now()); err == nil && len(got) == 1 {
			return s
		}
	}
	t.Fatal("Prometheus has scraped nothing within a minute")
	return nil
}

// one is a session whose trials last for so long.
type one struct {
	site.Session
	lasts time.Duration
}

func (o one) Trials(_ context.Context, nexts []plan.Next) []record.Made {
	t := &record.Trial{Seq: nexts[0].Seq, Status: record.OK, Start: time.Now()}
	t.Phases = []record.Phase{{Name: "start", Duration: 500 * time.Millisecond}, {Name: "run", Offset: 500 * time.Millisecond, Duration: o.lasts}}
	time.Sleep(500*time.Millisecond + o.lasts)
	return []record.Made{{Trial: t}}
}

// TestTrials: a trial gets the points of its measured time, and no others, and the session waits for them.
func TestTrials(t *testing.T) {
	s := start(t)
	s.Queries = map[string]string{"up": `up{job="self"}`, "clock": "time()", "none": "nothing_has_this_name", "wrong": "sum("}
	began := time.Now()
	m := (&Session{one{lasts: 3 * time.Second}, s}).Trials(t.Context(), []plan.Next{{Seq: 1, Node: "n"}})[0]
	if took := time.Since(began); took < 5500*time.Millisecond {
		t.Errorf("it waited %s, not for two scrapes", took-3500*time.Millisecond)
	}
	values := map[string]record.Sample{}
	for _, x := range m.Samples {
		values[x.Name] = x
	}
	if x := values["prometheus_up"]; x.Value != 1 || x.Labels.Get("job") != "self" || strings.Contains(string(x.Labels), "__name__") {
		t.Errorf("%+v", x)
	}
	// The mean of the clock at each second of the window is its middle.
	if x, middle := values["prometheus_clock"], float64(m.Start.Add(2*time.Second).UnixMilli())/1e3; x.Value < middle-0.1 || x.Value > middle+0.1 {
		t.Errorf("clock %v, the middle of the measured time was %v", x.Value, middle)
	}
	for _, x := range m.Evidence.Series {
		if x.T[0] < 400*time.Millisecond || x.T[len(x.T)-1] > 3600*time.Millisecond || len(x.T) != len(x.V) || len(x.T) < 3 {
			t.Errorf("%s: at %v", x.Name, x.T)
		}
	}
	said := fmt.Sprint(m.Warnings)
	if len(m.Warnings) != 2 || !strings.Contains(said, "query none: no points between") || !strings.Contains(said, "query wrong: ") {
		t.Error(said)
	}
}

// TestSilent: queries without figures are found before a trial, also those that lack them for one node only. Each node is asked about
// only if the query names it.
func TestSilent(t *testing.T) {
	asked := map[string]int{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, series := r.FormValue("query"), ""
		asked[query]++
		switch query {
		case "up", "of n1":
			series = fmt.Sprintf(`{"metric":{},"values":[[%d,"1"]]}`, time.Now().Unix())
		case "sum(":
			_, _ = w.Write([]byte(`{"status":"error","error":"bad"}`))
			return
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, series)
	})}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	s := &Server{URL: "http://" + l.Addr().String(), Scrape: time.Minute, Queries: map[string]string{"here": "up", "gone": "down", "by_node": "of $node", "wrong": "sum("}}
	if got := strings.Join(s.Silent(t.Context(), []string{"n1", "n2"}), "; "); got != "by_node: of n2; gone: down" {
		t.Error(got)
	}
	if asked["up"] != 1 || asked["of n1"] != 1 || asked["of n2"] != 1 {
		t.Errorf("asked %v", asked)
	}
}

// TestNoPrometheus: what answers is something else, or nothing.
func TestNoPrometheus(t *testing.T) {
	answer := ""
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte(answer))
	})}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	s := &Server{URL: "http://" + l.Addr().String(), Scrape: time.Second, Token: "secret"}
	ask := func() error { _, err := s.Range(t.Context(), "up", time.Now(), time.Now()); return err }
	for _, answer = range []string{"<html>", `{"status":"success","data":{"resultType":"vector"}}`, `{"status":"success","data":{"resultType":"matrix","result":[{"values":[["x","1"]]}]}}`} {
		if err := ask(); !errors.Is(err, ErrAnswer) {
			t.Errorf("%s: %v", answer, err)
		}
	}
	answer = `{"status":"success","data":{"resultType":"matrix","result":[` + strings.Repeat(`{"values":[]},`, mostSeries) + `{"values":[]}]}}`
	if err := ask(); err == nil || !strings.Contains(err.Error(), "65 series; aggregate") {
		t.Error(err)
	}
	answer = strings.Repeat(" ", maxAnswer+1)
	if err := ask(); err == nil || !strings.Contains(err.Error(), "more than 16 MiB") {
		t.Error(err)
	}
	s.Token = ""
	if err := ask(); err == nil || !strings.Contains(err.Error(), "--prometheus-token-file") {
		t.Error(err)
	}
}

// FuzzParse: no answer makes figures that are not finite, or times that go back.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up","job":"a,b=c"},"values":[[1,"1"],[2,"NaN"],[0.5,"3"],[3,"+Inf"]]}]}}`))
	f.Add([]byte(`{"status":"error","error":"bad"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		series, err := parse(text, time.Unix(0, 0))
		if err != nil {
			return
		}
		for _, s := range series {
			for i := range s.T {
				if s.T[i] < 0 || i > 0 && s.T[i] <= s.T[i-1] || s.V[i]-s.V[i] != 0 {
					t.Fatalf("%+v", s)
				}
			}
		}
	})
}
