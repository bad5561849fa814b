package study

import (
	"errors"
	"strings"
	"testing"

	"tare/param"
)

// TestOptionsRefused: what a kind starts on no host is refused where the study has it.
func TestOptionsRefused(t *testing.T) {
	cat := testCatalogue()
	cat.Sandboxes["vm"] = []param.Param{
		{Name: "start", Type: param.Enum, Default: "boot", Words: []string{"boot", "snapshot"}, Help: "how"},
		{Name: "rootfs", Type: param.Enum, Default: "virtiofs", Words: []string{"virtiofs", "block"}, Help: "files"},
	}
	cat.CheckOptions = map[string]func(param.Values) error{"vm": func(v param.Values) error {
		if v.Str("start") == "snapshot" && v.Str("rootfs") != "block" {
			return errors.New("start = snapshot needs rootfs = block")
		}
		return nil
	}}
	const text = `study: s
factors:
  sandbox: [process, vm]
  start: [boot, snapshot]
  ROOTFS
workloads: {cpu: {}}
`
	for rootfs, want := range map[string]string{
		"":                          `x.yaml:4:17: sandbox "vm" is not possible: start = snapshot needs rootfs = block; change it, or exclude the combination`,
		"rootfs: [virtiofs, block]": `x.yaml:4:17: `,
		"rootfs: [block]":           "",
		"rootfs: [virtiofs, block]\nexclude: [{start: snapshot, rootfs: virtiofs}]": "",
	} {
		_, err := Parse("x.yaml", []byte(strings.Replace(text, "ROOTFS", rootfs, 1)), cat, nil)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) || err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", rootfs, err, want)
		}
	}
}
