package trial

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/sandbox"
	"tare/study"
	"tare/workload"
)

// settable is a place with a kernel that has settings.
type settable struct {
	*place
	says error
}

func (s *settable) Set(levels map[string]string) (map[string]string, error) {
	level := levels[record.SettingMigrationCost]
	s.j.note("set %s", level)
	if level == "" || s.says != nil {
		return nil, s.says
	}
	return map[string]string{record.SettingMigrationCost: "in force " + level}, nil
}

// TestSettingsOfTurns: cells of a block may have different settings. Each has its own in force when its sandboxes start
// and in each of its turns, and one without the factor has none.
func TestSettingsOfTurns(t *testing.T) {
	e, j := engine(t, "")
	turning(e)
	e.Place = &settable{place: e.Place.(*place)}
	cells := e.Study.Strata[0].Cells
	cells[0] = append(slices.Clone(cells[0]), record.Level{Factor: record.SettingMigrationCost, Value: "5ms"})
	made := e.Trials(t.Context(), of(t, e))
	var lines []string
	for _, l := range j.lines {
		if strings.HasPrefix(l, "set ") || strings.HasPrefix(l, "start client") || strings.HasPrefix(l, "exec call") {
			lines = append(lines, strings.TrimSpace(strings.TrimSuffix(l, " client")))
		}
	}
	with := made[0].Trial
	if _, ok := with.Cell.Get(record.SettingMigrationCost); !ok {
		with = made[1].Trial
	}
	if with.Status != record.OK || with.Facts[record.SettingMigrationCost] != "in force 5ms" {
		t.Fatalf("%+v, facts %v", with.Failure, with.Facts)
	}
	now := "?"
	turns := map[string]int{}
	for _, l := range lines {
		if s, ok := strings.CutPrefix(l+" ", "set "); ok {
			now = strings.TrimSpace(s)
			continue
		}
		turns[strings.Fields(l)[0]+" with "+now]++
	}
	want := map[string]int{"start with 5ms": 1, "start with ": 1, "exec with 5ms": 3, "exec with ": 3}
	if d := cmp.Diff(want, turns); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestSettingThatCannotBeMade: the trial fails before anything starts.
func TestSettingThatCannotBeMade(t *testing.T) {
	e, j := engine(t, "")
	e.Place = &settable{place: e.Place.(*place), says: errors.New("the kernel does not take it")}
	tr, _ := e.Trial(t.Context(), first(e))
	if tr.Failure == nil || tr.Failure.Phase != PhasePrepare || tr.Failure.Reason != "the kernel does not take it" {
		t.Errorf("%+v", tr.Failure)
	}
	if i := slices.IndexFunc(j.lines, func(l string) bool { return strings.HasPrefix(l, "start") || strings.HasPrefix(l, "attach") }); i >= 0 {
		t.Errorf("%q happened", j.lines[i])
	}
}

// TestAddressesNot: only a namespace of the host's kernel has further addresses, and sandboxes that wait for a turn would hold entries.
func TestAddressesNot(t *testing.T) {
	for _, tt := range []struct {
		own     record.Answer
		isolate string
		turns   int
		want    string
	}{
		{record.No, "server", 0, ""}, {record.Yes, "client", 0, ""},
		{record.Yes, "server", 0, "box: the kernel in the sandbox has one address"}, {record.Yes, study.Both, 0, "box: the kernel"},
		{record.No, "client", 2, "neighbours: the sandboxes of a block would wait"},
	} {
		res := study.Resolved{Sandbox: "box", Isolate: tt.isolate, Traits: record.Traits{OwnKernel: tt.own}, Workload: study.Workload{Turns: tt.turns}}
		got := addressesNot(&res, &workload.Role{Name: "server", Addresses: 9}, 2)
		if (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
		if got := addressesNot(&res, &workload.Role{Name: "server"}, 2); got != "" {
			t.Errorf("without addresses: %q", got)
		}
	}
}

// TestMoreAddresses: a command learns the range of its own copy's server.
func TestMoreAddresses(t *testing.T) {
	box := &instance{k: &kind{}, end: "server"}
	tr := &trial{set: set{endpoints: []*endpoint{
		{role: workload.Role{Name: "server"}, inst: box, spec: sandbox.Spec{Network: sandbox.Network{Further: netip.MustParsePrefix("198.18.128.0/22")}}},
		{role: workload.Role{Name: "server-2"}, inst: box, spec: sandbox.Spec{Network: sandbox.Network{Further: netip.MustParsePrefix("198.18.132.0/22")}}},
	}}}
	got := tr.addressed([]string{"{server/more}", "--at={server-2/more}", "{server}"})
	if d := cmp.Diff([]string{"198.18.128.0/22", "--at=198.18.132.0/22", "198.18.0.2"}, got); d != "" {
		t.Error(d)
	}
}
