package html

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/record"
	"tare/report/document"
	"tare/report/section"
)

const evil = `</script><script>alert(1)</script><!--'"` + "`${x}"

// hostile has names and texts that would be markup if they were not escaped.
func hostile() *document.Document {
	cell := func(box string) record.Cell {
		return record.Cell{{Factor: "workload", Value: evil}, {Factor: "sandbox", Value: box}}
	}
	r := &analyse.Result{Study: evil, Compare: "sandbox", Baseline: evil, Margin: 0.03,
		Treatments: []analyse.Treatment{{Key: "b", Cell: cell("process")[1:], Baseline: true}, {Key: "t", Cell: cell(evil)[1:]}}}
	for i, k := range []string{"b", "t"} {
		c := analyse.Comparison{Workload: evil, Stratum: "s", Shared: cell("x")[:1], Treatment: k, Cell: cell(k), Baseline: i == 0,
			Response: record.Response{Name: evil, Unit: record.Second, Better: record.Lower}, Level: analyse.Level{N: 5, Typical: 0.002}, Base: analyse.Level{N: 5, Typical: 0.001}}
		if i == 1 {
			c.Estimate, c.Verdict = stat.Estimate{Ratio: 2, Lo: 1.5, Hi: 2.5, N: 5}, stat.Slower
		}
		r.Compared = append(r.Compared, c)
	}
	one := 1.5
	return &document.Document{Version: 1, Dir: evil, Study: document.Study{Name: evil}, Result: r, Answer: []document.Sentence{{Tone: "worse", Text: evil}},
		Sessions: []document.Session{}, Cells: []document.Cell{{Key: evil, Responses: []string{evil}}},
		Trials: document.Trials{Cell: []int{0}, Seq: []int{1}, Block: []int{1}, Attempt: []int{1}, Session: []int64{1}, OK: []int{1}, Start: []float64{0}, Duration: []float64{1}, Values: [][]*float64{{&one}}, Warnings: [][]string{nil}}}
}

func write(t *testing.T, d *document.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDataComeBack: what a browser unpacks is the document, and nothing of it
// stands in the page as markup.
func TestDataComeBack(t *testing.T) {
	d := hostile()
	page := write(t, d)
	_, rest, ok := strings.Cut(page, `id="tare-data" data-encoding="gzip">`)
	if !ok {
		t.Fatal("there are no data")
	}
	text, _, _ := strings.Cut(rest, "<")
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatalf("no base64: %v", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var got document.Document
	if err := json.NewDecoder(z).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, &got, cmpopts.IgnoreUnexported(document.Document{})); diff != "" {
		t.Errorf("the data (-document +page):\n%s", diff)
	}
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<!--'") {
		t.Error("a name is markup in the page")
	}
	if again := write(t, hostile()); again != page {
		t.Error("the same document gave another file")
	}
}

// TestNeedsNoNetwork: nothing that the page itself loads is elsewhere.
func TestNeedsNoNetwork(t *testing.T) {
	d := hostile()
	page := write(t, d)
	head, _, _ := strings.Cut(page, "<style>")
	_, body, _ := strings.Cut(page, "</style>")
	markup := regexp.MustCompile(`(?s)<script[^>]*>.*?</script>`).ReplaceAllString(head+body, "")
	for _, m := range regexp.MustCompile(`(?i)\b(src|href|action|data|poster|srcset)\s*=\s*"([^"]*)"`).FindAllStringSubmatch(markup, -1) {
		if !strings.HasPrefix(m[2], "#") && !strings.HasPrefix(m[2], "data:") {
			t.Errorf("the page loads %s", m[0])
		}
	}
	if strings.Contains(head, `name="tare-live"`) {
		t.Error("a file says that it is live")
	}
	if n := strings.Count(page, "</script>"); n != strings.Count(page, "<script>")+strings.Count(page, "<script ") {
		t.Errorf("%d scripts end", n)
	}
}

func TestLivePageHasNoData(t *testing.T) {
	var b bytes.Buffer
	if err := WriteLive(&b, hostile(), "/r/a%20b/"); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); !strings.Contains(s, `<meta name="tare-live" content="/r/a%20b/">`) || !strings.Contains(s, `data-encoding="gzip"></script>`) {
		t.Error("the page does not name its server, or has data")
	}
}

// TestScriptPolicyIsOfTheScripts: each script of the page is named by its hash,
// and nothing else.
func TestScriptPolicyIsOfTheScripts(t *testing.T) {
	policy, err := ScriptPolicy()
	if err != nil {
		t.Fatal(err)
	}
	page := write(t, hostile())
	var want []string
	for _, m := range regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		sum := sha256.Sum256([]byte(m[1]))
		want = append(want, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	if len(want) == 0 || policy != strings.Join(want, " ") {
		t.Errorf("the policy is %s, the scripts are %v", policy, want)
	}
}

// TestPlainSections: without scripts every section is there, its tables bounded.
func TestPlainSections(t *testing.T) {
	d := hostile()
	plain := func() string {
		d.Plain = section.Plain(d.Result)
		_, s, _ := strings.Cut(write(t, d), "<noscript>")
		s, _, _ = strings.Cut(s, "</noscript>")
		return s
	}
	for i := range d.Result.Compared {
		d.Result.Compared[i].Workload, d.Result.Compared[i].Response.Name = "rr", "latency"
	}
	s := plain()
	for _, want := range []string{`<th scope="row">rr</th><th scope="row">latency</th><th scope="row">5</th><td>2.00 ms</td><td>2.00 ▼ 1.50–2.50</td>`, `<th scope="col">process</th>`, "▼ costs more"} {
		if !strings.Contains(s, want) {
			t.Errorf("the page lacks %s:\n%s", want, s)
		}
	}
	row := d.Result.Compared
	d.Result.Compared = nil
	for i := range maxPlain + 7 {
		for _, c := range row {
			c.Stratum = strings.Repeat("s", i+1)
			d.Result.Compared = append(d.Result.Compared, c)
		}
	}
	if s := plain(); strings.Count(s, "<tr>") != maxPlain+1 || !strings.Contains(s, "7 more rows") {
		t.Error("the table is not bounded, or does not say so")
	}
	d.Result = &analyse.Result{}
	if s := plain(); !strings.Contains(s, "Nothing has been measured.") {
		t.Errorf("of nothing: %s", s)
	}
}
