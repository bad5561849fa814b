package objects

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// Paths in the pod that uses a claim.
const (
	claimPath = "/claim"
	lastWords = "/dev/termination-log" // the kubelet copies it into the pod's status when the container ends
)

// WriteClaim is `tare internal write-claim PATH`, the program of a pod that uses a claim. It writes a byte to the volume, leaves the
// times for the pod's status, and waits until the pod is deleted.
func WriteClaim(args []string, _ io.Writer) error {
	started := time.Now()
	if len(args) != 1 {
		return errors.New("write-claim: the path is missing; give the path of a volume")
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM) // the kernel delivers it to the first process of a container only with a handler
	err := writeFirst(args[0])
	text := []byte(fmt.Sprintf("cannot write to the volume: %v", err))
	if err == nil {
		text, err = json.Marshal(wrote{started.UnixNano(), time.Now().UnixNano()})
	}
	if err := errors.Join(err, os.WriteFile(lastWords, text, 0o600)); err != nil {
		return err
	}
	<-told
	return nil
}

// writeFirst writes a byte to a volume: to a new file, or to the beginning of a block device. It returns when the byte is on the storage.
func writeFirst(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	flags := os.O_WRONLY
	if info.IsDir() {
		path, flags = filepath.Join(path, "tare"), flags|os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600) //nolint:gosec // the pod's manifest names it
	if err != nil {
		return err
	}
	_, err = f.Write([]byte{1})
	return errors.Join(err, f.Sync(), f.Close())
}
