package html_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"tare/report/document"
	"tare/report/html"
)

// browser is one tab of a headless Chromium, and what it complained of.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string // of the console, exceptions, the log
	requests []string
}

// shared is the one Chromium of all tests here. A start costs more than most tests do.
var shared chromium

// TestMain ends the Chromium after the last test.
func TestMain(m *testing.M) {
	code := m.Run()
	shared.end()
	os.Exit(code)
}

// chromium is a headless browser that the first test starts, and a later one starts again if
// it has ended meanwhile.
type chromium struct {
	mu   sync.Mutex
	ctx  context.Context // with a browser while it runs
	stop func()          // ends it
}

// running returns the context of the browser.
func (c *chromium) running(path string) (context.Context, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx != nil && c.ctx.Err() == nil {
		return c.ctx, nil
	}
	c.end()
	dir, err := os.MkdirTemp("", "tare-test-chromium")
	if err != nil {
		return nil, err
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.UserDataDir(dir))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // it refuses its own sandbox as root
	}
	ctx, release := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(ctx)
	c.ctx, c.stop = ctx, func() {
		// Waits until the browser is gone: else it still writes into the directory.
		if err := chromedp.Cancel(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "closing the browser: %v\n", err)
		}
		cancel()
		release()
		_ = os.RemoveAll(dir)
	}
	return ctx, chromedp.Do(ctx) // starts it
}

// end ends the browser, if a test has started it.
func (c *chromium) end() {
	if c.stop != nil {
		c.stop()
	}
}

// browse opens a tab that shares nothing with those of other tests, and closes it at the end.
func browse(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: scripts/setup.sh test installs it")
	}
	parent, err := shared.running(path)
	if err != nil {
		t.Fatalf("starting the browser: %v", err)
	}
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	b.must(chromedp.Listen(ctx, b.note))
	call(b, network.Enable, network.EnableParams{})
	call(b, cdplog.Enable, cdp.Empty{})
	b.size(1280, 900)
	return b
}

// note takes in one event of the tab.
func (b *browser) note(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value), a.Description)
			}
			b.problems = append(b.problems, "console: "+strings.TrimSpace(strings.Join(words, " ")))
		}
	case *runtime.EventExceptionThrown:
		s := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			s += " " + x.Description
		}
		b.problems = append(b.problems, "exception: "+s)
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Level == cdplog.EntryLevelWarning {
			b.problems = append(b.problems, "log: "+e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

func (b *browser) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// call sends one command to the tab.
func call[P, R any](b *browser, cmd cdp.Command[P, R], params P) R {
	b.t.Helper()
	r, err := chromedp.Call(b.ctx, cmd, params)
	if err != nil {
		b.t.Fatalf("%s: %v", cmd.Method, err)
	}
	return r
}

// eval runs a script, waits for its promise and reads its value.
func eval[T any](b *browser, script string) T {
	b.t.Helper()
	var out T
	r := call(b, runtime.Evaluate, runtime.EvaluateParams{Expression: script, AwaitPromise: new(true), ReturnByValue: new(true)})
	if x := r.ExceptionDetails; x != nil {
		s := x.Text
		if x.Exception != nil {
			s += " " + x.Exception.Description
		}
		b.t.Fatalf("the script failed: %s\n%.300s", s, script)
	}
	if len(r.Result.Value) == 0 {
		return out
	}
	if err := json.Unmarshal([]byte(r.Result.Value), &out); err != nil {
		b.t.Fatalf("%v: %.300s\n%.300s", err, r.Result.Value, script)
	}
	return out
}

// do runs a script for what it does.
func (b *browser) do(script string) { b.t.Helper(); eval[any](b, script+"\n;null") }

// wait waits until a script says true.
func (b *browser) wait(what, script string) {
	b.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if eval[bool](b, "!!("+script+")") {
			return
		}
	}
	b.t.Fatalf("waited in vain for: %s; the page says %q", what, eval[string](b, "document.getElementById('problem')?.textContent ?? ''"))
}

// goTo loads an address and waits until the report stands there.
func (b *browser) goTo(url string) {
	b.t.Helper()
	b.must(chromedp.Do(b.ctx, chromedp.Navigate(url)))
	b.wait("the report to be ready", "document.documentElement.dataset.ready")
}

// show writes a document to a file and opens it, with a fragment or "".
func (b *browser) show(d *document.Document, fragment string) {
	b.t.Helper()
	b.goTo("file://" + write(b.t, d) + fragment)
	if got := eval[string](b, "document.documentElement.dataset.ready"); got != "yes" {
		b.t.Fatalf("the page is %s: %s", got, eval[string](b, "document.getElementById('problem').textContent"))
	}
}

func write(t testing.TB, d *document.Document) string {
	t.Helper()
	var buf bytes.Buffer
	if err := html.Write(&buf, d); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (b *browser) size(width, height int64) {
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500})
}

// media emulates a medium ("" or print) and a colour scheme (light, dark).
func (b *browser) media(medium, scheme string) {
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: medium,
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// click clicks at the middle of an element, as a mouse does.
func (b *browser) click(selector string) {
	b.t.Helper()
	// What comes into view may still grow (charts are drawn then): wait until the
	// element rests.
	at := eval[*[2]float64](b, fmt.Sprintf(`(async () => {
		const e = document.querySelector(%s);
		if (!e) return null;
		let last = "";
		for (let n = 0; n < 100; n++) {
			e.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
			await new Promise((r) => requestAnimationFrame(() => setTimeout(r, 15)));
			const r = e.getBoundingClientRect(), now = [r.x, r.y].join();
			if (now === last) return [r.x + r.width / 2, r.y + r.height / 2];
			last = now;
		}
		return null;
	})()`, quote(selector)))
	if at == nil {
		b.t.Fatalf("no element %s, or it never rests", selector)
	}
	for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
		call(b, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: input.MouseButtonLeft, ClickCount: 1})
	}
}

// press presses keys, such as kb.Tab.
func (b *browser) press(keys string, opts ...chromedp.KeyOption) {
	b.t.Helper()
	b.must(chromedp.Do(b.ctx, chromedp.KeyEvent(keys, opts...)))
}

// quiet fails when the page complained of anything, or asked for anything that
// does not begin with one of the allowed addresses.
func (b *browser) quiet(allowed ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.t.Errorf("the page complained: %s", p)
	}
	for _, r := range b.requests {
		ok := false
		for _, a := range append(allowed, "data:", "about:", "blob:") {
			ok = ok || strings.HasPrefix(r, a)
		}
		if !ok {
			b.t.Errorf("the page asked for %s", r)
		}
	}
}

// drawAll makes every chart draw, as scrolling through the page would.
func (b *browser) drawAll() {
	b.t.Helper()
	eval[any](b, `(async () => {
		for (let y = 0; y < document.body.scrollHeight; y += innerHeight * 0.8) { scrollTo({top: y, behavior: "instant"}); await new Promise((r) => requestAnimationFrame(() => setTimeout(r, 20))); }
		scrollTo({top: 0, behavior: "instant"});
	})()`) // awaited
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestVendoredLibraryIsTheOneNamed compares what is in the tree with the hash that
// the README beside it gives.
func TestVendoredLibraryIsTheOneNamed(t *testing.T) {
	for dir, name := range map[string]string{"assets/vendor": "echarts.min.js", "testdata": "axe.min.js"} {
		code, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(code); !bytes.Contains(readme, []byte("`"+hex.EncodeToString(sum[:])+"`")) {
			t.Errorf("%s/%s is %x, which its README does not say", dir, name, sum)
		}
	}
}
