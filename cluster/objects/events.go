package objects

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
)

// protoPrefix begins each object in protobuf.
const protoPrefix = "k8s\x00"

// maxEvent is the most bytes of an event. The API server accepts no object of more than 3 MB.
const maxEvent = 16 << 20

// streamPods is stream for pods, in protobuf
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding). It skips the fields that the load does not need.
// A load gets several events for each pod. If the client decoded them completely, or from JSON, this would be most of its work.
func streamPods(ctx context.Context, a *api, path string, see func(e *event[seenPod], at time.Time)) error {
	resp, err := a.open(ctx, path+watching, protoType+";stream=watch")
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	in := bufio.NewReader(resp.Body)
	for frame := []byte(nil); ; {
		if frame, err = nextFrame(in, frame); err != nil {
			return err
		}
		e, err := readEvent(frame)
		at := time.Now()
		if err != nil {
			return err
		}
		see(e, at)
	}
}

// nextFrame reads the next event: its length in four bytes, then its text. It reuses the buffer of the last event.
func nextFrame(in io.Reader, last []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(head[:]))
	if size > maxEvent {
		return nil, fmt.Errorf("an event of %d bytes is too large", size)
	}
	if cap(last) < size {
		last = make([]byte, size)
	}
	_, err := io.ReadFull(in, last[:size])
	return last[:size], err
}

// readEvent reads a WatchEvent. The numbers of fields are those of the generated.proto of k8s.io/apimachinery/pkg/apis/meta/v1,
// k8s.io/apimachinery/pkg/runtime and k8s.io/api/core/v1.
func readEvent(text []byte) (*event[seenPod], error) {
	e := &event[seenPod]{}
	return e, each(text, func(number protowire.Number, v []byte) error {
		switch number {
		case 1: // type
			if e.Type = string(v); e.Type == failed { // the object is then a Status
				return errEnded
			}
		case 2: // object
			return each(v, func(_ protowire.Number, raw []byte) error { // RawExtension.raw
				unknown, is := bytes.CutPrefix(raw, []byte(protoPrefix))
				if !is {
					return errors.New("an object of the watch is not in protobuf")
				}
				return each(unknown, func(number protowire.Number, v []byte) error {
					if number == 2 { // Unknown.raw
						return readPod(v, &e.Object)
					}
					return nil
				})
			})
		}
		return nil
	})
}

// readPod reads the fields of a Pod that the load needs.
func readPod(text []byte, pod *seenPod) error {
	return each(text, func(number protowire.Number, v []byte) error {
		switch number {
		case 1: // metadata
			return each(v, func(number protowire.Number, v []byte) error {
				switch number {
				case 1: // name: an object may have several pods
					pod.Metadata.Name = string(v)
				case 11: // labels
					return readLabel(v, &pod.Metadata)
				}
				return nil
			})
		case 2: // spec
			return each(v, func(number protowire.Number, v []byte) error {
				if number == 10 {
					pod.Spec.NodeName = string(v)
				}
				return nil
			})
		case 3: // status
			return each(v, func(number protowire.Number, v []byte) error {
				return readStatus(number, v, pod)
			})
		}
		return nil
	})
}

// readStatus reads a field of a PodStatus.
func readStatus(number protowire.Number, v []byte, pod *seenPod) error {
	status := &pod.Status
	switch number {
	case 1:
		status.Phase = string(v)
	case 2: // conditions
		var c corev1.PodCondition
		if err := c.Unmarshal(v); err != nil {
			return err
		}
		status.Conditions = append(status.Conditions, condition{string(c.Type), string(c.Status), c.Reason, c.Message})
	case 8: // containerStatuses
		var c corev1.ContainerStatus
		if err := c.Unmarshal(v); err != nil {
			return err
		}
		if w := c.State.Waiting; w != nil {
			var of containerStatus
			of.State.Waiting.Reason, of.State.Waiting.Message = w.Reason, w.Message
			status.ContainerStatuses = append(status.ContainerStatuses, of)
		}
	}
	return nil
}

// readLabel keeps the label that names a pod's object.
func readLabel(entry []byte, of *meta) error {
	var key, value []byte
	err := each(entry, func(number protowire.Number, v []byte) error {
		if number == 1 {
			key = v
		} else {
			value = v
		}
		return nil
	})
	if string(key) == labelObject {
		of.Labels.Object = string(value)
	}
	return err
}

// each calls f for each field of a message that has a length: strings and messages. It skips the other fields.
func each(text []byte, f func(protowire.Number, []byte) error) error {
	for len(text) > 0 {
		number, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return protowire.ParseError(n)
		}
		text = text[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, text); n < 0 {
				return protowire.ParseError(n)
			}
			text = text[n:]
			continue
		}
		v, n := protowire.ConsumeBytes(text)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := f(number, v); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}
