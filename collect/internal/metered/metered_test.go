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
	mark := record.Sample{Name: "mark"}
	taken := 0
	fail := errors.New("the file is gone")
	var now error
	r := metered.New("some", func(dst []record.Sample) ([]record.Sample, error) {
		taken++
		for begin := time.Now(); time.Since(begin) < 2*time.Millisecond; {
		}
		return append(dst, mark), now
	})
	read := func(err error) ([]record.Sample, error) {
		now = err
		return r.Read(nil)
	}
	cost := record.Sample{Name: record.CollectorCPU, Labels: "collector=some", Unit: record.Second, Kind: record.Counter}
	got, err := read(nil)
	if err != nil || len(got) != 2 || got[0] != mark || got[1] != cost {
		t.Errorf("the first reading: %v, %v", got, err)
	}
	if got, err := read(fail); !errors.Is(err, fail) || len(got) != 1 {
		t.Errorf("a reading that fails: %v, %v", got, err)
	}
	if got, err := read(nil); err != nil || got[len(got)-1].Value <= 0 {
		t.Errorf("the third reading: %v, %v; want its cost at its end", got, err)
	}
	if !r.Close() || r.Close() {
		t.Error("Close is not true at first alone")
	}
	if _, err := read(nil); !errors.Is(err, os.ErrClosed) || taken != 3 {
		t.Errorf("after Close: %v, and %d readings were taken", err, taken)
	}
}
