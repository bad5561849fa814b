package vm

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tare/param"
	"tare/sandbox"
)

// cat reads a file in a sandbox.
func cat(t *testing.T, inst sandbox.Instance, path string) string {
	t.Helper()
	var out, said bytes.Buffer
	exit, err := inst.Exec(t.Context(), sandbox.Command{
		Args: []string{"/bin/sh", "-c", `while read -r l; do echo "$l"; done < "$0"`, path}, Stdout: &out, Stderr: &said,
	})
	if err != nil || exit.Code != 0 {
		t.Fatalf("reading %s: %+v, %v; %s", path, exit, err, &said)
	}
	return out.String()
}

// TestSizes boots machines and counts their processors and memory from inside: rows of
// the table that sizing is held to, with a memory limit beside.
func TestSizes(t *testing.T) {
	k := host(t)
	f, err := os.Open(filepath.FromSlash("../../sizing/testdata/sandbox_sizing.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		limit, request, vcpus, want := row[0], row[1], row[2], row[3]
		// Plugged in by a whole limit, and by a broken one: the rows with a request differ in
		// nothing that a machine sees, and without a limit nothing is plugged in.
		if request != "none" || limit == "none" || limit == "2" {
			continue
		}
		t.Run(limit+" and "+vcpus, func(t *testing.T) {
			spec := spec(t)
			spec.Options = map[string]string{paramVCPUs: vcpus, paramMaxVCPUs: "8", paramMemory: "256"}
			spec.CPULimit = cores(t, limit)
			spec.MemoryLimit = 200 << 20
			inst := startVM(t, k, spec)
			online := strings.TrimSpace(cat(t, inst, "/sys/devices/system/cpu/online"))
			n := 1
			if _, last, many := strings.Cut(online, "-"); many {
				i, err := strconv.Atoi(last)
				if err != nil {
					t.Fatal(err)
				}
				n = i + 1
			}
			if strconv.Itoa(n) != want || inst.Facts()["vcpus_total"] != want {
				t.Errorf("processors %s are online, want %s of them; facts %v", online, want, inst.Facts())
			}
			total := strings.Fields(cat(t, inst, "/proc/meminfo"))[1]
			kib, err := strconv.ParseInt(total, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			// 200 MiB are plugged in as two blocks. The kernel keeps some for itself.
			const has = 512 << 20
			if got := kib << 10; got > has || got < has-120<<20 {
				t.Errorf("MemTotal is %s, want a little less than %s", param.FormatSize(got), param.FormatSize(has))
			}
			t.Log(inst.Facts(), inst.Boot())
		})
	}
}

// cores reads a limit as Kubernetes writes it.
func cores(t *testing.T, text string) float64 {
	t.Helper()
	milli, isMilli := strings.CutSuffix(text, "m")
	x, err := strconv.ParseFloat(milli, 64)
	if err != nil {
		t.Fatal(err)
	}
	if isMilli {
		x /= 1000
	}
	return x
}
