package fio_test

import (
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
