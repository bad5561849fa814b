package workloadtest

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
)

// fake is a sound workload whose answers a test can spoil.
type fake struct {
	ps        []param.Param
	responses func() []record.Response
	roles     func(param.Values) ([]workload.Role, error)
	parse     func(io.Reader) (record.Reading, error)
}

func (f fake) Name() string                             { return "fake" }
func (f fake) About() string                            { return "counts things for the suite's own test" }
func (f fake) Params() []param.Param                    { return f.ps }
func (f fake) Responses(param.Values) []record.Response { return f.responses() }
func (f fake) Roles(v param.Values) ([]workload.Role, error) {
	return f.roles(v)
}
func (f fake) Parse(_ string, _ param.Values, r io.Reader) (record.Reading, error) {
	return f.parse(r)
}

func sound() *fake {
	return &fake{
		ps: []param.Param{{Name: "size", Type: param.Size, Default: "1KiB", Min: 1, Max: 1 << 20, Help: "of a message"}},
		responses: func() []record.Response {
			return []record.Response{{Name: "rate", Unit: record.PerSecond, Better: record.Higher}}
		},
		roles: func(param.Values) ([]workload.Role, error) {
			return []workload.Role{
				{Name: "server", Mode: workload.Exec, Args: []string{"/tare"}, Background: true, Ready: "ready"},
				{Name: "client", Mode: workload.Exec, Args: []string{"sh", "{server}"}, Needs: []string{"sh"}},
			}, nil
		},
		parse: func(r io.Reader) (record.Reading, error) {
			b, err := output.Read(r)
			if err != nil {
				return record.Reading{}, err
			}
			var x struct{ Rate float64 }
			if err := json.Unmarshal(b, &x); err != nil {
				return record.Reading{}, err
			}
			if x.Rate < 0 {
				return record.Reading{}, os.ErrInvalid
			}
			if x.Rate == 0 {
				return record.Reading{}, nil
			}
			return record.Reading{Samples: []record.Sample{{Name: "rate", Unit: record.PerSecond, Value: x.Rate}}}, nil
		},
	}
}

