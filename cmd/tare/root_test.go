package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"tare/cluster/pod"
	"tare/host/image"
	"tare/sandbox"
	"tare/site"
	"tare/study"
)

// TestBadFlag: a value that a flag cannot have is refused in words for people, before a cluster is asked.
func TestBadFlag(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"clean", "--on", "k8s", "--kube-api-qps", "abc"}, "tare: --kube-api-qps abc: write a number of requests from 1 to 100000, such as 50; see `tare clean --help`\n"},
		{[]string{"clean", "--on", "k8s", "--kube-api-qps", "-3"}, "--kube-api-qps -3: write a number of requests from"},
		{[]string{"clean", "--on", "k8s", "--kube-api-qps", "NaN"}, "--kube-api-qps NaN: write a number of requests from"},
		{[]string{"clean", "--on", "k8s", "--kube-api-qps", "1e300"}, "--kube-api-qps 1e300: write a number of requests from"},
		{[]string{"run", "x.yaml", "--at-once", "two or three"}, "--at-once 'two or three': write a whole number; see"},
		{[]string{"clean", "--json=perhaps"}, "--json perhaps: write true or false; see"},
		{[]string{"run", "x.yaml", "--app", "redis"}, "--app redis: write NAME=REFERENCE, with an = between them; see"},
		{[]string{"clean", "--on", "k8s", "-n", "Bad_NS"}, "--namespace Bad_NS: this is not a valid name of a namespace; write at most 63"},
		{[]string{"size", "--measure", "--in", "vm", "--sizes", "0"}, "--sizes 0 is out of range; write a value from 192"},
		{[]string{"size", "--measure", "--in", "runcc"}, `--in runcc: no sandbox has this name; did you mean "runc"?`},
		{[]string{"run", "x.yaml", "--no-such"}, "unknown flag: --no-such; see"},
	} {
		var out, errs bytes.Buffer
		if code := execute(t.Context(), &out, &errs, c.args); code != exitUsage || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%v: exit %d, %s, want %q", c.args, code, errs.String(), c.want)
		}
	}
}

// TestToldOnce: what a site that opens twice says is told once, until the study begins.
func TestToldOnce(t *testing.T) {
	var errs bytes.Buffer
	a := newApp(io.Discard, &errs)
	a.told.Store(&sync.Map{})
	for range 2 {
		a.say("image %s: its user is root", "app")
		a.say("image %s: its user is root", "load")
	}
	a.told.Store(nil)
	for range 2 {
		a.say("reconnected")
	}
	_ = a.stderr.Flush()
	want := "tare: image app: its user is root\ntare: image load: its user is root\ntare: reconnected\ntare: reconnected\n"
	if errs.String() != want {
		t.Errorf("told %q, want %q", errs.String(), want)
	}
}

// TestLacksClass: the error for a RuntimeClass that the cluster lacks names those that it has. A parameter of
// the missing level does not cause a second error.
func TestLacksClass(t *testing.T) {
	kinds := []sandbox.Kind{pod.New(pod.Class{Name: sandbox.Native}, nil, nil, nil), pod.New(pod.Class{Name: "gvisor", Class: "gvisor"}, nil, nil, nil)}
	_, err := study.Parse("s.yaml", []byte("study: s\nfactors: {sandbox: [process, kata], io_threads: [1, 2]}\nworkloads: {noop: {}}\n"), offeredIn(kinds), nil)
	const want = `s.yaml:2:30: the cluster has no RuntimeClass "kata"; write one of gvisor (or leave the level out with --set sandbox=process,...)`
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if _, instead := lacksClass(kinds[:1], "kata"); instead != "it has no other RuntimeClass either; install one" {
		t.Error(instead)
	}
}

// TestExitOfAbsentImage: nothing was started, and the user gave a wrong reference.
func TestExitOfAbsentImage(t *testing.T) {
	for _, err := range []error{image.ErrAbsent, image.ErrReference} {
		if code := exitCode(&site.UnableError{Err: fmt.Errorf("image x: %w", err)}, io.Discard); code != exitUsage {
			t.Errorf("%v: exit %d", err, code)
		}
	}
}
