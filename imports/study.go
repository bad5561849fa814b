package imports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/internal/yamlcheck"
	"tare/ordered"
	"tare/param"
	"tare/record"
	"tare/study"
)

// carried is the name of the Catalogue in the section files of a study. It cannot be the path
// of a file.
const carried = "tare:imported"

// Catalogue describes a study of imported results. The study's text contains it.
type Catalogue struct {
	Origin    Origin              `json:"origin"`
	Workloads map[string]workload `json:"workloads"`
	Sandboxes []string            `json:"sandboxes"`
	Own       map[string][]string `json:"own,omitempty"` // factors of only some sandboxes, with these sandboxes
}

type workload struct {
	Params    []string          `json:"params,omitempty"`
	Responses []record.Response `json:"responses"`
}

// unknown is the level of the sandbox if the source does not name one.
const unknown = "unknown"

var (
	workloadName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`)
	factorName   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,62}$`)
	studyName    = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
)

// reserved lists names that have another meaning in a study file.
func reserved() []string {
	return []string{"kind", "responses", "every", "share", study.FactorCounting}
}

// Name makes a study's name from any text.
func Name(text string) string {
	n := strings.Trim(studyName.ReplaceAllString(text, "-"), "-_")
	if len(n) > 63 {
		n = n[:63]
	}
	if n == "" {
		return "imported"
	}
	return n
}

// CheckFactor returns an error if a word cannot name a factor.
func CheckFactor(name string) error {
	if !factorName.MatchString(name) || slices.Contains(reserved(), name) {
		return fmt.Errorf("%q cannot name a factor; use letters, digits, -, _ and ., at most 63, and not %s", name, strings.Join(reserved(), ", "))
	}
	return nil
}

// text makes the study file.
func (s *Set) text() ([]byte, error) {
	levels := map[string][]string{}
	cat := Catalogue{Origin: s.Origin, Workloads: map[string]workload{}, Own: s.own()}
	params := map[string]map[string][]string{} // of a workload: its own factors and their levels
	for _, f := range s.Factors {
		if err := CheckFactor(f); err != nil {
			return nil, err
		}
	}
	for i := range s.Trials {
		l := s.Trials[i].Levels
		l[study.FactorSandbox] = cmp.Or(l[study.FactorSandbox], unknown)
		w := l[study.FactorWorkload]
		if !workloadName.MatchString(w) || len(w) > 63 || w == study.SentinelLabel {
			return nil, fmt.Errorf("%q cannot name a workload; use letters, digits, - and _, at most 63", w)
		}
		if params[w] == nil {
			params[w] = map[string][]string{}
		}
		for f, v := range l {
			switch {
			case f == study.FactorWorkload:
				continue
			case v == "" || len(v) > 512 || v != strings.TrimSpace(v) || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }):
				return nil, fmt.Errorf("%q is not a level of %s; write text of at most 512 bytes on one line", v, f)
			case f == study.FactorSandbox && len(v) > 63:
				return nil, fmt.Errorf("%q cannot name a sandbox; choose another name", v)
			}
			levels[f] = ordered.Add(levels[f], v)
			if !slices.Contains(tareFactors(), f) && cat.Own[f] == nil && !slices.Contains(params[w][f], v) {
				params[w][f] = append(params[w][f], v)
			}
		}
	}
	rise(levels)
	for w := range params {
		rise(params[w])
	}
	factors := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range append(tareFactors(), slices.Sorted(maps.Keys(cat.Own))...) {
		if len(levels[f]) > 0 {
			factors.Content = append(factors.Content, word(f), words(levels[f]))
		}
	}
	cat.Sandboxes = levels[study.FactorSandbox]
	works := &yaml.Node{Kind: yaml.MappingNode}
	for _, w := range slices.Sorted(maps.Keys(params)) {
		info, body, err := s.work(w, params[w], len(cat.Sandboxes))
		if err != nil {
			return nil, err
		}
		cat.Workloads[w] = info
		works.Content = append(works.Content, word(w), body)
	}
	compare, baseline := cmp.Or(s.Compare, study.FactorSandbox), s.Baseline
	if len(levels[compare]) == 0 {
		return nil, fmt.Errorf("there is no factor %q to compare; %s", compare, param.Suggest(compare, slices.Sorted(maps.Keys(levels))))
	}
	if baseline == "" {
		baseline = levels[compare][0]
	} else if !slices.Contains(levels[compare], baseline) {
		return nil, fmt.Errorf("the baseline %q is not a level of %s; %s", baseline, compare, param.Suggest(baseline, levels[compare]))
	}
	carry, err := json.Marshal(cat)
	if err != nil {
		return nil, err
	}
	root := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
		word("study"), word(Name(s.Name)), word("about"), word(strings.ToValidUTF8(s.About, "?")),
		word("compare"), word(compare), word("baseline"), word(baseline),
		word("factors"), factors, word("workloads"), works,
		word("stop"), {Kind: yaml.MappingNode, Content: []*yaml.Node{word("fixed"), {Kind: yaml.ScalarNode, Value: fmt.Sprint(s.most())}}},
		word("sentinel"), word("off"), word("calls"), word("off"),
		word("files"), {Kind: yaml.MappingNode, Content: []*yaml.Node{word(carried), word(string(carry))}},
	}}
	if s.Tables.Node != nil {
		root.Content = append(root.Content, word("tables"), s.Tables.Node)
	}
	return yaml.Marshal(root)
}

