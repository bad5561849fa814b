package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/bundle"
	"tare/cluster/objects"
	"tare/record"
	"tare/report/document"
	"tare/store"
)

// TestReadSource: whatever the user names, readSource refuses it in bounded time and memory
// unless it is a study file.
func TestReadSource(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	large, err := os.Create(at("large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := large.Truncate(1 << 40); err != nil { // it takes no room
		t.Fatal(err)
	}
	for _, name := range []string{"silent", "open"} {
		if err := syscall.Mkfifo(at(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		f, err := os.OpenFile(at(name), os.O_RDWR, 0) // does not wait for a reader
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("open", "study: x\n")
	for name, want := range map[string]string{
		"/dev/zero": "it is a device; give a study file", at("large"): "is larger than 1MiB", at("silent"): "nothing was written to it within 50ms",
		at("open"): "the program that writes to it did not finish within 50ms", dir: "it is a directory without results; give a study file, such as ", at("none"): "does not exist; check the path",
	} {
		if src, err := readSource(name, 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d bytes, %v; want %q", name, len(src), err, want)
		}
	}
	const text = "study: x\n"
	read, write2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }()
	go func() {
		_, _ = write2.WriteString(text)
		_ = write2.Close()
	}()
	if src, err := readSource(fmt.Sprint("/dev/fd/", read.Fd()), time.Minute); err != nil || string(src) != text {
		t.Errorf("a pipe: %q, %v", src, err)
	}
}

// TestReadSourceWaitsForTheWriter: the writer of a pipe may open it later, and pause.
func TestReadSourceWaitsForTheWriter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() {
		time.Sleep(100 * time.Millisecond) // so that the reader opens it first
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("study: ")
			time.Sleep(100 * time.Millisecond)
			_, err2 := f.WriteString("x\n")
			err = errors.Join(err, err2, f.Close())
		}
		wrote <- err
	}()
	src, err := readSource(file, time.Minute)
	if string(src) != "study: x\n" || err != nil {
		t.Errorf("%q, %v", src, err)
	}
	if err == nil {
		err = <-wrote
	}
	if err != nil {
		t.Error(err)
	}
}

// TestSeriesOfAReportEnd with the verb, and when they have taken too long together.
func TestSeriesOfAReportEnd(t *testing.T) {
	db, err := store.OpenReadOnly(hostileFolder(t, filepath.Join(t.TempDir(), "a")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		ctx  context.Context
		most time.Duration
		want error
	}{{t.Context(), time.Hour, nil}, {stopped, time.Hour, context.Canceled}, {t.Context(), 1, document.ErrNoTime}, {t.Context(), 0, document.ErrNoTime}} {
		if err := seriesOf(c.ctx, db, c.most)(&record.Trial{Seq: 1, Attempt: 1}, func([]record.Series) {}); !errors.Is(err, c.want) {
			t.Errorf("got %v, want %v", err, c.want)
		}
	}
	if err := (results{db}).page(stopped, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("a report that was stopped: %v", err)
	}
}

// TestMissingIsCut: a manifest of 17 kB named a million files, and tare printed each of them.
func TestMissingIsCut(t *testing.T) {
	m := &bundle.Manifest{Missing: make([]string, 1_000_000)}
	for _, asJSON := range []bool{false, true} {
		var out, errs strings.Builder
		a := newApp(&out, &errs)
		if err := a.tell(describeBundle("x", m, 1, nil), asJSON); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(errs.String(), "\ntare: and 999980 more files\n") || strings.Count(errs.String(), "\n") != maxMissing+1 || out.Len() > 20_000 {
			t.Errorf("%d bytes and %s", out.Len(), errs.String())
		}
	}
}

// TestLoadFileOnCluster: a load file that asks for what the cluster lacks is refused in the file when the study is read, also for claims.
func TestLoadFileOnCluster(t *testing.T) {
	const load = "study: s\nfactors: {sandbox: [process]}\nworkloads: {w: {kind: objects, file: f.yaml}}\nfiles:\n" +
		"  f.yaml: |\n    jobs: [{name: n, objects: [{objectTemplate: p.yml}]}]\n" +
		"  p.yml: |\n    {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {\n      nodeSelector: {disk: ssd}, containers: [{name: c}]}}\n"
	const claims = "study: s\nfactors: {sandbox: [process]}\nworkloads: {w: {kind: claims, class: kata}}\n"
	for text, says := range map[string]string{load: "p.yml:2:18: none of the cluster's 0 nodes has the label disk=ssd", claims: "the cluster has no RuntimeClass \"kata\""} {
		file := filepath.Join(t.TempDir(), "s.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readStudyOf(offeredWithout, nil, file, nil); err != nil {
			t.Errorf("no cluster is known: %v", err)
		}
		if _, _, err := readStudyOf(offeredWithout, &objects.Cluster{}, file, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
