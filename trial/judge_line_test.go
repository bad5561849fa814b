package trial

import "testing"

// TestLastLine: the reason of a failure is the last line that gives one.
func TestLastLine(t *testing.T) {
	for tail, want := range map[string]string{
		"": "", "a\nb\n": ": b", "fio: job a dropped\n": ": fio: job a dropped",
		"x\nfio: failed parsing rate=x\nfio: job a dropped\n":                  ": fio: failed parsing rate=x",
		"fio: failed parsing rate=x\nfio: job a b dropped\nfio: job c dropped": ": fio: failed parsing rate=x",
	} {
		if got := lastLine(tail); got != want {
			t.Errorf("%q: %q, want %q", tail, got, want)
		}
	}
}
