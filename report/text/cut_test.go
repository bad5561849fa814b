package text

import "testing"

// TestCut: what is left out begins after a clause or a word, never within a figure.
func TestCut(t *testing.T) {
	for in, want := range map[string]string{
		"the load is 10 on 2 processors; stop\nthe other work":               "the load is 10 on 2 processors.",
		"Give it two processors. Gain: iops\nis 3 % higher":                  "Give it two processors.",
		"give it more of them, and throughput is 3.07\n× higher (3 to 4)":    "give it more of them, and throughput ...",
		"give it more of them, and throughput is up to 3.07 ×\nhigher":       "give it more of them, and throughput ...",
		"It woke up late (3 trials: rr in gvisor; cpu in runc;\nrr in runc)": "It woke up late (3 trials: rr in gvisor; cpu ...)",
		"It woke up late; wait. Two (3 trials: rr in gvisor; cpu\nin runc)":  "It woke up late; wait.",
		"Not finished. Go on: tare run\nx --on k8s -n overlay.":              "Not finished. Go on: tare run\nx --on k8s -n overlay.", // a command is whole
		"one line":              "one line",
		"plain words that\nend": "plain words ...",
	} {
		if got := (Options{lines: 1}).cut(in); got != want {
			t.Errorf("%q\n is %q\nwant %q", in, got, want)
		}
	}
}
