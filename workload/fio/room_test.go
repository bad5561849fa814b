package fio_test

import (
	"slices"
	"strconv"
	"testing"

	"tare/param"
	"tare/workload/fio"
)

// TestRoom: the load says how much its files take, also those of a job file; not where they are as large as the disk allows.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		v    param.Values
		want int64
	}{
		{param.Values{"size": "1TiB", "jobs": "2"}, 2 << 40},
		{param.Values{"size": "1TiB", "rw": "write"}, 1 << 40},
		{param.Values{"jobfile": "[a]\nsize=100t\nnumjobs=2\n"}, 200 << 40},
		{param.Values{"free": "50"}, 0},
	} {
		v, err := param.Fill(fio.New().Params(), c.v)
		if err != nil {
			t.Fatal(err)
		}
		roles, err := fio.New().Roles(v)
		if err != nil || roles[0].Room != c.want {
			t.Errorf("%v: %v, %d bytes, want %d", c.v, err, roles[0].Room, c.want)
		}
	}
}

// TestRoomOfJobFile: a volume is as large as the sections of a job file need it, and so much a given device must have.
func TestRoomOfJobFile(t *testing.T) {
	two := param.Values{"target": "device", "device": "/dev/sdb:/dev/sdc"}
	one := param.Values{"target": "device", "device": "/dev/sdb"}
	for _, c := range []struct {
		v    param.Values
		file string
		want []int64
	}{
		{param.Values{"target": "block"}, "[a]\nsize=1g\n", []int64{1 << 30}},
		{param.Values{"target": "block"}, "[a]\nsize=1m\n", []int64{64 << 20}},
		{param.Values{"target": "block", "size": "1GiB"}, "[a]\nsize=50%\n", []int64{1 << 30}},
		{param.Values{"target": "image"}, "[a]\nsize=1g\nnumjobs=3\n", []int64{3<<30*5/4 + 64<<20}},
		{one, "[a]\nsize=1g\noffset=1g\n[b]\nsize=1m\n", []int64{2 << 30}},
		{one, "[a]\nsize=2m\n", []int64{2 << 20}},
		{one, "[a]\nsize=1k\n", []int64{1 << 20}},
		{one, "[a]\nbs=4k\n", []int64{64 << 20}},
		{two, "[a]\nsize=1g\n[b]\nfilename=/dev/data2\nsize=4g\n", []int64{512 << 20, 4 << 30}},
	} {
		c.v["jobfile"] = c.file
		v, err := param.Fill(fio.New().Params(), c.v)
		if err != nil {
			t.Fatal(err)
		}
		roles, err := fio.New().Roles(v)
		if err != nil {
			t.Errorf("%q: %v", c.file, err)
			continue
		}
		var got []int64
		for _, x := range roles[0].Volumes {
			got = append(got, x.Size)
			if c.v["target"] != "image" && !slices.Contains(roles[0].Before, "--size="+strconv.FormatInt(x.Size, 10)) {
				t.Errorf("%q: %d bytes of %s are not laid out: %q", c.file, x.Size, x.Path(), roles[0].Before)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: the volumes have %d bytes, want %d", c.file, got, c.want)
		}
	}
}
