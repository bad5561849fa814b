package trial

import (
	"testing"

	"tare/sandbox"
	"tare/study"
	"tare/volume"
	"tare/workload"
)

// bounded is a place with so many bytes.
type bounded struct {
	Place

	has int64
	got []Room
}

func (p *bounded) Check(d Demand) error {
	p.got = d.Rooms
	for _, r := range d.Rooms {
		p.has -= r.Bytes
	}
	if p.has < 0 {
		return errRoom
	}
	return nil
}

type roomError struct{}

func (roomError) Error() string { return "no room" }

var errRoom = roomError{}

// TestRoom: the files of all parts and copies count together, wherever a role has them.
func TestRoom(t *testing.T) {
	at := func(room int64, vs ...volume.Volume) workload.Role { return workload.Role{Room: room, Volumes: vs} }
	files := at(5, volume.AtData(volume.Disk)...)
	root := at(5)
	root.Writable = true
	all := &parts{part: part{res: study.Resolved{Options: map[string]string{"x": "y"}}, roles: []workload.Role{
		files, files, root, at(5), at(5, volume.Volume{Medium: volume.Image, Size: 7}), at(5, volume.Volume{Medium: volume.Device, Size: 9}), {},
	}}, victim: &part{roles: []workload.Role{files}}}
	const want = 5 + 5 + 5 + 5 + 7 + 5
	for has, why := range map[int64]string{want: "", want - 1: "no room"} {
		p := &bounded{has: has}
		if got := (&checker{maker: &Maker{Place: p}}).roomNot(all); got != why {
			t.Errorf("with %d bytes: %q, want %q", has, got, why)
		}
		if len(p.got) != 6 || p.got[0].Volume == nil || !p.got[2].Root || p.got[3].Root || p.got[0].Options["x"] != "y" {
			t.Errorf("%+v", p.got)
		}
	}
}

// TestRoomOfCopies: each sandbox that a role has at once takes a copy of its root file system.
func TestRoomOfCopies(t *testing.T) {
	for copies, want := range map[bool]int{true: 3, false: 0} {
		p := &bounded{}
		k := &launching{kind: kind{name: "vm"}, traits: sandbox.Traits{OwnRoot: copies, CopiesRoot: copies}}
		all := &parts{part: part{res: study.Resolved{Sandbox: "vm"}, roles: []workload.Role{{Name: "main", Mode: workload.Idle, Image: "redis", Count: 3}}}}
		if why := (&checker{maker: &Maker{Place: p, Kinds: map[string]sandbox.Kind{"vm": k}}}).roomNot(all); why != "" {
			t.Error(why)
		}
		if got := append(p.got, Room{})[0]; got.Copies != want || want > 0 && got.Image != "redis" {
			t.Errorf("copies %v: %+v", copies, p.got)
		}
	}
}
