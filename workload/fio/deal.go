package fio

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"tare/param"
	"tare/workload/target"
)

// Deal implements workload.Dealer. Each copy has as many of the given devices as every other, and the
// same part of the free space.
func (fio) Deal(v param.Values, k, n int) (param.Values, error) {
	out := maps.Clone(v)
	bad := func(format string, args ...any) error {
		return &param.ValueError{Param: "copies", Err: fmt.Errorf("copies = %d: "+format, append([]any{n}, args...)...)}
	}
	if v.Str("target") == target.Device {
		paths := strings.Split(v.Str("device"), ":")
		each := len(paths) / n
		if len(paths) == 1 {
			return nil, bad("they would share %s; name a device for each copy, with : between them", v.Str("device"))
		}
		if each*n != len(paths) {
			return nil, bad("%d devices cannot be dealt out evenly: device = %s; name as many for each copy, with : between them", len(paths), v.Str("device"))
		}
		out["device"] = strings.Join(paths[(k-1)*each:k*each], ":")
	}
	if free := v.Int("free"); free > 0 {
		if free < n {
			return nil, bad("free = %d percent is less than one for each copy; write free: %d or more", free, n)
		}
		out["free"] = strconv.Itoa(free / n)
	}
	return out, nil
}
