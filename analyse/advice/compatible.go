package advice

import "slices"

// Compatible picks those items that may be set together, the first of each pair that
// excludes another before it, and says of the others by which rule they are left out:
// their rules exclude each other, or both change one factor or file differently.
func Compatible(items []Item) (chosen []Item, left map[int]string) {
	left = make(map[int]string)
	for i := range items {
		x := &items[i]
		by := ""
		for k := range chosen {
			if y := &chosen[k]; excludes(x, y) {
				by = y.Rule
				break
			}
		}
		if by != "" {
			left[i] = by
			continue
		}
		chosen = append(chosen, *x)
	}
	return chosen, left
}

func excludes(x, y *Item) bool {
	if slices.Contains(x.NotWith, y.Rule) || slices.Contains(y.NotWith, x.Rule) {
		return true
	}
	for _, l := range x.Sets {
		if v, ok := y.Sets.Get(l.Factor); ok && v != l.Value {
			return true
		}
	}
	return false
}
