package plot

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"tare/record"
	"tare/study"
)

// longest is the bound of a file's name, without extension and what makes it unique.
const longest = 80

// name gives each figure the name of its file, made of workload, response and
// those fixed levels that are not the study's only ones: letters, digits, dots, hyphens and underscores. Where something had
// to be left out, a piece of the hash of the whole follows, so that the name of a
// figure does not depend on which others are drawn. Two that are still alike,
// upper and lower case taken as one, are numbered.
func name(figs []Figure, varies func(factor string) bool) {
	taken := map[string]bool{"index": true}
	for i := range figs {
		f := &figs[i]
		parts := []string{f.Workload, f.Response.Name}
		switch {
		case f.Summary != "":
			parts[0] = "table-" + f.Summary
		case f.Curve != nil:
			parts = append([]string{"curve-" + f.Curve.Name}, parts...)
			if f.Workload == "" {
				parts[1] = "all"
			}
		case f.Plateaus:
			parts = []string{"plateaus", f.Workload}
		case f.Kind == Grid:
			parts[0] = "grid"
		case f.Kind == Starts:
			parts[0] = "starts"
		case f.Workload == "" || f.overview():
			parts[0] = "all"
		}
		if f.Response.Name == "" {
			parts[1] = string(f.Value)
		} else if f.Value == Cost {
			parts = append(parts, string(f.Value))
		}
		for _, l := range f.Fixed {
			if varies(l.Factor) {
				parts = append(parts, l.Factor, l.Value)
			}
		}
		whole := append(record.Cell{{Factor: study.FactorWorkload, Value: f.Workload}, {Factor: FactorResponse, Value: f.Response.Name}}, f.Fixed...).Key()
		base := slug(parts, whole)
		n := base
		for k := 2; taken[strings.ToLower(n)]; k++ {
			n = base + "-" + strconv.Itoa(k)
		}
		taken[strings.ToLower(n)] = true
		f.Name = n
	}
}

// slug makes a file's name of parts; whole is what they stand for.
func slug(parts []string, whole string) string {
	var b strings.Builder
	lossy := false
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('-')
		}
		for j, r := range p {
			switch {
			case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.' && j > 0:
				b.WriteRune(r)
			default:
				lossy = true
				b.WriteByte('_')
			}
		}
	}
	s := b.String()
	if len(s) > longest {
		s, lossy = s[:longest], true
	}
	if s == "" || s[0] == '-' || s[0] == '.' {
		s = "figure" + strings.TrimLeft(s, ".")
	}
	if lossy {
		sum := sha256.Sum256([]byte(whole))
		s = strings.TrimRight(s, "-_.") + "-" + hex.EncodeToString(sum[:6])
	}
	return s
}
