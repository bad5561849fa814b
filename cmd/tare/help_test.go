package main

import (
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each text of help/ belongs to a verb, and each verb that has a word to say about itself has one.
func TestHelpTexts(t *testing.T) {
	files, err := fs.Glob(helpTexts, "help/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, f := range files {
		left[f] = true
	}
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		words := strings.Fields(c.CommandPath())
		delete(left, "help/"+strings.Join(words[min(1, len(words)-1):], "-")+".txt")
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		if strings.Contains(c.Long, "{variables") {
			t.Errorf("%s: a mark is left in its text: %s", c.CommandPath(), c.Long)
		}
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(newRoot(newApp(io.Discard, io.Discard)))
	if len(left) > 0 {
		t.Errorf("texts of no verb: %v", left)
	}
}
