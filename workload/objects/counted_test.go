package objects

import "testing"

// TestCounted: one thing has no plural.
func TestCounted(t *testing.T) {
	if a, b := counted(1, "node"), counted(2, "node"); a != "1 node" || b != "2 nodes" {
		t.Errorf("%q, %q", a, b)
	}
	if a, b := notCreated(1, "object", "quota"), notCreated(2, "claim", "quota"); a != "1 object was not created: quota" || b != "2 claims were not created: quota" {
		t.Errorf("%q, %q", a, b)
	}
	if b := (&Step{Made: 5, Start: &Starts{Never: 1, Message: "no room"}}).Bound(0, 1); b.Text != "1 pod did not run: no room" {
		t.Errorf("%q", b.Text)
	}
}