// work is the workload w of the study: with the levels of its own factors, in so many sandboxes.
func (s *Set) work(w string, params map[string][]string, sandboxes int) (workload, *yaml.Node, error) {
	info, cells := workload{Responses: s.Responses[w]}, max(1, sandboxes)
	if len(info.Responses) == 0 {
		return info, nil, fmt.Errorf("the workload %s has no figures", w)
	}
	body := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{word("kind"), word(w)}}
	for _, f := range s.Factors {
		if own := params[f]; len(own) > 0 { // its own levels: another workload may have others
			info.Params = append(info.Params, f)
			body.Content = append(body.Content, word(f), words(own))
			if cells *= len(own); cells > maxCells {
				return info, nil, fmt.Errorf("the levels of %s make more than %d cells; leave factors out, or import it in parts", w, maxCells)
			}
		}
	}
	return info, body, nil
}

// tareFactors are factors that need no parameter of a workload.
// own returns the factors of only some sandboxes, with these sandboxes: every trial of them has
// the factor, and no trial of the others, such as a virtual machine's processors. The other
// sandboxes are compared with each of their levels.
func (s *Set) own() map[string][]string {
	if s.Compare != "" && s.Compare != study.FactorSandbox {
		return nil
	}
	has := map[string]map[string]int{} // of a factor: trials by sandbox
	all := map[string]int{}
	for i := range s.Trials {
		l := s.Trials[i].Levels
		sandbox := cmp.Or(l[study.FactorSandbox], unknown)
		all[sandbox]++
		for f, v := range l {
			if v == "" || f == study.FactorWorkload || slices.Contains(tareFactors(), f) {
				continue
			}
			if has[f] == nil {
				has[f] = map[string]int{}
			}
			has[f][sandbox]++
		}
	}
	out := map[string][]string{}
	for f, of := range has {
		whole := len(of) < len(all)
		for sandbox, n := range of {
			whole = whole && n == all[sandbox]
		}
		if whole {
			out[f] = slices.Sorted(maps.Keys(of))
		}
	}
	return out
}

func tareFactors() []string {
	out := []string{study.FactorSandbox, study.FactorWorkload}
	return append(out, param.Names(study.Factors())...)
}

// most returns the number of trials of the cell with the most trials.
func (s *Set) most() int {
	n, most := map[string]int{}, 1
	for i := range s.Trials {
		k := identity(s.Trials[i].Levels)
		n[k]++
		most = max(most, n[k], s.Trials[i].Block)
	}
	return min(most, 100_000)
}

