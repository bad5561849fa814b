package study

import "testing"

// TestUnlimited: texts that differ in the budget alone are equal without it; any other difference stays.
func TestUnlimited(t *testing.T) {
	const base = "# What it asks.\nstudy: a\nworkloads:\n  w: {kind: noop} # fast\nstop: {fixed: 3}\n"
	const other = "study: a\nworkloads:\n  w: {kind: noop, sleeps: 2}\nstop: {fixed: 3}\n"
	want := string(Unlimited([]byte(base)))
	for _, same := range []string{
		base + "budget: {time: 4m}\n",
		base + "# At most this.\nbudget:\n  time: 10m # or more\n  blocks: 3\n",
		"# What it asks.\nstudy: a\nbudget: {blocks: 6}\nworkloads:\n  w: {kind: noop} # fast\nstop: {fixed: 3}\n",
	} {
		if got := string(Unlimited([]byte(same))); got != want {
			t.Errorf("%s\ngives %s\nwant %s", same, got, want)
		}
	}
	if string(Unlimited([]byte(other))) == want {
		t.Error("another workload is the same study")
	}
	for _, src := range []string{"", "a: [", "- budget"} {
		if got := string(Unlimited([]byte(src))); got != src {
			t.Errorf("%q gives %q", src, got)
		}
	}
}
