package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tare/plan"
	"tare/record"
	"tare/site"
	"tare/site/claim"
	"tare/study"
)

// far is the site of the other machine.
type far struct {
	openErr error
	open    atomic.Int32 // sessions
	trials  func(context.Context, []plan.Next) []record.Made
}

func (*far) About() site.About { return site.About{} }

func (f *far) Preview(context.Context, site.Request) (site.Preview, error) {
	return site.Preview{Skips: []record.Skip{{Cell: cell("vm"), Reason: "no KVM"}}}, f.openErr
}

func (f *far) Open(_ context.Context, r site.Request) (site.Session, error) {
	if f.openErr != nil {
		return nil, f.openErr
	}
	if c := r.Study.Collect.Names; !slices.Equal(c, []string{"proc"}) {
		return nil, fmt.Errorf("the collectors are %q", c)
	}
	r.Trying("runc", 3*time.Second)()
	f.open.Add(1)
	return farSession{f}, nil
}

type farSession struct{ *far }

func (farSession) Nodes() []record.Node                                      { return []record.Node{{Name: "db1"}} }
func (farSession) Expected(record.Cell) time.Duration                        { return 0 }
func (f farSession) Close()                                                  { f.open.Add(-1) }
func (farSession) Preview() site.Preview                                     { return site.Preview{} }
func (f farSession) Trials(ctx context.Context, n []plan.Next) []record.Made { return f.trials(ctx, n) }

func cell(sandbox string) record.Cell { return record.Cell{{Factor: "sandbox", Value: sandbox}} }

func next(seq int) plan.Next { return plan.Next{Seq: seq, Block: 1, Attempt: 1, Cell: cell("runc")} }

// good is the trial that next asks for.
func good(n plan.Next) record.Made {
	return record.Made{
		Trial:    &record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.OK, Samples: []record.Sample{record.NewValue("wall", record.Second, 0.1+float64(n.Seq))}},
		Evidence: record.Evidence{Series: []record.Series{{Name: "cpu", T: []time.Duration{1, 2}, V: []float64{0, 1}}}, Raw: []record.Raw{{Name: "a", Data: []byte("\xff\x00\n")}}},
	}
}

// pipes are a way between two sides in this process.
type pipes struct{ r, w io.Closer }

func (p pipes) Kill()             { _ = p.Close() }
func (p pipes) Close() error      { return errors.Join(p.r.Close(), p.w.Close()) }
func (pipes) Why(err error) error { return err }

