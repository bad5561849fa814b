package workloadtest

import (
	"net"
	"strings"
	"testing"

	"tare/param"
	"tare/workload"
)

// Fill returns the values with the workload's defaults for the others.
func Fill(t testing.TB, w workload.Workload, v param.Values) param.Values {
	t.Helper()
	v, err := param.Fill(w.Params(), v)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Parse parses the text as a role's output and returns the samples by name, those with labels by
// "name{labels}".
func Parse(t testing.TB, w workload.Workload, role string, v param.Values, text string) (map[string]float64, error) {
	t.Helper()
	r, err := w.Parse(role, Fill(t, w, v), strings.NewReader(text))
	out := map[string]float64{}
	for _, s := range r.Samples {
		name := s.Name
		if s.Labels != "" {
			name += "{" + string(s.Labels) + "}"
		}
		out[name] = s.Value
	}
	return out, err
}

// FreePort returns a TCP port of the loopback interface that nobody listens on.
func FreePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