func suiteOf(t *testing.T, w workload.Workload, page string) *suite {
	t.Helper()
	dir := t.TempDir()
	client, server, docs := filepath.Join(dir, "client"), filepath.Join(dir, "server"), filepath.Join(dir, "docs.md")
	module := filepath.Join(dir, "go.mod")
	for f, text := range map[string]string{client: `{"Rate": 12.5}`, server: `{}`, docs: page, module: "module x\n"} {
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := load(w, []Case{{Name: "one", Outputs: map[string]string{"client": client, "server": server}}})
	if err != nil {
		t.Fatal(err)
	}
	s.docs = docs
	return s
}

func problems(s *suite) string {
	var all []string
	for _, st := range s.steps() {
		all = append(all, st.check()...)
	}
	return strings.Join(all, "\n")
}

const page = "The size is `size`, the result `rate`."

func TestSoundWorkloadPasses(t *testing.T) {
	if p := problems(suiteOf(t, sound(), page)); p != "" {
		t.Errorf("a sound workload is blamed:\n%s", p)
	}
}

// TestBreachesAreSeen spoils one thing at a time: the suite itself must be able
// to fail.
func TestBreachesAreSeen(t *testing.T) {
	oneRole := func(r workload.Role) func(param.Values) ([]workload.Role, error) {
		return func(param.Values) ([]workload.Role, error) { return []workload.Role{r}, nil }
	}
	calls := 0
	for _, c := range []struct {
		name, want string
		page       string
		spoil      func(*fake)
	}{
		{name: "page without a parameter", want: "does not mention `size`", page: "`rate`"},
		{name: "no help", want: "does not explain", spoil: func(f *fake) { f.ps[0].Help = "" }},
		{name: "bad default", want: "is not valid", spoil: func(f *fake) { f.ps[0].Default = "much" }},
		{name: "reserved name", want: "factor of tare's own", spoil: func(f *fake) { f.ps[0].Name = "cpus" }},
		{name: "undeclared tool", want: "Needs does not name", spoil: func(f *fake) {
			f.roles = oneRole(workload.Role{Name: "main", Mode: workload.Exec, Args: []string{"fio"}})
		}},
		{name: "placeholder of nobody", want: "does not exist", spoil: func(f *fake) {
			f.roles = oneRole(workload.Role{Name: "main", Mode: workload.Exec, Args: []string{"/tare", "{server}:1"}})
		}},
		{name: "never over", want: "never end", spoil: func(f *fake) {
			f.roles = oneRole(workload.Role{Name: "main", Mode: workload.Exec, Args: []string{"/tare"}, Background: true, Ready: "x"})
		}},
		{name: "no ready line", want: "without a Ready line", spoil: func(f *fake) {
			f.roles = oneRole(workload.Role{Name: "main", Mode: workload.Exec, Args: []string{"/tare"}, Background: true})
		}},
		{name: "tools beside an image", want: "put them into the image", spoil: func(f *fake) {
			f.roles = oneRole(workload.Role{Name: "main", Mode: workload.Exec, Args: []string{"fio"}, Image: "fio", Needs: []string{"sh"}})
		}},
		{name: "checkpoint without a probe", want: "cannot know when it is ready", spoil: func(f *fake) {
			f.roles = oneRole(workload.Role{Name: "main", Mode: workload.Checkpoint, Count: 1, Args: []string{"/tare"}})
		}},
		{name: "probe of two kinds", want: "excludes Send and Want", spoil: func(f *fake) {
			f.roles = oneRole(workload.Role{Name: "main", Mode: workload.Launch, Count: 1, Args: []string{"/tare"},
				Probe: &workload.Probe{Port: 80, Path: "/", Want: "+PONG"}})
		}},
		{name: "probe of no port", want: "the port 0 is out of range", spoil: func(f *fake) {
			f.roles = oneRole(workload.Role{Name: "main", Mode: workload.Launch, Count: 1, Args: []string{"/tare"}, Probe: &workload.Probe{}})
		}},
		{name: "undetermined roles", want: "differs between two calls", spoil: func(f *fake) {
			f.roles = func(param.Values) ([]workload.Role, error) {
				calls++
				return []workload.Role{{Name: "main", Mode: workload.Exec, Args: []string{"/tare", strings.Repeat("x", calls)}}}, nil
			}
		}},
		{name: "response never parsed", want: "occurs 0 times", spoil: func(f *fake) {
			f.responses = func() []record.Response {
				return []record.Response{{Name: "delay", Unit: record.Second, Better: record.Lower}}
			}
		}},
		{name: "wrong unit", want: "declared in s", spoil: func(f *fake) {
			f.responses = func() []record.Response {
				return []record.Response{{Name: "rate", Unit: record.Second, Better: record.Lower}}
			}
		}},
		{name: "empty output accepted", want: "returns no error", spoil: func(f *fake) {
			f.parse = func(r io.Reader) (record.Reading, error) {
				_, err := io.Copy(io.Discard, io.LimitReader(r, 1))
				return record.Reading{}, err
			}
		}},
		{name: "panic", want: "Parse panics", spoil: func(f *fake) {
			f.parse = func(r io.Reader) (record.Reading, error) {
				b, err := output.Read(r)
				if err == nil && b[len(b)-1] != '}' {
					panic("index out of range")
				}
				return record.Reading{}, err
			}
		}},
		{name: "series of nothing", want: "which is not a declared response", spoil: follow("delay", record.PerSecond, 12)},
		{name: "series in another unit", want: "its response in 1/s", spoil: follow("rate", record.Second, 12)},
		{name: "series of something else", want: "goes from 3 to 4 in the measured time", spoil: follow("rate", record.PerSecond, 3, 4)},
		{name: "negative", want: "is negative", spoil: func(f *fake) {
			f.parse = func(r io.Reader) (record.Reading, error) {
				_, err := output.Read(r)
				return record.Reading{Samples: []record.Sample{{Name: "rate", Unit: record.PerSecond, Value: -1}}}, err
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := sound()
			if c.spoil != nil {
				c.spoil(f)
			}
			p := page
			if c.page != "" {
				p = c.page
			}
			if got := problems(suiteOf(t, f, p)); !strings.Contains(got, c.want) {
				t.Errorf("want a problem with %q, got:\n%s", c.want, got)
			}
		})
	}
}

// follow adds a series that follows a response to what is parsed.
func follow(response string, unit record.Unit, v ...float64) func(*fake) {
	return func(f *fake) {
		parse := f.parse
		f.parse = func(r io.Reader) (record.Reading, error) {
			rd, err := parse(r)
			s := record.Series{Name: "x", Labels: record.MakeLabels(record.LabelResponse, response), Unit: unit, V: v}
			for i := range v {
				s.T = append(s.T, time.Duration(i+1)*time.Second)
			}
			if len(rd.Samples) > 0 {
				rd.Series = append(rd.Series, s)
			}
			return rd, err
		}
	}
}

func TestNoOutputIsRefused(t *testing.T) {
	if _, err := load(sound(), nil); err == nil {
		t.Error("a suite without captured output is accepted")
	}
}