// connected is a machine that Serve answers, and what it said. served ends with Serve.
func connected(t *testing.T, f *far) (m *Machine, heard *[]string, served chan error) {
	t.Helper()
	qr, qw := io.Pipe()
	ar, aw := io.Pipe()
	served, heard = make(chan error, 1), new([]string)
	go func() {
		err := Serve(context.Background(), qr, aw, Served{
			Facts: Facts{Root: true, Home: "/root"},
			Site:  func(say io.Writer) site.Site { fmt.Fprintln(say, "tare: without a collector\x1b[2J"); return f },
			Parse: func(source []byte, _ []string) (*study.Study, study.Catalogue, error) {
				if string(source) != "study: x\n" {
					return nil, study.Catalogue{}, fmt.Errorf("the study is %q", source)
				}
				return &study.Study{}, study.Catalogue{}, nil
			},
		})
		_ = aw.Close() // as the end of a process
		served <- err
	}()
	var err error
	m, err = Connect(ar, qw, pipes{ar, qw}, Setup{
		Name: "root@db1",
		Takes: func(site.Request) (func(record.Cell) time.Duration, error) {
			return func(record.Cell) time.Duration { return time.Second }, nil
		},
		Heard: func(s string) { *heard = append(*heard, s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, heard, served
}

func request() site.Request {
	return site.Request{Study: &study.Study{Source: []byte("study: x\n"), Collect: study.Collect{Names: []string{"proc"}}}}
}

// TestMachine: what the other machine measured arrives as it was, and nothing stays open there.
func TestMachine(t *testing.T) {
	f := &far{trials: func(_ context.Context, n []plan.Next) []record.Made { return []record.Made{good(n[0]), good(n[1])} }}
	m, heard, served := connected(t, f)
	if !m.Facts.Root || m.Facts.Home != "/root" {
		t.Errorf("%+v", m.Facts)
	}
	if p, err := m.Preview(t.Context(), request()); err != nil || len(p.Skips) != 1 || p.Skips[0].Reason != "no KVM" {
		t.Errorf("%+v, %v", p, err)
	}
	var tried []string
	r := request()
	r.Trying = func(kind string, within time.Duration) func() {
		tried = append(tried, fmt.Sprint(kind, within))
		return func() { tried = append(tried, "end") }
	}
	s, err := m.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.Nodes(); len(n) != 1 || n[0].Name != "db1" || s.Expected(nil) != time.Second || !slices.Equal(tried, []string{"runc3s", "end"}) {
		t.Errorf("%v %v", n, tried)
	}
	got := s.Trials(t.Context(), []plan.Next{next(1), next(2)})
	want := good(next(2))
	if len(got) != 2 || got[1].Seq != 2 || got[1].Samples[0] != want.Samples[0] || string(got[1].Evidence.Raw[0].Data) != "\xff\x00\n" || got[1].Evidence.Series[0].V[1] != 1 {
		t.Errorf("%+v", got)
	}
	s.Close()
	if f.open.Load() != 0 {
		t.Error("the session is still open there")
	}
	if err := errors.Join(m.Close(), <-served); err != nil || !slices.Equal(*heard, []string{"without a collector\x1b[2J"}) {
		t.Errorf("%v, %q", err, *heard)
	}
}

// TestMachineErrors: an error there has the same exit code here, and says where.
func TestMachineErrors(t *testing.T) {
	var unable *site.UnableError
	var held *claim.HeldError
	for name, c := range map[string]struct {
		err  error
		is   func(error) bool
		want string
	}{
		"unable":      {&site.UnableError{Err: errors.New("no runc")}, func(err error) bool { return errors.As(err, &unable) }, "root@db1: no runc"},
		"held":        {&claim.HeldError{Holder: claim.Holder{Pid: 7, What: "study a"}}, func(err error) bool { return errors.As(err, &held) && held.Holder.Pid == 7 }, "root@db1: this host is held"},
		"interrupted": {site.ErrInterrupted, func(err error) bool { return errors.Is(err, site.ErrInterrupted) }, "interrupted"},
		"other":       {errors.New("disk full"), func(err error) bool { return !errors.As(err, &unable) }, "root@db1: disk full"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _, served := connected(t, &far{openErr: c.err})
			r := request()
			r.Trying = func(string, time.Duration) func() { return func() {} }
			if _, err := m.Open(t.Context(), r); err == nil || !c.is(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			_ = m.Close()
			<-served
		})
	}
}

// TestMachineStops: the end of a context ends the trials there, and what was finished comes.
func TestMachineStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _, served := connected(t, &far{trials: func(ctx context.Context, n []plan.Next) []record.Made {
			<-ctx.Done()
			cut := good(n[1])
			cut.Status, cut.Failure = record.Failed, &record.Failure{Kind: record.Interrupted, Reason: "the user ended it"}
			return []record.Made{good(n[0]), cut}
		}})
		s, err := m.Open(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // far longer than silence: the beats keep it
		defer cancel()
		got := s.Trials(ctx, []plan.Next{next(1), next(2)})
		if got[0].Status != record.OK || got[1].Failure == nil || got[1].Failure.Kind != record.Interrupted {
			t.Errorf("%+v", got)
		}
		_ = m.Close()
		<-served
	})
}

// TestMachineLost: whichever way a connection ends, trials fail with it here, and nothing runs
// there for longer than silence and endWithin.
func TestMachineLost(t *testing.T) {
	for name, c := range map[string]struct {
		cut  func(m *Machine)
		hang bool // the trial there does not end
	}{
		"closed": {cut: func(m *Machine) { m.way.Kill() }},
		"here silent": {cut: func(m *Machine) { // nothing arrives any more, and nothing is closed
			m.link.mu.Lock()
			defer m.link.mu.Unlock()
			m.link.out = io.Discard
		}},
		"hung": {cut: func(m *Machine) { m.way.Kill() }, hang: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, release := make(chan struct{}), make(chan struct{})
				f := &far{trials: func(ctx context.Context, n []plan.Next) []record.Made {
					close(began)
					<-ctx.Done()
					if c.hang {
						<-release
					}
					return nil
				}}
				m, _, served := connected(t, f)
				s, err := m.Open(t.Context(), request())
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					<-began
					c.cut(m)
				}()
				from := time.Now()
				got := s.Trials(t.Context(), []plan.Next{next(1)})
				if f := got[0].Failure; f == nil || f.Kind != record.Unreached || !strings.Contains(f.Reason, "the connection to root@db1 is lost") {
					t.Errorf("%+v", f)
				}
				err = <-served
				if d := time.Since(from); d > silence+endWithin || c.hang != (d >= endWithin) && name != "here silent" {
					t.Errorf("it ended there after %s with %v", d, err)
				}
				if close(release); !c.hang && f.open.Load() != 0 {
					t.Error("the session is still open there")
				}
			})
		})
	}
}

