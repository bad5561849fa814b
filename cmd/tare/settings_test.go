package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/host"
	"tare/record"
)

// TestKillGivesSettingsBack: a run is killed while the host has a setting of one of its trials. `tare clean` gives it
// back, and so does the next run. The level is above the host's own, so that others on the host feel nothing.
func TestKillGivesSettingsBack(t *testing.T) {
	here := &host.Site{Dirs: host.DefaultDirs()}
	if err := here.Settings().Check(map[string]string{record.SettingARPLimit: "64"}); err != nil {
		t.Skip("this host has no setting that a study can change: ", err)
	}
	const file = "/proc/sys/net/ipv4/neigh/default/gc_thresh3"
	read := func() string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	before := read()
	n, err := strconv.Atoi(before)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	study := filepath.Join(dir, "study.yaml")
	text := fmt.Sprintf("study: settings\nfactors: {sandbox: [process], arp-limit: [%d]}\nworkloads:\n  rr: {kind: net, mode: rr, duration: %%s, warmup: 0s, responses: [rate]}\nstop: {fixed: 1}\nsentinel: off\n", 2*n)
	write := func(duration string) {
		if err := os.WriteFile(study, []byte(fmt.Sprintf(text, duration)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, next := range map[string]func(){
		"clean": func() { tareBy{}.clean(t) },
		"run": func() {
			write("50ms")
			tareBy{}.run(t, "run", study, "-o", filepath.Join(dir, "after"), "--wait")
			for _, tr := range load(t, filepath.Join(dir, "after")) {
				if got, want := tr.Facts[record.SettingARPLimit], fmt.Sprintf("gc_thresh3 %d", 2*n); !strings.HasSuffix(got, want) {
					t.Errorf("in force was %q, want %s", got, want)
				}
			}
		},
	} {
		write("1m")
		out, _, _ := endAt(t, tareBy{}.command("run", study, "-o", filepath.Join(dir, name), "--wait"), syscall.SIGKILL,
			func(int, string) bool { return read() == strconv.Itoa(2*n) }, time.Millisecond)
		if read() == before {
			t.Logf("another tare gave it back first; the killed one said %s", out)
		}
		next()
		if got := read(); got != before {
			t.Errorf("after a kill and `tare %s` it is %s, want %s", name, got, before)
		}
	}
}
