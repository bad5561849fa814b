package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"tare/analyse/stat"
	"tare/ordered"
	"tare/param"
	"tare/study"
)

// The compiler of gates knows that a response is text, but not which there are:
// to it, response == "elapsd" is as good as any other, and never true. In CI that
// is a gate that nothing can break. So each text that a gate holds such a name
// against is looked up here.

// verdictOf reads a verdict, also in the words of the table's legend.
func verdictOf(s string) string {
	switch s {
	case "worse":
		return string(stat.Slower)
	case "better":
		return string(stat.Faster)
	}
	return s
}

// maxKnown bounds how many words an error lists.
const maxKnown = 12

// checker walks a gate's expression. It replaces the words of the legend and
// keeps the first text that nothing can be equal to.
type checker struct {
	factors []string            // of all studies
	texts   map[string][]string // name of a variable to what it can be
	levels  map[string][]string // factor to its levels
	err     *file.Error
}

func newChecker(studies []*study.Study) *checker {
	c := &checker{factors: factorsOf(studies...), levels: make(map[string][]string), texts: make(map[string][]string)}
	var workloads, responses []string
	for _, st := range studies {
		for _, w := range st.Workloads {
			workloads = append(workloads, w.Label)
			responses = append(responses, w.Responses...)
		}
		for i := range st.Strata {
			for _, cell := range st.Strata[i].Cells {
				for _, l := range cell {
					c.levels[l.Factor] = ordered.Add(c.levels[l.Factor], l.Value)
				}
			}
		}
	}
	for _, f := range c.factors {
		name := notInName.ReplaceAllString(f, "_")
		c.texts[name] = append(c.texts[name], c.levels[f]...)
	}
	// After the factors, as in environment.
	c.texts["workload"], c.texts["response"] = unique(workloads), unique(responses)
	c.texts["question"], c.texts["only_in"] = []string{string(Cost), string(Level)}, []string{"A", "B"}
	c.texts["verdict"] = nil
	for _, v := range []stat.Verdict{stat.Faster, stat.Slower, stat.Higher, stat.Lower, stat.Equivalent, stat.Undecided} {
		c.texts["verdict"] = append(c.texts["verdict"], string(v))
	}
	return c
}

// Visit looks at one node of the expression, after those below it.
func (c *checker) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.MemberNode:
		if key, ok := n.Property.(*ast.StringNode); ok && isFactor(n.Node) {
			c.factor(key)
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "==", "!=":
			c.compared(n.Left, n.Right)
			c.compared(n.Right, n.Left)
		case "in":
			if key, ok := n.Left.(*ast.StringNode); ok && isFactor(n.Right) {
				c.factor(key)
			}
			if list, ok := n.Right.(*ast.ArrayNode); ok {
				for _, x := range list.Nodes {
					c.compared(n.Left, x)
				}
			}
		}
	}
}

func isFactor(n ast.Node) bool {
	id, ok := n.(*ast.IdentifierNode)
	return ok && id.Value == "factor"
}

func (c *checker) factor(key *ast.StringNode) {
	if !slices.Contains(c.factors, key.Value) {
		c.fail(key, fmt.Sprintf("neither study has a factor %q", key.Value), key.Value, c.factors)
	}
}

// compared looks up a text that is held against something with a name.
func (c *checker) compared(with, text ast.Node) {
	s, ok := text.(*ast.StringNode)
	if !ok {
		return
	}
	if chain, ok := with.(*ast.ChainNode); ok {
		with = chain.Node
	}
	what, known := "", []string(nil)
	switch n := with.(type) {
	case *ast.IdentifierNode:
		what, known = n.Value, c.texts[n.Value]
		if n.Value == "verdict" {
			s.Value = verdictOf(s.Value)
		}
	case *ast.MemberNode:
		key, ok := n.Property.(*ast.StringNode)
		if !ok || !isFactor(n.Node) {
			return
		}
		what, known = key.Value, c.levels[key.Value]
	}
	// "" is what a row without the factor has, and a row of both studies in only_in.
	if len(known) > 0 && s.Value != "" && !slices.Contains(known, s.Value) {
		c.fail(s, fmt.Sprintf("%s is never %q", what, s.Value), s.Value, known)
	}
}

// fail keeps the first error, with the nearest word and all that there are.
func (c *checker) fail(at ast.Node, msg, word string, known []string) {
	if c.err != nil {
		return
	}
	c.err = &file.Error{Location: at.Location(), Message: msg + "; " + instead(word, known)}
}

// instead is the nearest word, which need not be the one that is meant, and all that there are.
func instead(word string, known []string) string {
	hint := param.Suggest(word, known)
	if strings.HasPrefix(hint, "did you mean") {
		hint += " There are " + strings.Join(known[:min(len(known), maxKnown)], ", ")
		if len(known) > maxKnown {
			hint += fmt.Sprintf(" and %d more", len(known)-maxKnown)
		}
	}
	return hint
}
