package main

import (
	"context"
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"tare/collect/collecttest"
	"tare/collect/remote"
	"tare/collect/system"
	"tare/record"
)

// TestCollectProcess: `tare internal collect` reads a collector of this host for another
// process. A Ctrl-C at the terminal is not for it.
func TestCollectProcess(t *testing.T) {
	var child *collecttest.Child
	c := remote.New(system.New(), 10*time.Millisecond, func(context.Context) (_ io.ReadWriteCloser, err error) {
		child, err = collecttest.Start(exec.Command(bin, "internal", "collect"))
		return child, err
	})
	p, err := c.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	points := 0
	for points < 10 {
		got, err := p.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got {
			if s.Name == record.CollectorCPU {
				points++
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
