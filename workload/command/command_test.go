package command

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tare/param"
	"tare/record"
	"tare/volume"
	"tare/workload"
	"tare/workload/workloadtest"
)

func cases() []workloadtest.Case {
	refused := func(name, value string) workloadtest.Case {
		return workloadtest.Case{Name: name + "=" + value, Params: param.Values{name: value}, Refused: true}
	}
	return []workloadtest.Case{
		{Name: "grep", Params: param.Values{"command": "grep -c root /etc/passwd", "repeats": "3", "env": "A=1 'B=x y'"},
			Outputs: map[string]string{"main": "testdata/grep.txt"}},
		{Name: "gobench", Params: param.Values{"format": "gobench"}, Outputs: map[string]string{"main": "testdata/gobench.txt"}},
		{Name: "figures", Params: param.Values{"figures": "rate[ns]='arm64.* ([0-9.]+) MB' time=([0-9]+)"}, Outputs: map[string]string{"main": "testdata/gobench.txt"}},
		refused("figures", "x"), refused("figures", "wall=x"),
		refused("command", " "), refused("command", `a "b`), refused("command", `"" a`), refused("command", "a | b"),
		refused("exit", "0,x"), refused("exit", "256"), refused("env", "A"), refused("env", "=1"), refused("cwd", "here"),
		refused("input", "file"), refused("mounts", "/a"), refused("mounts", "a:/b"), refused("mounts", "/a:/b:wo"), refused("mounts", "/a:/"),
		refused("mounts", "/a:/b /c:/b"), refused("writable", "true"), refused("shell", "'"),
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }

func FuzzParse(f *testing.F) { workloadtest.Fuzz(f, New(), cases()...) }

// TestUnfit: an error about a figure has what the program printed, and none of the reports of runs.
func TestUnfit(t *testing.T) {
	v := workloadtest.Fill(t, New(), param.Values{"figures": "x=json:a"})
	_, err := New().Parse("main", v, strings.NewReader(`{"timed_ns":1,"end_ns":1,"stdout":"{\"a\":1}"}`+"\n"+`{"timed_ns":1,"end_ns":2,"stdout":"hi\n"}`+"\n"))
	var unfit *workload.Unfit
	if !errors.As(err, &unfit) || unfit.Printed != "hi\n" || err.Error() != "run 2: figure x: the output is not JSON" {
		t.Errorf("%#v: %v", unfit, err)
	}
}

func role(t *testing.T, v param.Values) workload.Role {
	t.Helper()
	roles, err := New().Roles(workloadtest.Fill(t, New(), v))
	if err != nil {
		t.Fatal(err)
	}
	return roles[0]
}

// TestWords: quotes group, and nothing is expanded.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		v    param.Values
		want []string
	}{
		{param.Values{"command": `a 'b  c' "d\"e" f\ g $HOME * ~`}, []string{"a", "b  c", `d"e`, "f g", "$HOME", "*", "~"}},
		{param.Values{"command": "find . ; x '|y'"}, []string{"find", ".", ";", "x", "|y"}},
		{param.Values{"command": "a | b", "shell": "true"}, []string{"/bin/sh", "-c", "a | b"}},
		{param.Values{"command": "a | b", "shell": "bash -e"}, []string{"bash", "-e", "-c", "a | b"}},
	} {
		got, err := words(workloadtest.Fill(t, New(), c.v), "command")
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, %v", c.v, got, err)
		}
	}
}

// TestVolumes: what the sandbox hides of the host's root, and the program needs, is mounted.
func TestVolumes(t *testing.T) {
	r := role(t, param.Values{"command": "/tmp/x/prog", "cwd": "/tmp/x/y", "input": "/srv/in.txt", "mounts": "/a:/b /c:/d:ro"})
	want := map[string]volume.Volume{
		"/b":               {Name: "mount0", Medium: volume.Bind, Host: "/a", At: "/b"},
		"/d":               {Name: "mount1", Medium: volume.Bind, Host: "/c", At: "/d", ReadOnly: true},
		"/tmp/x":           {Name: "own1", Medium: volume.Bind, Host: "/tmp/x", At: "/tmp/x", ReadOnly: true},
		"/tmp/x/y":         {Name: "own0", Medium: volume.Bind, Host: "/tmp/x/y", At: "/tmp/x/y", ReadOnly: true},
		"/tmp/.tare-input": {Name: "input", Medium: volume.Bind, Host: "/srv", At: "/tmp/.tare-input", ReadOnly: true},
	}
	for _, v := range r.Volumes {
		if v != want[v.Path()] {
			t.Errorf("%+v", v)
		}
		delete(want, v.Path())
	}
	if len(want) > 0 || r.Image != volume.HostRoot || !strings.Contains(strings.Join(r.Args, " "), `/tmp/.tare-input/in.txt`) {
		t.Errorf("missing: %v; role %+v", want, r)
	}
}

// TestTicks: a processor time of a few ticks has no ratio.
func TestTicks(t *testing.T) {
	for text, below := range map[string][]string{
		`{"timed_ns":9,"end_ns":9,"user_ns":20000000,"system_ns":0}`:         {"user", "system"},
		`{"timed_ns":9,"end_ns":9,"user_ns":100000000,"system_ns":21000001}`: nil,
	} {
		rd, err := New().Parse("main", workloadtest.Fill(t, New(), nil), strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range rd.Warnings {
			got = append(got, strings.TrimPrefix(w.Code, record.BelowNoise))
		}
		if !slices.Equal(got, below) {
			t.Errorf("%s: below noise: %v, want %v", text, got, below)
		}
	}
}
