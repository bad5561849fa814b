package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tare/internal/procstat"
)

// A record is of one process, not of whoever has its number.
func TestRecord(t *testing.T) {
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	r, err := newRecord("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if !r.alive() {
		t.Error("this process is not alive")
	}
	r.PID = cmd.Process.Pid
	p, err := procstat.Read("/proc", r.PID)
	if err != nil {
		t.Fatal(err)
	}
	r.Start = p.Start
	for _, other := range []record{
		{r.Name, r.PID, r.Start + 1, r.Boot},
		{r.Name, r.PID, r.Start, "another boot"},
	} {
		if other.alive() {
			t.Errorf("%+v is alive, but %+v has the number", other, r)
		}
		if err := other.kill(); err != nil {
			t.Error(err)
		}
	}
	if !r.alive() {
		t.Fatal("another's record killed it")
	}
	if err := r.kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if r.alive() {
		t.Error("it is alive after kill")
	}
	if err := r.kill(); err != nil {
		t.Errorf("kill of one that has ended: %v", err)
	}
}

func TestRecorded(t *testing.T) {
	p := places{run: t.TempDir()}
	if all, err := p.recorded(); err != nil || len(all) != 0 {
		t.Errorf("without records: %v, %v", all, err)
	}
	if err := os.MkdirAll(p.records(), 0o700); err != nil {
		t.Fatal(err)
	}
	want := record{"etcd", 12, 4711, "boot"}
	if err := want.save(filepath.Join(p.records(), "etcd.json")); err != nil {
		t.Fatal(err)
	}
	if all, err := p.recorded(); err != nil || len(all) != 1 || all[0] != want {
		t.Errorf("%v, %v", all, err)
	}
	if err := os.WriteFile(filepath.Join(p.records(), "torn.json"), []byte(`{"Name":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.recorded(); err == nil {
		t.Error("a damaged record is no error")
	}
}

// What follows the entry on standard input is the command's.
func TestReadEntry(t *testing.T) {
	head, err := json.Marshal(entry{Net: "/x", Command: []string{"/bin/cat"}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(file, append(head, "{\x00the rest"...), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	e, rest, err := readEntry(in)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rest.Close() }()
	b := make([]byte, 100)
	n, err := rest.Read(b)
	if err != nil || string(b[:n]) != "{\x00the rest" || e.Net != "/x" {
		t.Errorf("%q, %v, %+v", b[:n], err, e)
	}
}
