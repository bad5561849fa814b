package loadfile

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// named finds the names of files in a file of any dialect. What is wrong in it, Parse says.
func named(src string) (names []string) {
	docs, err := documents("", src, nil)
	if err != nil || len(docs) != 1 {
		return namedLines(src)
	}
	root := docs[0]
	if body := get(root, "ClusterLoader"); body != nil {
		root = body
	}
	if get(root, "projects") == nil {
		return namedLines(src)
	}
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