// word returns a scalar that YAML cannot take for a number or a truth value.
func word(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: text, Style: yaml.DoubleQuotedStyle}
}

func words(list []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, t := range list {
		n.Content = append(n.Content, word(t))
	}
	return n
}

// parse reads the text back, and checks that each trial has its cell.
func (s *Set) parse(text []byte) (*study.Study, error) {
	cat, ok := Of(text)
	if !ok {
		return nil, errors.New("the imported study has too many levels and responses; leave some out")
	}
	st, err := study.Parse("study.yaml", text, cat.Study(), nil)
	if err != nil {
		if err = s.Tables.blame(err, text); strings.HasPrefix(err.Error(), s.Tables.File+":") && s.Tables.Node != nil {
			return nil, err
		}
		return nil, fmt.Errorf("cannot make a study of the imported results: %w", err)
	}
	cells := cellsOf(st)
	for i := range s.Trials {
		if _, ok := cells[identity(s.Trials[i].Levels)]; !ok {
			return nil, fmt.Errorf("the trial %s does not fit the factors: name the same factors for every trial of a workload", strings.ReplaceAll(identity(s.Trials[i].Levels), ",", ", "))
		}
	}
	return st, nil
}

func cellsOf(st *study.Study) map[string]record.Cell {
	out := map[string]record.Cell{}
	for i := range st.Strata {
		for _, c := range st.Strata[i].Cells {
			levels := make(map[string]string, len(c))
			for _, l := range c {
				levels[l.Factor] = l.Value
			}
			out[identity(levels)] = c
		}
	}
	return out
}

// identity returns a text that is equal for equal levels.
func identity(levels map[string]string) string {
	c := make(record.Cell, 0, len(levels))
	for _, f := range slices.Sorted(maps.Keys(levels)) {
		c = append(c, record.Level{Factor: f, Value: levels[f]})
	}
	return c.Key()
}

// Of returns the Catalogue in a study's text; false if the study was not imported.
func Of(text []byte) (Catalogue, bool) {
	var cat Catalogue
	if len(text) > study.MaxSource || !bytes.Contains(text, []byte(carried)) { // the usual case
		return cat, false
	}
	list, ok := yamlcheck.Scalar(text, "files", carried) // the text is untrusted, and may not be a study at all
	if !ok || list == "" || len(list) > study.MaxFile {
		return cat, false
	}
	return cat, json.Unmarshal([]byte(list), &cat) == nil
}

// Study returns the catalogue with which the study can be parsed.
func (c Catalogue) Study() study.Catalogue {
	out := study.Catalogue{Workloads: map[string]study.WorkloadInfo{}, Sandboxes: map[string]study.SandboxInfo{}}
	for name, w := range c.Workloads {
		info := study.WorkloadInfo{Responses: func(param.Values) []record.Response { return w.Responses }, Endpoints: 2}
		for _, p := range w.Params {
			info.Params = append(info.Params, param.Param{Name: p, Type: param.String, Help: "of the imported results"})
		}
		out.Workloads[name] = info
	}
	for _, name := range c.Sandboxes {
		var params []param.Param
		for _, f := range slices.Sorted(maps.Keys(c.Own)) {
			if slices.Contains(c.Own[f], name) {
				params = append(params, param.Param{Name: f, Type: param.String, Help: "of the imported results"})
			}
		}
		out.Sandboxes[name] = study.SandboxInfo{Params: params, Traits: func(param.Values) record.Traits { return traits(name) }}
	}
	return out
}

// rise sorts the levels of factors by number.
func rise(levels map[string][]string) {
	for f := range levels {
		slices.SortStableFunc(levels[f], byNumber)
	}
}

// byNumber orders levels that are numbers by these, before words, which stay as they came.
func byNumber(a, b string) int {
	x, notX := strconv.ParseFloat(a, 64)
	y, notY := strconv.ParseFloat(b, 64)
	switch {
	case notX == nil && notY == nil:
		return cmp.Compare(x, y)
	case notX == nil:
		return -1
	case notY == nil:
		return 1
	}
	return 0
}
