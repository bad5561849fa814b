package density

import (
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
)

func role(t *testing.T, d density, v param.Values) (workload.Role, error) {
	t.Helper()
	v, err := param.Fill(d.Params(), v)
	if err != nil {
		t.Fatal(err)
	}
	roles, err := d.Roles(v)
	if err != nil {
		return workload.Role{}, err
	}
	return roles[0], nil
}

// TestData: a small host gets smaller servers, and never more than it can hold.
func TestData(t *testing.T) {
	const gb = int64(1e9)
	for _, c := range []struct {
		host  int64
		count int
		data  string
		want  int64 // 0: refused
	}{
		{64 * gb, 5, "auto", gb},
		{10 * gb, 5, "auto", gb},
		{8 * gb, 5, "auto", gb * 8 / 10},
		{8 * gb, 3, "auto", gb}, // there is room for 1.33 GB each
		{1 * gb, 500, "auto", 1e6},
		{0, 500, "auto", gb}, // not known
		{8 * gb, 3, "2GB", 2 * gb},
		{8 * gb, 4, "2GB", 0},
		{8 * gb, 5, "1MiB", 1 << 20},
	} {
		d := density{func() int64 { return c.host }}
		r, err := role(t, d, param.Values{"program": "redis", "count": strconv.Itoa(c.count), "data": c.data})
		if c.want == 0 {
			if err == nil || !strings.Contains(err.Error(), "data = 2GB") || !strings.Contains(err.Error(), "count = 4") {
				t.Errorf("%+v: %v, want it refused by name", c, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		var keys, size int64
		if _, err := fmt.Sscanf(r.Probe.Send, "DEBUG POPULATE %d key %d\r\n", &keys, &size); err != nil {
			t.Fatalf("%q: %v", r.Probe.Send, err)
		}
		if got := keys * size; got > c.want || float64(got) < 0.98*float64(c.want)-valueClass {
			t.Errorf("%+v: %d keys of %d bytes are %d", c, keys, size, got)
		}
	}
}

func TestDataIsSaid(t *testing.T) {
	d := density{func() int64 { return 4e9 }}
	v, _ := param.Fill(d.Params(), param.Values{"program": "redis"})
	for per, want := range map[int64][]string{420e6: {"data-scaled"}, 100e6: {"data-scaled", "data-unseen"}} {
		r, err := d.Parse("main", v, strings.NewReader(host(5, per, 0, nil)))
		if err != nil {
			t.Fatal(err)
		}
		var codes []string
		for _, w := range r.Warnings {
			codes = append(codes, w.Code)
		}
		i := slices.IndexFunc(r.Samples, func(s record.Sample) bool { return s.Name == "data" })
		if !slices.Equal(codes, want) || i < 0 || r.Samples[i].Value != 400e6 {
			t.Errorf("%d B each: warnings %v, want %v; samples %+v", per, codes, want, r.Samples)
		}
	}
}

// TestPrograms: services are waited for by asking them; what only waits says a
// line that begins with x.
func TestPrograms(t *testing.T) {
	for _, program := range []string{"pause", "sleep", "node", "ruby", "redis"} {
		r, err := role(t, density{func() int64 { return 0 }}, param.Values{"program": program})
		if err != nil {
			t.Fatal(err)
		}
		if serves := program != "pause" && program != "sleep"; serves != (r.Probe != nil) || serves != (r.Image == program) || r.Mode != workload.Idle {
			t.Errorf("%s: %+v", program, r)
		}
	}
}

// TestSleepSaysX runs the command of sleep: the shell is gone, the line is there.
func TestSleepSaysX(t *testing.T) {
	r, err := role(t, density{func() int64 { return 0 }}, param.Values{"program": "sleep"})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), r.Args[0], r.Args[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("there is no shell: %v", err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	b := make([]byte, 16)
	if n, err := out.Read(b); err != nil || string(b[:n]) != "x\n" {
		t.Errorf("it prints %q, %v", b[:n], err)
	}
}

// TestRedisIsFilled asks a real redis-server the probe's question: it then uses
// what was asked for.
func TestRedisIsFilled(t *testing.T) {
	server, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed")
	}
	const data = 20e6
	r, err := role(t, density{func() int64 { return 0 }}, param.Values{"program": "redis", "data": "20MB"})
	if err != nil {
		t.Fatal(err)
	}
	socket := t.TempDir() + "/s"
	args := append(slices.Clone(r.Args[1:]), "--port", "0", "--unixsocket", socket, "--dir", t.TempDir())
	cmd := exec.CommandContext(t.Context(), server, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	before := used(t, ask(t, socket, "INFO memory\r\n", "\r\nmem_fragmentation_bytes"))
	for range 2 { // asked again, nothing is added
		if got := ask(t, socket, r.Probe.Send, "\n"); !strings.HasPrefix(got, r.Probe.Want) {
			t.Fatalf("it answers %q to %q", got, r.Probe.Send)
		}
		after := used(t, ask(t, socket, "INFO memory\r\n", "\r\nmem_fragmentation_bytes"))
		if got := after - before; got < 0.98*data || got > 1.03*data {
			t.Errorf("it uses %.0f bytes more, want about %.0f", got, data)
		}
	}
}

// ask writes a line to the server as soon as it listens, and reads until the
// answer holds end.
func ask(t *testing.T, socket, line, end string) string {
	t.Helper()
	var c net.Conn
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var err error
		if c, err = net.Dial("unix", socket); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte(line)); err != nil {
		t.Fatal(err)
	}
	var got string
	buf := make([]byte, 64<<10)
	for !strings.Contains(got, end) {
		n, err := c.Read(buf)
		if err != nil {
			t.Fatalf("%v after %q", err, got)
		}
		got += string(buf[:n])
	}
	return got
}

func used(t *testing.T, info string) float64 {
	t.Helper()
	_, rest, _ := strings.Cut(info, "used_memory:")
	text, _, _ := strings.Cut(rest, "\r")
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("no used_memory in %.200q", info)
	}
	return n
}
