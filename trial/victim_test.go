package trial

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tare/record"
	"tare/study"
	"tare/volume"
	"tare/workload"
)

// harmed makes an engine whose only cell has a victim beside its load.
func harmed(t *testing.T, beside string, takes func(int) (late, long time.Duration)) (*Maker, *pair) {
	t.Helper()
	e, p := copied(t, 1, takes)
	e.Study.Workloads[0].Responses = []string{"rate"}
	e.Study.Victim = &study.Victim{Workload: study.Workload{Label: study.VictimLabel, Kind: "load"}}
	s := &e.Study.Strata[0]
	s.Cells[0] = append(slices.Clone(s.Cells[0]), record.Level{Factor: study.FactorBeside, Value: beside})
	return e, p
}

func TestVictimBesideLoad(t *testing.T) {
	e, p := harmed(t, study.BesideLoad, together)
	trial, evidence := e.Trial(t.Context(), first(e))
	if trial.Status != record.OK {
		t.Fatalf("%+v", trial.Failure)
	}
	for name, want := range map[string]float64{"rate": 1, "victim_rate": 100, "victim_latency_p50": 100} {
		if v, ok := trial.Sample(name); !ok || v != want {
			t.Errorf("%s is %v, %v; want %v", name, v, ok, want)
		}
	}
	if v, ok := trial.Sample(record.VictimOverlap); !ok || v < overlapLeast {
		t.Errorf("overlap %v, %v", v, ok)
	}
	if _, ok := trial.Sample(record.StartSkew); !ok {
		t.Error("the victim and the load did not pass one gate")
	}
	slices.Sort(p.names)
	if got := strings.Join(p.names, " "); got != "x-1-client x-1-server x-1-victim-client x-1-victim-server" {
		t.Errorf("sandboxes %s", got)
	}
	if !slices.ContainsFunc(evidence.Series, func(s record.Series) bool {
		return s.Name == "victim_rate" && s.Labels.Get(record.LabelResponse) == "victim_rate"
	}) {
		t.Errorf("series %+v", evidence.Series)
	}
	if !slices.ContainsFunc(trial.Warnings, func(w record.Warning) bool { return w.Code == record.BelowNoise+"victim_memory" }) {
		t.Errorf("warnings %+v", trial.Warnings)
	}
}

func TestVictimAlone(t *testing.T) {
	e, p := harmed(t, study.BesideNothing, together)
	trial, _ := e.Trial(t.Context(), first(e))
	if _, ok := trial.Sample("rate"); trial.Status != record.OK || ok || len(p.names) != 2 {
		t.Errorf("%+v, %v, %q", trial.Failure, ok, p.names)
	}
	if v, ok := trial.Sample("victim_rate"); !ok || v != 100 {
		t.Errorf("%v, %v", v, ok)
	}
	if _, ok := trial.Sample(record.VictimOverlap); ok {
		t.Error("nothing was beside it")
	}
}

// TestVictimApart: a load that ended before the victim was measured says nothing about it.
func TestVictimApart(t *testing.T) {
	for _, c := range []struct {
		victim, load time.Duration // how late each begins
		long         time.Duration // how long the victim takes
		kind, code   string
	}{
		{victim: 150 * time.Millisecond, long: 50 * time.Millisecond, kind: "apart"},
		{long: 250 * time.Millisecond, code: record.VictimApart},
	} {
		e, _ := harmed(t, study.BesideLoad, func(k int) (time.Duration, time.Duration) {
			if k == victimCopy {
				return c.victim, c.long
			}
			return c.load, 60 * time.Millisecond
		})
		trial, _ := e.Trial(t.Context(), first(e))
		kind := ""
		if trial.Failure != nil {
			kind = trial.Failure.Kind
		}
		warned := slices.ContainsFunc(trial.Warnings, func(w record.Warning) bool { return w.Code == c.code })
		if kind != c.kind || warned != (c.code != "") {
			t.Errorf("%+v: %+v, %+v", c, trial.Failure, trial.Warnings)
		}
	}
}

// TestVictimDies: the trial fails with the victim's role, and everything is stopped.
func TestVictimDies(t *testing.T) {
	e, j := engine(t, "exit client")
	e.Study.Victim = &study.Victim{Workload: study.Workload{Label: study.VictimLabel, Kind: "load"}}
	s := &e.Study.Strata[0]
	s.Cells[0] = append(slices.Clone(s.Cells[0]), record.Level{Factor: study.FactorBeside, Value: study.BesideNothing})
	trial, _ := e.Trial(t.Context(), first(e))
	if f := trial.Failure; f == nil || f.Role != "victim-client" || !strings.Contains(f.Reason, "victim-client ended with exit code 1") {
		t.Errorf("%+v", f)
	}
	if all := strings.Join(j.lines, "\n"); strings.Count(all, "stop ") != 2 {
		t.Error(all)
	}
}

// TestVictimShares: a victim and its load do not write to one device or directory of the user.
func TestVictimShares(t *testing.T) {
	role := func(v ...volume.Volume) part { return part{roles: []workload.Role{{Volumes: v}}} }
	device, other := volume.Volume{Medium: volume.Device, Device: "/dev/a"}, volume.Volume{Medium: volume.Device, Device: "/dev/b"}
	folder, read := volume.Volume{Medium: volume.Bind, Host: "/srv"}, volume.Volume{Medium: volume.Bind, Host: "/srv", ReadOnly: true}
	for _, c := range []struct {
		load, victim volume.Volume
		want         string
	}{{device, device, "/dev/a"}, {device, other, ""}, {folder, folder, "/srv"}, {folder, read, ""}, {volume.Volume{}, volume.Volume{}, ""}} {
		victim := role(c.victim)
		p := parts{part: role(c.load), victim: &victim}
		if why := p.shared(); (why != "") != (c.want != "") || !strings.Contains(why, c.want) {
			t.Errorf("%+v beside %+v: %q", c.victim, c.load, why)
		}
	}
}