// TestHostileMachine: what no tare sends ends the session, and is not passed on.
func TestHostileMachine(t *testing.T) {
	facts := `{"facts":{"home":"/root"}}` + "\n"
	trial := func(edit string) string {
		return strings.Replace(facts+`{"made":{"seq":1,"block":1,"attempt":1,"cell":[{"factor":"sandbox","value":"runc"}],"status":"ok","Evidence":{}}}`+"\n{\"done\":{}}\n", edit[:strings.Index(edit, "=>")], edit[strings.Index(edit, "=>")+2:], 1)
	}
	for name, c := range map[string][2]string{
		"not JSON":   {facts + "hello\n", "invalid character"},
		"facts":      {facts + facts, "its facts twice"},
		"home":       {`{"facts":{"home":"x"}}` + "\n", "the home directory"},
		"ends":       {facts, "lost (EOF)"},
		"none":       {facts + "{\"done\":{}}\n", "0 trials of 1"},
		"empty":      {facts + "{\"made\":{}}\n", "an empty trial"},
		"other":      {trial(`"seq":1=>"seq":2`), "trial 2 of"},
		"other cell": {trial(`runc=>crun`), "sandbox=crun"},
		"status":     {trial(`"ok"=>"fine"`), "status"},
		"no failure": {trial(`"ok"=>"failed"`), "status"},
		"duration":   {trial(`"status"=>"duration":-1,"status"`), "took"},
		"series":     {trial(`{}=>{"Series":[{"name":"a","t":[2,1],"v":[1,1]}]}`), "the series"},
		"twice":      {trial(`{"done"=>{"made":{"seq":1}}` + "\n" + `{"done"`), "more trials"},
		"NaN":        {trial(`"status"=>"samples":[{"value":1e999}],"status"`), "cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			more, end := io.Pipe() // the stream goes on
			if name == "ends" {
				_ = end.Close()
			}
			m, err := Connect(io.MultiReader(strings.NewReader(c[0]), more), io.Discard, pipes{more, end}, Setup{Name: "db1", Heard: func(string) {}})
			if err == nil {
				s := &session{m: m}
				switch got := s.Trials(t.Context(), []plan.Next{next(1)}); {
				case got[0].Failure != nil:
					err = errors.New(got[0].Failure.Reason)
				default: // what was good before counts
					err = m.link.err
				}
			}
			if !strings.Contains(err.Error(), c[1]) {
				t.Errorf("%v, want %s", err, c[1])
			}
		})
	}
	var said []string
	say := Bounded(func(s string) { said = append(said, s) })
	for range maxHeard / 1024 * 2 {
		say(strings.Repeat("x", 1024))
	}
	if n := len(said); n != maxHeard/1024+1 || said[n-1] != "it sent more text; the rest is not shown" {
		t.Errorf("%d texts, then %q", n, said[n-1])
	}
}
