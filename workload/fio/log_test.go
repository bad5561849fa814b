package fio

import (
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
)

// The log and the JSON count the same requests by two ways: the mean of the one is the rate of
// the other.
func TestSeriesIsTheResponseOverTime(t *testing.T) {
	for _, c := range []struct {
		name string
		v    param.Values
	}{
		{"randread-log.json", nil},
		{"runsc-randread-log.json", nil},
		{"randrw-2jobs-log.json", mixedLog()},
	} {
		r, err := read(t, c.name, c.v)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Series) != 1 {
			t.Fatalf("%s: %d series, want one", c.name, len(r.Series))
		}
		s := r.Series[0]
		v, err := param.Fill(New().Params(), c.v)
		if err != nil {
			t.Fatal(err)
		}
		from := v.Duration("warmup")
		if s.T[0] <= from || s.T[len(s.T)-1] > from+v.Duration("duration")+5*time.Millisecond {
			t.Errorf("%s: points from %v to %v, the measured time is %v from %v", c.name, s.T[0], s.T[len(s.T)-1], v.Duration("duration"), from)
		}
		sum, last := 0.0, from
		for i := range s.T {
			sum += s.V[i] * (s.T[i] - last).Seconds()
			last = s.T[i]
		}
		near(t, c.name, sum/(last-from).Seconds(), value(t, r, "iops", ""), 0.1)
	}
}

func mixedLog() param.Values {
	return param.Values{"rw": "randrw", "jobs": "2", "iodepth": "4", "engine": "libaio", "size": "4MiB", "duration": "1s", "warmup": "200ms"}
}

func TestSeriesOfHandWrittenLogs(t *testing.T) {
	const head = "\nlog /tmp/tare_iops.1.log\n50, 100, 0, 0, 0\n100, 120, 0, 0, 0\n"
	for _, c := range []struct {
		name string
		v    param.Values
		logs string
		want []float64
	}{
		{name: "one job", logs: head, want: []float64{100, 120}},
		{name: "without a log", logs: "\n"},
		{name: "two jobs, one log", v: param.Values{"jobs": "2"}, logs: head},
		{name: "two jobs", v: param.Values{"jobs": "2"}, logs: head + "log /tmp/tare_iops.2.log\n51, 1, 0, 0, 0\n99, 2, 0, 0, 0\n150, 3, 0, 0, 0\n", want: []float64{101, 122}},
		{name: "both directions", v: param.Values{"rw": "randrw"}, logs: "log a.1.log\n50, 1, 0, 0\n50, 2, 1, 0\n100, 4, 1, 0\n", want: []float64{3, 4}},
		{name: "sequential", v: param.Values{"rw": "read", "bs": "1KiB"}, logs: head, want: []float64{102400, 122880}},
		{name: "past the end", v: param.Values{"duration": "100ms"}, logs: head + "160, 7, 0, 0\n", want: []float64{100, 120}},
		{name: "back in time", logs: head + "50, 1, 0, 0\n"},
		{name: "negative", logs: "log a.1.log\n50, -1, 0, 0\n"},
		{name: "a log twice", logs: head + head},
		{name: "a job too many", logs: head + "log a.2.log\n"},
		{name: "words", logs: "log a.1.log\nfio: cannot open\n"},
	} {
		v, err := param.Fill(New().Params(), c.v)
		if err != nil {
			t.Fatal(err)
		}
		load := sections(v)[0]
		var s record.Series
		logs := readLogs([]byte(c.logs), load.jobs)
		ok := logs != nil
		if ok {
			s, ok = load.series(logs, float64(v.Size("bs")))
		}
		if ok != (c.want != nil) || ok && len(s.V) != len(c.want) {
			t.Errorf("%s: %+v, %t; want %v", c.name, s, ok, c.want)
			continue
		}
		for i := range c.want {
			if s.V[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", c.name, s.V, c.want)
			}
		}
		if ok && s.Labels != record.MakeLabels(record.LabelResponse, s.Name) {
			t.Errorf("%s: labels %s", c.name, s.Labels)
		}
	}
}

// A failed fio must stay a failed trial although a shell runs it.
func TestScriptKeepsTheExitCode(t *testing.T) {
	if !strings.HasPrefix(script, `fio "$@" || exit`+"\n") {
		t.Errorf("the script goes on after a failure: %s", script)
	}
}
