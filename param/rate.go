package param

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// rateUnits are bits a second, by their names in small letters.
//
//nolint:gochecknoglobals // a table that nothing changes; an array would be one too
var rateUnits = []struct {
	suffix string
	bits   float64
}{{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"bit", 1}}

// ParseRate reads the rate of a link such as 100Mbit, 1Gbit or 2.5gbit/s, as tc(8) writes
// them: bits a second, 1000-based, capitals or small. It returns bytes a second. Bytes are refused:
// 100MB and 100Mb differ by eight, and no link is sold by the former.
func ParseRate(text string) (int64, error) {
	bad := func() (int64, error) {
		return 0, fmt.Errorf("%q is not a rate; write a number and a unit, such as 500kbit, 100Mbit or 1Gbit", text)
	}
	s := strings.TrimSuffix(strings.ToLower(strings.TrimSpace(text)), "/s")
	for _, u := range rateUnits {
		num, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		num = strings.TrimSpace(num)
		n, err := strconv.ParseFloat(num, 64)
		if err != nil || math.IsNaN(n) || n < 0 || strings.ContainsAny(num, "xp_") {
			return bad()
		}
		if n*u.bits/8 >= math.MaxInt64 {
			return 0, fmt.Errorf("rate %q is too large", text)
		}
		return int64(n * u.bits / 8), nil
	}
	return bad()
}

// FormatRate writes bytes a second with the largest unit of bits that divides them.
func FormatRate(bytes int64) string {
	if bytes > math.MaxInt64/8 {
		return strconv.FormatFloat(float64(bytes)*8/1e9, 'f', -1, 64) + "Gbit"
	}
	bits := bytes * 8
	units := []string{"bit", "kbit", "Mbit", "Gbit"}
	i := 0
	for bits != 0 && bits%1000 == 0 && i < len(units)-1 {
		bits /= 1000
		i++
	}
	return strconv.FormatInt(bits, 10) + units[i]
}
