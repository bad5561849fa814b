package cause

import (
	"math"
	"strings"
	"testing"

	"tare/record"
)

// TestTiers: what bounds a load that passes through others' pods, by the figures of each part.
func TestTiers(t *testing.T) {
	nan := math.NaN()
	// A pod of runc, on a node that has room, with what the load says: 1,000 requests a second of 8 ms.
	part := func(pairs ...any) sheet {
		return with(append([]any{fHelperCPU, nan, fHelperBusy, nan, fHelperWait, nan, fVCPU, nan, fVCPUBusy, nan, fVCPUWait, nan, fGuestCPUs, nan, fGuest, nan,
			fWork, 0.2, fWorkBusy, 0.2, fWorkWait, 0.0, fCgroup, 0.2, fRate, 1000.0, fTime, 0.8e-3}, pairs...)...)
	}
	for name, c := range map[string]struct {
		client, controller, backend sheet
		missing                     string
		want                        Name
		role, end, says             string
	}{
		"a thread of the controller": {part(), part(fWorkBusy, 0.97, fWork, 1.02, fCgroup, 1.03), part(), "", GuestOne, "controller", "controller-2", "A thread of the controller (pod 2) is full: it runs for 97 % of the time, and all its threads use 1.03 cores."},
		"its quota":                  {part(), part(fWorkBusy, 0.24, fWorkWait, 0.7, fCgroup, 0.248, fQuota, 0.25, fThrottled, 0.9, fThrottledTime, 0.7, fWait, 0.75), part(), "", Quota, "controller", "controller-2", "0.248 of 0.25 cores are used, and 90 % of its periods"},
		"the load generator":         {part(fWorkBusy, 0.98), part(fWorkBusy, 0.6), part(), "", GuestOne, Load, "client", "A thread of the load generator"},
		"a server's quota":           {part(), part(fWorkBusy, 0.3), part(fCgroup, 0.1, fQuota, 0.1, fThrottled, 0.8, fThrottledTime, 0.9, fWait, 0.9), "", Quota, "backend", "backend", "The CPU limit of a server behind the controller (backend)"},
		"a node":                     {part(fWait, 0.01), part(fWorkBusy, 0.5, fWorkWait, 0.45, fWork, 0.55, fWait, 0.5, fHostBusy, 0.99), part(), "", Host, "controller", "controller-2", "99 % are in use"},
		"a thread that waits":        {part(fWorkBusy, 0.58, fWorkWait, 0.37, fWait, 0.1, fHostBusy, 0.98), part(), part(), "", Host, Load, "client", "98 % are in use"},
		"a node with room":           {part(fWorkBusy, 0.58, fWorkWait, 0.37, fWait, 0.1, fHostBusy, 0.6), part(), part(), "", GuestOne, Load, "client", "58 %"},
		"two threads":                {part(fWorkBusy, 0.97), part(fWorkBusy, 0.98), part(), "", Untold, "", "controller-2", "A thread of the load generator is full: it runs for 97 %"},
		"slow servers":               {part(fTime, 50e-3), part(), part(), "", Behind, "backend", "backend", "a request takes 50.0 ms, and for 9"},
		"servers that were not read": {part(fTime, 50e-3), part(), blank(), "", Behind, "backend", "backend", "which were not read"},
		"maxconn":                    {part(fTime, 50e-3), part(fQueued, 40.0), part(), "", Connections, "controller", "controller-2", "40 wait at its port"},
		"maxconn, and a full thread": {part(fTime, 50e-3), part(fQueued, 40.0, fWorkBusy, 0.99), part(), "", GuestOne, "controller", "controller-2", "99 %"},
		"a short way":                {part(fTime, 0.9e-3), part(), part(), "", None, "", "", "the load itself"},
		"the controller is unread":   {part(fTime, 50e-3), blank(), part(), "no Service has the address", Unknown, "", "", "no Service has the address"},
		"but the load is full":       {part(fWorkBusy, 0.99), blank(), blank(), "no Service has the address", GuestOne, Load, "client", "the load generator"},
		"nothing was read":           {blank(), blank(), blank(), "add --observe", Unknown, "", "", "add --observe"},
	} {
		b := builder{rules: rules(), reader: new(Reader)}
		s := Stratum{Endpoints: []string{"client"}, Tiers: &Tiers{Read: []string{"backend", "controller", "controller-2"}, Missing: c.missing}, Cells: []Cell{{}}}
		ends := map[string]sheet{"client": c.client, "controller": part(), "controller-2": c.controller, "backend": c.backend}
		if !c.controller.has(fRate) {
			ends["controller"] = blank()
		}
		of := map[string]*facts{}
		order := []string{"backend", "controller", "controller-2", "client"}
		for _, end := range order {
			of[end] = &facts{own: ends[end], base: blank(), baseline: true, load: nan, baseLoad: nan}
		}
		top, also := s.Tiers.bound(b.rules, of, order)
		got, role := top.cause, s.Tiers.tierOf(top.end)
		says := top.says
		switch {
		case also != nil:
			got, role, says = Untold, "", says+also.says
		case got == Unknown:
			role, says = "", s.Tiers.missing(of, order, &s)
		case got == None:
			role = ""
		}
		if got != c.want || role != c.role || top.end != c.end || !strings.Contains(says, c.says) {
			t.Errorf("%s: %s of %q (%q): %s", name, got, role, top.end, says)
		}
	}
}

// TestThroughTiers: a cell of a load that passes through a controller says what bounds it, with the figures of each part.
func TestThroughTiers(t *testing.T) {
	r := new(Reader)
	strata := grid(r, 1, 3, 1, 0)
	strata[0].Endpoints = []string{"client"}
	for j := range strata[0].Cells {
		for _, trial := range strata[0].Cells[j].Trials {
			for _, end := range []string{"client", "controller"} {
				busy := map[string]float64{"client": 0.3, "controller": 0.95}[end]
				at := func(name string, v float64, more ...string) record.Sample {
					return record.NewValue(name, record.Cores, v, append([]string{record.LabelEndpoint, end}, more...)...)
				}
				trial.Samples = append(trial.Samples, at(cgroupCPU, busy), at(cpuTime, busy, record.LabelRole, roleWorkload), at(record.ThreadBusiest, busy, record.LabelRole, roleWorkload))
			}
			// The controller is on another machine, which is full.
			trial.Samples = append(trial.Samples, record.NewValue(systemCPU, record.Cores, 1, record.LabelEndpoint, "controller", record.LabelMode, "user"))
			r.Read(trial)
		}
	}
	strata[0].Tiers = &Tiers{Read: r.Ends(strata[0].Cells[0].Trials[1].Identity(), "controller")}
	for _, f := range Build(0.95, r, strata) {
		if !f.Through || f.Cause != GuestOne || f.Role != "controller" || f.Endpoint != "controller" || f.Confidence < 0.9 {
			t.Errorf("%+v", f)
		}
		nodes := map[string]float64{}
		for _, x := range f.Readings {
			if x.Name == "host's processors in use" {
				nodes[x.Endpoint] = x.Value
			}
		}
		if nodes["controller"] != 1 || nodes["client"] == 1 {
			t.Errorf("the nodes' processors in use: %v", nodes)
		}
	}
}
