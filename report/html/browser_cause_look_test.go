package html_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/cdproto/page"

	"tare/analyse/cause"
	"tare/report/words"
)

// TestCauseLooks: contrast, width and rules of accessibility, in light and dark, on a
// desk and a phone, with the details open, which are then all that is new. TARE_LOOK=DIR keeps pictures.
func TestCauseLooks(t *testing.T) {
	axe, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	d := withCauses(t, true)
	d.Modelled = words.ModelledAbout
	b := browse(t)
	shot := func(name, selector string) {
		dir := os.Getenv("TARE_LOOK")
		if dir == "" {
			return
		}
		box := eval[[]float64](b, fmt.Sprintf(`(() => { const r = document.querySelector(%s).getBoundingClientRect(); return [r.x, r.y + scrollY, r.width, r.height]; })()`, quote(selector)))
		r := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: new(true), Clip: &page.Viewport{X: box[0], Y: box[1], Width: box[2], Height: box[3], Scale: 1}})
		if err := os.WriteFile(dir+"/"+name+".png", r.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// axe's rules see the same in the dark, except contrast. Contrast is the dearest of them: contrastsIn asks for
	// more of it, in a fraction of the time, and TestAccessibility runs axe's rule too.
	look := func(what, part string, rules bool) {
		t.Helper()
		root := fmt.Sprintf("document.querySelector(%q)", part)
		if bad := eval[[]string](b, contrastsIn+"("+root+")"); len(bad) > 0 {
			t.Errorf("%s: too little contrast: %q", what, bad)
		}
		if out := eval[[]string](b, cut); len(out) > 0 {
			t.Errorf("%s: these stand out: %q", what, out)
		}
		if !rules {
			return
		}
		for _, v := range eval[[]json.RawMessage](b, `axe.run(`+root+`, {resultTypes: ["violations"], rules: {"color-contrast": {enabled: false}}}).then((r) => r.violations.map((v) => ({ID: v.id, Help: v.help, Nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160))})))`) {
			t.Errorf("%s: %s", what, v)
		}
	}
	for _, x := range []struct {
		scheme string
		width  int64
	}{{"light", 1280}, {"dark", 1280}, {"light", 360}} {
		name := fmt.Sprintf("%s-%d", x.scheme, x.width)
		b.media("", x.scheme)
		b.size(x.width, 900)
		b.show(d, "")
		b.drawAll()
		rules := x.scheme == "light"
		if rules {
			b.do(string(axe))
		}
		look(name, "html", rules)
		shot("causes-"+name, "#causes")
		shot("advice-"+name, "#advice")
		for _, k := range []cause.Name{cause.Helper, cause.Path} {
			b.do(fmt.Sprintf(`Tare.open(%s)`, quote(key(t, d, k))))
			b.wait("the details", `document.querySelector("dialog[open] .readings")`)
			look(name+", details", "dialog", rules)
			b.size(x.width, 2600)
			b.wait("charts", `[...document.querySelectorAll("dialog .chart")].every((c) => c.dataset.drawn)`)
			shot("cause-"+string(k)+"-"+name, "dialog")
			b.size(x.width, 900)
		}
		b.do(`document.querySelector("dialog").close()`)
	}
	b.quiet("file://")
}
