package metered_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"tare/collect/internal/metered"
	"tare/record"
)

// TestRead: the cost comes last, and is that of the readings before; a reading that fails
// costs too, and gives none; after Close nothing is taken.
func TestRead(t *testing.T) {
	r := metered.New("some")
	mark := record.Sample{Name: "mark"}
	taken := 0
	fail := errors.New("the file is gone")
	read := func(err error) ([]record.Sample, error) {
		return r.Read(nil, func(dst []record.Sample) ([]record.Sample, error) {
			taken++
			for begin := time.Now(); time.Since(begin) < 2*time.Millisecond; {
			}
			return append(dst, mark), err
		})
	}
	cost := record.Sample{Name: record.CollectorCPU, Labels: "collector=some", Unit: record.Second, Kind: record.Counter}
	got, err := read(nil)
	if err != nil || len(got) != 2 || got[0] != mark || got[1] != cost {
		t.Errorf("the first reading: %v, %v", got, err)
	}
	if got, err := read(fail); !errors.Is(err, fail) || len(got) != 1 {
		t.Errorf("a reading that fails: %v, %v", got, err)
	}
	cost.Value = r.Seconds()
	if got, err := read(nil); err != nil || cost.Value <= 0 || got[len(got)-1] != cost {
		t.Errorf("the third reading: %v, %v; want at its end %v", got, err, cost)
	}
	if !r.Close() || r.Close() {
		t.Error("Close is not true at first alone")
	}
	if _, err := read(nil); !errors.Is(err, os.ErrClosed) || taken != 3 {
		t.Errorf("after Close: %v, and %d readings were taken", err, taken)
	}
}
