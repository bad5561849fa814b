package kube

import (
	"errors"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tare/sandbox"
)

// TestPullsThatLast: what kubelets say tells apart an image that can never be pulled from one that may be pulled later.
func TestPullsThatLast(t *testing.T) {
	text, err := os.ReadFile("testdata/pulls.txt")
	if err != nil {
		t.Fatal(err)
	}
	var says []string
	seen := map[string]int{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if says = append(says, line); len(says) < 2 {
			continue
		}
		head, message := strings.Fields(says[0]), says[1]
		says = nil
		if len(head) != 3 || head[0] != "lasts" && head[0] != "passes" {
			t.Fatalf("not a heading: %v", head)
		}
		seen[head[0]]++
		p := &corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
			Image: head[2], State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: head[1], Message: message}},
		}}}}
		err := WhyNot("pod", p)
		if err == nil || errors.Is(err, sandbox.ErrNoImage) != (head[0] == "lasts") || errors.Is(err, sandbox.ErrNodeLost) {
			t.Errorf("%s: want that it %s: %v", message, head[0], err)
		}
	}
	if seen["lasts"] < 3 || seen["passes"] < 3 {
		t.Errorf("%v", seen)
	}
}
