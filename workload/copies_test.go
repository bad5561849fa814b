package workload_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/param"
	"tare/workload"
	"tare/workload/all"
)

// roles are those of n copies of a workload.
func roles(t *testing.T, kind string, n int, v param.Values) ([]workload.Role, error) {
	t.Helper()
	ws := all.Workloads()
	w := ws[slices.IndexFunc(ws, func(w workload.Workload) bool { return w.Name() == kind })]
	filled, err := param.Fill(w.Params(), v)
	if err != nil {
		t.Fatal(err)
	}
	return workload.Copies(w, filled, n)
}

func TestCopies(t *testing.T) {
	got, err := roles(t, "redis", 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range got {
		names = append(names, r.Name)
	}
	if d := cmp.Diff([]string{"server", "client", "server-2", "client-2", "server-3", "client-3"}, names); d != "" {
		t.Error(d)
	}
	if !slices.Contains(got[1].Args, "{server}") || !slices.Contains(got[5].Args, "{server-3}") || slices.Contains(got[5].Args, "{server}") {
		t.Errorf("clients call %q and %q", got[1].Args, got[5].Args)
	}
	one, err := roles(t, "redis", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(one, got[:2]); d != "" {
		t.Errorf("the first copy is not as it is alone: %s", d)
	}
}

// TestCopiesOfDevices: a copy has devices of its own.
func TestCopiesOfDevices(t *testing.T) {
	v := param.Values{"target": "device", "device": "/dev/sdb:/dev/sdc:/dev/sdd:/dev/sde"}
	got, err := roles(t, "fio", 2, v)
	if err != nil {
		t.Fatal(err)
	}
	var devices []string
	for _, r := range got {
		for _, x := range r.Volumes {
			devices = append(devices, r.Name+" "+x.Device)
		}
	}
	if d := cmp.Diff([]string{"main /dev/sdb", "main /dev/sdc", "main-2 /dev/sdd", "main-2 /dev/sde"}, devices); d != "" {
		t.Error(d)
	}
	for n, want := range map[int]string{
		3: "copies = 3: 4 devices cannot be dealt out evenly: device = /dev/sdb:/dev/sdc:/dev/sdd:/dev/sde; name as many for each copy, with : between them",
	} {
		_, err := roles(t, "fio", n, v)
		if at := (*param.ValueError)(nil); !errors.As(err, &at) || at.Param != "copies" || err.Error() != want {
			t.Errorf("%d copies: %v", n, err)
		}
	}
	if got, err := roles(t, "fio", 2, param.Values{"free": "40"}); err != nil || !slices.ContainsFunc(got[1].Before, func(a string) bool { return len(a) > 0 && a[0] == '{' }) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestCopiesThatShare: nothing of the user's is written to by two.
func TestCopiesThatShare(t *testing.T) {
	for name, v := range map[string]param.Values{
		"command": {"command": "true", "mounts": "/srv:/srv"},
		"startup": nil,
	} {
		if _, err := roles(t, name, 1, v); err != nil {
			t.Fatal(err)
		}
		if _, err := roles(t, name, 2, v); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := roles(t, "command", 2, param.Values{"command": "true", "mounts": "/srv:/srv:ro"}); err != nil {
		t.Error(err)
	}
}
