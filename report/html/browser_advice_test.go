package html_test

import (
	"strings"
	"testing"
)

// TestAdvice: the patch can be copied, and is there to select; its cells open.
func TestAdvice(t *testing.T) {
	d := withCauses(t, true)
	b := browse(t)
	b.show(d, "")
	text := eval[string](b, `document.getElementById("advice").innerText`)
	for _, s := range []string{"Boot two vCPUs", "latency is 39 % lower (32 to 45 %) than with default_vcpus=1, 12 blocks of 3 combinations", "2.5 times the CPU", "with a low CPU limit",
		"pod manifest", "rule: more-queues", "not proven: no cell with another limit"} {
		if !strings.Contains(text, s) {
			t.Errorf("the advice lacks %q: %s", s, text)
		}
	}
	want := d.Advice[0].Patches[0].Text
	if got := eval[string](b, `document.querySelector("#advice pre").textContent`); got != want {
		t.Errorf("the patch is %q", got)
	}
	b.click(`#advice .patch button`)
	b.wait("what the button says", `/Copied|Selected/.test(document.querySelector("#advice .patch button").textContent)`)
	if eval[string](b, `document.querySelector("#advice .patch button").textContent`) != "Copied" {
		if got := eval[string](b, `getSelection().toString()`); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("selected is %q", got)
		}
	}
	// A cell of a table lists its cells; one of them opens.
	b.click(`#causes [data-causes] tr:nth-child(4) td.heat`)
	b.wait("the list", `document.querySelectorAll("dialog[open] .causelist li").length === 3`)
	b.click(`dialog .causelist li:first-child button`)
	b.wait("its readings", `document.querySelector("dialog[open] .readings")`)
	b.quiet("file://")
}
