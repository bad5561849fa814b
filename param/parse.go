package param

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

//nolint:gochecknoglobals // a table that nothing changes; an array would be one too
var sizeUnits = []struct {
	suffix string
	factor float64
}{
	// Longest first, so that "KiB" is not read as "B".
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"PiB", 1 << 50}, {"EiB", 1 << 60},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15},
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}, {"Pi", 1 << 50}, {"Ei", 1 << 60},
	{"ki", 1 << 10}, {"mi", 1 << 20}, {"gi", 1 << 30}, {"ti", 1 << 40},
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40}, {"B", 1},
	// As fio, dd and container engines write them. A lower-case b after one letter is refused:
	// "1mb" could be 1000-based, 1024-based, or bits.
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40},
}

// ParseSize reads a size such as 64KiB, 4k, 1g, 512 or 512B and returns
// bytes. K, M, G, T, also small, and their i and iB forms are 1024-based, as Pi and Ei are; kB,
// MB, GB, TB, PB are 1000-based. A fraction of a byte, a negative number or one over 8 EiB is an
// error.
func ParseSize(text string) (int64, error) {
	s := strings.TrimSpace(text)
	num, factor := s, 1.0
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			num, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	n, err := strconv.ParseFloat(num, 64)
	if err != nil || math.IsNaN(n) || n < 0 || strings.ContainsAny(num, "xXpP_") {
		return 0, fmt.Errorf("%q is not a size; write a number and a unit, such as 64KiB, 4k or 1GiB", text)
	}
	b := n * factor
	if b != math.Trunc(b) {
		return 0, fmt.Errorf("size %q is not a whole number of bytes", text)
	}
	if b >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q is too large; write less than 8EiB", text)
	}
	return int64(b), nil
}

// Bounds of a CPU limit, in cores: the kernel accepts no quota below 1 ms of a period of
// 100 ms (cpu.max), and no machine has more processors than the maximum.
const (
	LeastCPULimit = 0.01
	MostCPULimit  = 8192
)

// FormatDuration writes a duration as users write it: 1h, not 1h0m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	return strings.Replace(s, "h0m", "h", 1)
}

// FormatSize writes bytes with the largest 1024-based unit that divides them.
func FormatSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + units[i]
}

// AboutSize writes bytes for people, with one decimal at most: 1.5 GiB.
func AboutSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i, x := 0, float64(n)
	for x >= 1024 && i < len(units)-1 {
		x, i = x/1024, i+1
	}
	return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) + " " + units[i]
}

// ParseDuration reads a time such as 2s, 500ms, 100us or 4m. A number without
// a unit is an error (except 0), and so is a negative time.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.ReplaceAll(strings.TrimSpace(text), " ", ""))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a time; write a number and a unit, such as 2s, 500ms or 4m", text)
	}
	return d, nil
}

// ParseCPUs reads a cpuset list such as 0-1,3 (cpuset(7), "List format") and
// returns the processors in rising order.
func ParseCPUs(text string) ([]int, error) {
	bad := func() ([]int, error) {
		return nil, fmt.Errorf("%q is not a list of processors; write numbers and ranges, such as 0-1,3", text)
	}
	var out []int
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		a, err := strconv.ParseUint(lo, 10, 16)
		if err != nil {
			return bad()
		}
		b := a
		if ranged {
			if b, err = strconv.ParseUint(hi, 10, 16); err != nil || b < a {
				return bad()
			}
		}
		if b > 8191 { // the kernel's largest NR_CPUS
			return bad()
		}
		for c := a; c <= b; c++ {
			out = append(out, int(c))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Suggest returns the end of an error message: the word nearest to a mistyped one, or a list of
// all words.
func Suggest(typo string, words []string) string {
	// The name of a family alone, such as runsc for runsc-systrap.
	if members := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return typo == "" || !strings.HasPrefix(w, typo+"-") }); len(members) > 0 {
		return "did you mean one of " + strings.Join(members, ", ") + "?"
	}
	best, dist := "", len(typo)/2+1
	for _, w := range words {
		if d := editDistance(strings.ToLower(typo), strings.ToLower(w)); d < dist {
			best, dist = w, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(words) == 0 {
		return "there are none to choose from"
	}
	if len(words) <= mostNamed {
		return "write one of " + strings.Join(words, ", ")
	}
	near := slices.Clone(words)
	slices.SortStableFunc(near, func(a, b string) int { return editDistance(typo, a) - editDistance(typo, b) })
	return fmt.Sprintf("write one of %d names, such as %s", len(words), strings.Join(near[:nearest], ", "))
}

// Suggest names at most mostNamed words, or the nearest of more.
const (
	mostNamed = 60
	nearest   = 10
)

// editDistance is the Levenshtein distance over bytes, with a transposition
// counting as one (the optimal string alignment distance).
func editDistance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
