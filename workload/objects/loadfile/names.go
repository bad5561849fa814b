package loadfile

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// named finds the names of files in a file of any dialect. What is wrong in it, Parse says.
func named(src string) []string {
	root := single(src)
	if root == nil && strings.Contains(src, "{{") {
		root = single(actionRE.ReplaceAllString(src, "")) // with the parts of all conditions: which of them hold, only the values tell
	}
	if body := get(root, "ClusterLoader"); body != nil {
		root = body
	}
	switch {
	case get(root, "projects") != nil:
		return namedProjects(root)
	case get(root, "jobs") == nil:
		return namedLines(src)
	case strings.Contains(src, "{{"):
		return append(namedJobs(root), namedLines(src)...) // what is left of a template without its actions need not be all
	}
	return namedJobs(root)
}

// actionRE finds what a Go template replaces.
var actionRE = regexp.MustCompile(`(?s)\{\{.*?\}\}`)

// single is the only document of a text; nil if the text is not YAML, or has more.
func single(src string) *yaml.Node {
	docs, err := documents("", src, nil)
	if err != nil || len(docs) != 1 {
		return nil
	}
	return docs[0]
}

// namedProjects finds them in a file of cluster-loader.
func namedProjects(root *yaml.Node) (names []string) {
	add := func(n *yaml.Node, sort string) {
		for _, e := range elements(n) {
			if name := text(e, "file"); name == usual {
				names = append(names, usualFile(sort))
			} else {
				names = append(names, name)
			}
		}
	}
	add(get(root, "quotas"), "quota")
	for _, p := range elements(get(root, "projects")) {
		add(get(p, "templates"), "")
		add(get(p, "services"), "service")
		add(get(p, "pods"), "pod")
		add(get(p, "rcs"), "rc")
		for _, key := range []string{"configmaps", "secrets"} {
			if m := get(p, key); m != nil && m.Kind == yaml.MappingNode {
				for i := 1; i < len(m.Content); i += 2 {
					names = append(names, m.Content[i].Value)
				}
			}
		}
	}
	return names
}

// namedJobs finds them in a file of kube-burner.
func namedJobs(root *yaml.Node) (names []string) {
	for _, f := range elements(get(root, "global", "functionTemplates")) {
		names = append(names, f.Value)
	}
	for _, job := range elements(get(root, "jobs")) {
		for _, o := range elements(get(job, "objects")) {
			names = append(names, text(o, "objectTemplate"))
		}
	}
	return names
}

func elements(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

var (
	templateRE = regexp.MustCompile(`^\s*(?:-\s+)?objectTemplate:\s*["']?([^"'#\s]+)`)
	elementRE  = regexp.MustCompile(`^\s*-\s+["']?([^"'#\s:]+)["']?\s*(?:#.*)?$`)
)

// namedLines finds them in a file that may be a template, and so no YAML yet.
func namedLines(text string) (names []string) {
	functions := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if m := templateRE.FindStringSubmatch(line); m != nil {
			names = append(names, m[1])
		}
		m := elementRE.FindStringSubmatch(line)
		if functions = functions && m != nil; functions {
			names = append(names, m[1])
		}
		functions = functions || strings.HasPrefix(strings.TrimSpace(line), "functionTemplates:")
	}
	return names
}
