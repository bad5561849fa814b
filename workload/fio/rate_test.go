package fio

import (
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"tare/param"
	"tare/record"
)

func filled(t *testing.T, v param.Values) param.Values {
	t.Helper()
	out, err := param.Fill(New().Params(), v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPaced: fio gets the rate of each job and direction whose requests come nearest to the asked rate, and rates that it cannot make are
// refused.
func TestPaced(t *testing.T) {
	for _, c := range []struct {
		rate, jobs, rw string
		each           int
		all            float64
	}{
		{"1000", "1", "randread", 999, 1000},
		{"500", "4", "randread", 125, 500},
		{"64000", "1", "randread", 62500, 64494},    // a pause of 16 us times a random number, less half a microsecond
		{"2000", "2", "randrw", 500, 2000},          // 500 a second for each direction of each job
		{"100", "16", "randwrite", 6, 96},           // fio has whole numbers: 6.25 are 6
		{"3", "4", "randread", 0, 4},                // one for each
		{"10000000", "1", "randread", 0, 1_718_282}, // fio's most
	} {
		v := filled(t, param.Values{"rate": c.rate, "jobs": c.jobs, "rw": c.rw})
		each, all := paced(v)
		args, err := pacing(v)
		if math.Abs(all-c.all) > 1e-3*c.all {
			t.Errorf("%+v: %d each, %g in all", c, each, all)
		}
		switch want := fmt.Sprintf("--rate_iops=%d", c.each); {
		case c.each == 0:
			if err == nil || !strings.Contains(err.Error(), "write that, or other jobs") {
				t.Errorf("%+v: %v, %v", c, args, err)
			}
		case err != nil || !slices.Equal(args, []string{want, "--rate_process=poisson"}):
			t.Errorf("%+v: %v, %v", c, args, err)
		}
	}
	if args, err := pacing(filled(t, nil)); args != nil || err != nil {
		t.Errorf("no rate: %v, %v", args, err)
	}
	_, err := New().Roles(filled(t, param.Values{"rate": "500", "jobfile": "[a]\nsize=1m\nrw=read\n"}))
	if err == nil || !strings.Contains(err.Error(), "rate = 500 has no effect on a job file; write rate_iops") {
		t.Errorf("with a job file: %v", err)
	}
}

// TestPacedReal: the installed fio makes the rate that paced says, without a disk.
func TestPacedReal(t *testing.T) {
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("fio is not installed")
	}
	for _, rate := range []string{"500", "20000", "64000"} {
		v := filled(t, param.Values{"rate": rate, "jobs": "2", "duration": "1s"})
		args, err := pacing(v)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--name=tare", "--ioengine=null", "--size=1g", "--bs=4k", "--rw=randread", "--numjobs=2", "--norandommap", "--runtime=1", "--time_based", "--lat_percentiles=1", "--output-format=json+")
		out, err := exec.Command("fio", args...).Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		r, err := New().Parse("main", v, strings.NewReader(string(out)))
		if err != nil {
			t.Fatal(err)
		}
		_, all := paced(v)
		if got := value(t, r, "iops", ""); math.Abs(got-all) > 5*math.Sqrt(all)+0.01*all { // a busy machine ends late
			t.Errorf("rate %s: fio sent %.0f requests a second, want %.0f", rate, got, all)
		}
	}
}

// TestOffered: what was due but not sent is told, unless the number of due requests can be so low by chance. At a rate, p99 comes first, and
// the rates have no better direction.
func TestOffered(t *testing.T) {
	const job = `{"jobname":"a","read":{"io_bytes":4096000,"total_ios":%d,"runtime":2000,"lat_ns":{"bins":{"100000":%[1]d}}}}`
	for _, c := range []struct {
		rate     string
		sent     int // of each of two jobs
		unsent   float64
		overload bool
	}{
		{"0", 4000, 0, false},
		{"4000", 4000, 0, false},
		{"4000", 3900, 0, false}, // 200 of 8000 less: two standard deviations
		{"4000", 3000, 2000, true},
	} {
		v := filled(t, param.Values{"rate": c.rate, "jobs": "2"})
		r, err := New().Parse("main", v, strings.NewReader(`{"jobs":[`+fmt.Sprintf(job, c.sent)+","+fmt.Sprintf(job, c.sent)+"]}"))
		if err != nil {
			t.Fatal(err)
		}
		got := record.Trial{Samples: r.Samples}
		unsent, has := got.Sample(record.SampleUnsent)
		overload := slices.ContainsFunc(r.Warnings, func(w record.Warning) bool { return w.Code == "fio-overload" })
		if has != (c.rate != "0") || math.Abs(unsent-c.unsent) > 20 || overload != c.overload || math.Abs(got.Offered()-1+c.unsent/8000) > 0.003 {
			t.Errorf("%+v: %g unsent, offered %g, %v", c, unsent, got.Offered(), r.Warnings)
		}
	}
	first := New().Responses(filled(t, param.Values{"rate": "4000", "rw": "rw"}))
	at := slices.IndexFunc(first, func(r record.Response) bool { return r.Name == "iops" })
	if first[0].Name != "read_latency_p99" || at < 0 || first[at].Better != record.Neither {
		t.Errorf("responses %+v", first)
	}
}
