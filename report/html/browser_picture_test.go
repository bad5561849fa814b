package html_test

import (
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
)

// TestPicture makes the picture of a report for the documentation:
//
//	TARE_PICTURE=results/first/report.html:docs/img/report.png go test -run Picture ./report/html
func TestPicture(t *testing.T) {
	from, to, ok := strings.Cut(os.Getenv("TARE_PICTURE"), ":")
	if !ok {
		t.Skip("TARE_PICTURE=REPORT.html:PICTURE.png makes a picture; both are paths from the module's root or absolute")
	}
	abs := func(p string) string {
		if strings.HasPrefix(p, "/") {
			return p
		}
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(dir, "report/html") + p
	}
	b := browse(t)
	b.media("", "light")
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 1280, Height: 900, DeviceScaleFactor: 1.5}) // sharp on good screens
	b.goTo("file://" + abs(from))
	b.drawAll()
	// From the top to the end of the intervals.
	r := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: new(true), Clip: &page.Viewport{Width: 1280, Scale: 1,
		Height: eval[float64](b, `Math.min(2400, document.getElementById("table").getBoundingClientRect().top + scrollY - 8)`)}})
	if err := os.WriteFile(abs(to), r.Data, 0o600); err != nil {
		t.Fatal(err)
	}
}
