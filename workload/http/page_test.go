package httpload

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"tare/images"
)

// TestPageLength: the length that answers must have is that of the templates.
func TestPageLength(t *testing.T) {
	for _, name := range []string{"node/page.ejs", "ruby/page.erb"} {
		b, err := fs.ReadFile(images.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		// All between the two tags is there once a text.
		m := regexp.MustCompile(`(?s)^(.*)<% texts[^%]*%>(.*)<%[^=%]*%>(.*)$`).FindStringSubmatch(string(b))
		if m == nil {
			t.Fatalf("%s has no loop over texts", name)
		}
		text := strings.Replace(m[2], "<%= t %>", strings.Repeat("x", 1024), 1)
		if frame := len(m[1]) + len(m[3]); frame != pageFrame || len(text) != pageText {
			t.Errorf("%s: %d B and %d B a text, want %d and %d", name, frame, len(text), pageFrame, pageText)
		}
	}
}
