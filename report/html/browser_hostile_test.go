package html_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/report/document"
)

// hostile makes of each name one that does harm wherever it is taken for markup,
// an address, a style of ECharts or a key of an object.
func hostile(s string) string {
	return s + `</script><script>window.harmed=1</script><img src=x onerror="window.harmed=1">` + "{a|b}\u202e'\"`${window.harmed=1}&amp;\\,=~!|#%41\n" + strings.Repeat("ü", 300)
}

func TestHostileNamesDoNothing(t *testing.T) {
	d := shape{workloads: 2, sizes: 2, name: hostile, also: func(r *analyse.Result) { r.Warnings[0].Text = hostile("warning") }}.document(t)
	d.Answer = append(d.Answer, document.Sentence{About: "__proto__", Tone: `x"><script>window.harmed=1</script>`, Text: hostile("answer")})
	d.Notes[0].Text = hostile("note")
	b := browse(t)
	b.show(d, "")
	before := eval[int](b, `document.querySelectorAll("script").length`)
	b.drawAll()
	b.do(`for (const x of document.querySelectorAll("details")) x.open = true; for (const q of document.querySelectorAll(".ask")) q.click();`)
	if eval[bool](b, `/[\u202a-\u202e]/.test(document.body.innerText + document.title)`) {
		t.Error("a name turns the text after it round")
	}
	// Tooltips of charts, by the mouse over all of them.
	b.do(`for (const c of document.querySelectorAll(".chart")) { const i = c.tareChart.instance; if (i) for (let s = 0; s < 8; s++) i.dispatchAction({type: "showTip", seriesIndex: s, dataIndex: 0}); }`)
	for _, kind := range []string{"worse", "gave-up", "skipped"} {
		b.do(`Tare.open(Tare.data.items.find((i) => i.kind === "` + kind + `").key)`)
		if !eval[bool](b, `document.querySelector("dialog[open]").innerText.includes("<script>")`) {
			t.Errorf("%s: the details do not show the name as it is", kind)
		}
	}
	b.do(`document.querySelector("dialog").close()`)
	// A filter by such a name, the address that it makes, and that address read again.
	b.do(`document.querySelector(".pick input").click()`)
	want := shown(b)
	b.show(d, eval[string](b, "location.hash"))
	if got := shown(b); len(want) == 0 || len(want) == len(compared(d)) || len(got) != len(want) {
		t.Errorf("the filter leaves %d rows, its address %d", len(want), len(got))
	}
	if eval[bool](b, `"harmed" in window || Object.prototype.harmed !== undefined`) {
		t.Error("a name was run as a script")
	}
	if n := eval[int](b, `document.querySelectorAll("img, iframe, object, embed").length`); n > 0 {
		t.Errorf("a name became %d elements", n)
	}
	if n := eval[int](b, `document.querySelectorAll("script").length`); n != before || n != 2 {
		t.Errorf("%d scripts, want 2", n)
	}
	b.size(360, 740)
	b.drawAll()
	if w := eval[int](b, "document.documentElement.scrollWidth"); w > 360 {
		t.Errorf("the page is %d px wide on a screen of 360", w)
	}
	b.quiet("file://")
}

var dataPattern = regexp.MustCompile(`(id="tare-data"[^>]*>)([^<]*)<`)

// spoil writes a report whose data are others.
func spoil(t *testing.T, data string) string {
	t.Helper()
	path := write(t, small(t))
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !dataPattern.Match(page) {
		t.Fatal("no data in the page")
	}
	page = dataPattern.ReplaceAll(page, []byte("${1}"+data+"<"))
	if err := os.WriteFile(path, page, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func packed(t *testing.T, s string) string {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(buf.Bytes())
}

// TestDamagedReportSaysSo: a page that cannot show its data says why, and the answer
// in words stays.
func TestDamagedReportSaysSo(t *testing.T) {
	b := browse(t)
	for name, c := range map[string]struct{ data, want string }{
		"none":      {"", "no data in this file"},
		"cut short": {packed(t, `{"version":1}`)[:20], "damaged"},
		"other":     {packed(t, `{"version":1,"hello":[]}`), "not the data of a report"},
		"no JSON":   {packed(t, "hello"), "damaged"},
	} {
		b.goTo("file://" + spoil(t, c.data))
		if got := eval[string](b, `document.getElementById("problem").innerText`); !strings.Contains(got, c.want) {
			t.Errorf("%s: the page says %q, want %q in it", name, got, c.want)
		}
		if n := eval[int](b, `document.querySelectorAll("#answer li").length`); n == 0 {
			t.Errorf("%s: the answer is gone", name)
		}
	}
}

// TestWithoutScripts: the answer and a table are there.
func TestWithoutScripts(t *testing.T) {
	d := small(t)
	path := write(t, d)
	b := browse(t)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.must(chromedp.Do(b.ctx, chromedp.Navigate("file://"+path)))
	words := eval[string](b, `document.body.innerText`)
	for _, want := range []string{d.Answer[0].Text, "runs no scripts", "runsc", "latency"} {
		if !strings.Contains(words, want) {
			t.Errorf("without scripts the page does not say %q", want)
		}
	}
	if n := eval[int](b, `document.querySelectorAll("noscript table tr").length`); n < 16 {
		t.Errorf("the table has %d rows", n)
	}
}

// TestHostileCauses: texts of findings and advice do nothing.
func TestHostileCauses(t *testing.T) {
	d := shape{workloads: 2, sizes: 3, name: hostile, window: true, also: findings(hostile, true)}.document(t)
	d.Modelled = hostile("m")
	d.Causes.Kinds[0].Word, d.Causes.Findings[2].Role, d.Causes.Findings[1].Cause = hostile("word"), hostile("role"), cause.Name(hostile("__proto__"))
	b := browse(t)
	b.show(d, "")
	b.drawAll()
	b.do(`for (const x of document.querySelectorAll("details")) x.open = true;`)
	for _, k := range eval[[]string](b, `[...new Map([...document.querySelectorAll("#causes td[data-open]")].reverse().map((x) => [x.dataset.cause + x.dataset.open.startsWith("cause-map"), x.dataset.open])).values()].slice(0, 5)`) {
		b.do(`Tare.open(` + quote(k) + `); for (const x of document.querySelectorAll("dialog details")) x.open = true;`)
		if !eval[bool](b, `document.querySelector("dialog[open]").innerText.includes("<script>")`) {
			t.Errorf("%.60s: the details do not show the name as it is", k)
		}
	}
	if eval[bool](b, `"harmed" in window || Object.prototype.harmed !== undefined`) {
		t.Error("a text was run as a script")
	}
	if n := eval[int](b, `document.querySelectorAll("img, iframe, object, embed").length`); n > 0 {
		t.Errorf("a text became %d elements", n)
	}
	if eval[bool](b, `/[\u202a-\u202e]/.test(document.body.innerText + document.title)`) {
		t.Error("a text turns what follows it round")
	}
	b.do(`document.querySelector("dialog").close()`)
	b.size(360, 740)
	b.drawAll()
	if w := eval[int](b, "document.documentElement.scrollWidth"); w > 360 {
		t.Errorf("the page is %d px wide on a screen of 360", w)
	}
	b.quiet("file://")
}
