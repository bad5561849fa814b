package store

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"golang.org/x/sys/unix"

	"tare/record"
)

// TestRowGroupsThatLie: the rows of a file are bounded, whatever number it gives of them: a
// small one may point to the same pages again and again.
func TestRowGroupsThatLie(t *testing.T) {
	b := hostileSeries(t, 1<<20)
	protocol := new(thrift.CompactProtocol)
	size := int(binary.LittleEndian.Uint32(b[len(b)-8:]))
	var about format.FileMetaData
	if err := thrift.Unmarshal(protocol, b[len(b)-8-size:len(b)-8], &about); err != nil {
		t.Fatal(err)
	}
	for about.RowGroups = about.RowGroups[:1]; len(about.RowGroups) < 200; {
		about.RowGroups = append(about.RowGroups, about.RowGroups[0])
	}
	about.NumRows = 10
	footer, err := thrift.Marshal(protocol, &about)
	if err != nil {
		t.Fatal(err)
	}
	b = append(append(b[:len(b)-8-size], footer...), 0, 0, 0, 0, 'P', 'A', 'R', '1')
	binary.LittleEndian.PutUint32(b[len(b)-8:], uint32(len(footer)))
	_, err = decodeSeries(bytes.NewReader(b), int64(len(b)), func(string, record.Labels) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "rows that are read") {
		t.Errorf("%d bytes with %d rows: %v", len(b), 200<<20, err)
	}
}

// TestPipeInTheFolder: a file of the evidence that is a pipe is told, and not waited for.
func TestPipeInTheFolder(t *testing.T) {
	dir := stored(t)
	s, err := OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	trials, err := s.Trials()
	if err != nil {
		t.Fatal(err)
	}
	names, err := s.RawNames(&trials[0])
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, file := range []string{filepath.Join(seriesDir, TrialName(&trials[0])+".parquet"), filepath.Join(rawDir, TrialName(&trials[0]), names[0]+".zst")} {
		file = filepath.Join(dir, file)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	within(t, func() {
		if _, err := s.Series(&trials[0]); err == nil {
			t.Error("series were read from a pipe")
		}
		if _, err := s.Raw(&trials[0], names[0]); err == nil {
			t.Error("raw output was read from a pipe")
		}
	})
}
