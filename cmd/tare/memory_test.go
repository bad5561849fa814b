package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/record"
	"tare/store"
)

// mostMemory is what a process that reads hostile series may take (docs/security.md), in bytes.
const mostMemory = 600 << 20

// manyReadings is a results folder with six trials, each of which has a series file of 130 kB
// with nearly as many readings as tare keeps of one.
func manyReadings(t *testing.T, dir string) string {
	t.Helper()
	source := strings.Replace(hostileStudy, "  gap: [\"a\\u202EEVIL\", b]\n", "", 1)
	db, err := store.Create(dir, store.Meta{StudySource: []byte(source), StudyFile: "x.yaml", Overrides: []string{}, Started: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	const n, series = 1 << 20, 7
	at, v := make([]time.Duration, n), make([]float64, n)
	for i := range at {
		at[i] = time.Duration(i)
	}
	var e record.Evidence
	for i := range series {
		e.Series = append(e.Series, record.Series{Name: "operations", Labels: record.MakeLabels("of", fmt.Sprint(i)), Unit: record.Count, Kind: record.Counter, T: at, V: v})
	}
	for seq := 1; seq <= 6; seq++ {
		cell := record.Cell{{Factor: "workload", Value: "w"}, {Factor: "sandbox", Value: "fake"}, {Factor: "slowdown", Value: fmt.Sprint(1 + (seq-1)%3)}}
		tr := &record.Trial{Seq: seq, Block: 1 + (seq-1)/3, Attempt: 1, Status: record.OK, Start: time.Unix(int64(seq), 0), Duration: time.Second, Cell: cell,
			Samples: []record.Sample{{Name: "elapsed", Unit: record.Second, Value: 1}}}
		if err := db.Append(t.Context(), tr, e); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "series", "*.parquet"))
	if err = errors.Join(err, db.Close()); err != nil || len(files) != 6 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if st, err := os.Stat(f); err != nil || st.Size() > 200<<10 {
			t.Fatalf("%v, %v: the test shows nothing", st, err)
		}
	}
	return dir
}

// TestMemoryOfHostileSeries: the memory that series take is bounded for the process, however many
// files a report reads and however many requests a server gets at once.
func TestMemoryOfHostileSeries(t *testing.T) {
	dir := manyReadings(t, filepath.Join(t.TempDir(), "many"))
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GOMEMLIMIT=") })
	ended := func(t *testing.T, cmd *exec.Cmd) {
		t.Helper()
		used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok || used.Maxrss<<10 > mostMemory {
			t.Errorf("it took %d MiB, want less than %d", used.Maxrss>>10, mostMemory>>20)
		}
		t.Logf("%d MiB, %v", used.Maxrss>>10, cmd.ProcessState.UserTime())
	}
	t.Run("report", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), bin, "report", "--html", dir)
		cmd.Env = env
		if out, err := cmd.Output(); err != nil || len(out) == 0 {
			t.Fatal(len(out), err)
		}
		ended(t, cmd)
	})
	t.Run("serve", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), bin, "serve", dir, "--json")
		cmd.Env = env
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		var said struct{ URL string }
		if err := json.NewDecoder(out).Decode(&said); err != nil {
			t.Fatal(err)
		}
		root, token, _ := strings.Cut(said.URL, "?")
		var asked sync.WaitGroup
		for seq := 1; seq <= 6; seq++ {
			asked.Go(func() {
				r, err := http.Get(fmt.Sprintf("%sr/many/series?trial=%d-1&%s", root, seq, token))
				if err != nil {
					t.Error(err)
					return
				}
				defer r.Body.Close()
				body, err := io.ReadAll(r.Body)
				if err != nil || r.StatusCode != http.StatusOK && r.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("trial %d: %s, %.200s, %v", seq, r.Status, body, err)
				}
			})
		}
		asked.Wait()
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		ended(t, cmd)
	})
}
