package main

import (
	"embed"
	"strings"

	"github.com/spf13/cobra"
)

// helpTexts is what --help says of each verb, and its examples: a file a verb, whose name has
// the words of a verb below another with a hyphen between.
//
//go:embed help
var helpTexts embed.FS

// examples is the line that ends the text of a verb.
const examples = "Examples:\n"

// explain gives a verb, and those below it, their texts. above is the verb above, with a hyphen.
func explain(c *cobra.Command, above string) {
	name := above + c.Name()
	text, err := helpTexts.ReadFile("help/" + name + ".txt")
	if err == nil { // else it is cobra's own, or needs no more words than Short has
		words := strings.Replace(string(text), "{variables of gates}\n", gateVariables(), 1)
		long, example, _ := strings.Cut(words, examples)
		c.Long, c.Example = strings.TrimRight(long, "\n"), strings.TrimRight(example, "\n")
	}
	if above = name + "-"; !c.HasParent() {
		above = ""
	}
	for _, sub := range c.Commands() {
		explain(sub, above)
	}
}
