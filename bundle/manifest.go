package bundle

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Manifest is the first member.
type Manifest struct {
	Format  string   `json:"format"`
	Version int      `json:"version"`
	Tare    string   `json:"tare"`              // version of the tare that made the bundle
	Folder  string   `json:"folder"`            // name of the results folder
	Trials  int      `json:"trials"`            // in the database
	Missing []string `json:"missing,omitempty"` // files of trials that are gone from the folder, or do not match their checksum
	Members []Member `json:"members"`           // sorted by name
}

// Member is one file of a bundle other than manifest.json.
type Member struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // 64 hexadecimal digits
}

// Bytes returns the size of all members.
func (m *Manifest) Bytes() int64 {
	var n int64
	for i := range m.Members {
		n += m.Members[i].Size
	}
	return n
}

// Bounds of manifest.json: bytes for 400,000 members; commas, of which a member has three
// (a list of empty items takes much more memory than its text); bytes of tare's version.
const (
	maxManifest = 64 << 20
	maxCommas   = 2e6
	maxTare     = 200
)

func readManifest(tr *tar.Reader) (*Manifest, error) {
	h, err := next(tr)
	if errors.Is(err, io.EOF) {
		return nil, refuse("it is empty")
	}
	if err != nil {
		return nil, err
	}
	if h.Name != manifestName {
		return nil, refuse("it does not begin with %s, so tare did not make it", manifestName)
	}
	if h.Size > maxManifest {
		return nil, refuse("its manifest has %d bytes; tare reads at most %d", h.Size, maxManifest)
	}
	text, err := io.ReadAll(tr)
	if err != nil {
		return nil, broken(err)
	}
	if bytes.Count(text, []byte(",")) > maxCommas {
		return nil, refuse("its manifest lists more files than a bundle may have")
	}
	m := new(Manifest)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, refuse("cannot read its manifest: %w", err)
	}
	return m, nil
}

// check checks a manifest and returns its members by name.
func (m *Manifest) check(allowed int64) (map[string]Member, error) {
	switch {
	case m.Format != format:
		return nil, refuse("its manifest says %.300q, not %.300q", m.Format, format)
	case m.Version > Version:
		return nil, fmt.Errorf("%w: it is in format %d, and this one reads up to %d: use the tare that made it (%.40q), or a later one", ErrNewer, m.Version, Version, m.Tare)
	case m.Version < 1:
		return nil, refuse("its manifest says format %d", m.Version)
	}
	if err := checkFolder(m.Folder); err != nil {
		return nil, err
	}
	members, fold := make(map[string]Member, len(m.Members)), make(map[string]string, len(m.Members))
	var total int64
	for _, x := range m.Members {
		if err := checkName(x.Name); err != nil {
			return nil, err
		}
		if other, ok := fold[folded(x.Name)]; ok {
			if other == x.Name {
				return nil, refuse("%.300q is in its manifest twice", x.Name)
			}
			return nil, refuse("%.300q and %.300q differ only in case", other, x.Name)
		}
		fold[folded(x.Name)] = x.Name
		if x.Size < 0 || x.Size > allowed-total {
			return nil, tooLarge(allowed)
		}
		total += x.Size
		members[x.Name] = x
	}
	if _, ok := members[dbName]; !ok {
		return nil, refuse("it has no %s", dbName)
	}
	if len(m.Tare) > maxTare {
		return nil, refuse("its manifest gives a version of tare with %d bytes", len(m.Tare))
	}
	for _, name := range m.Missing { // they are shown to the user
		if err := checkName(name); err != nil {
			return nil, err
		}
		if _, ok := fold[folded(name)]; ok {
			return nil, refuse("its manifest lists %.300q as missing, but has it too or lists it twice", name)
		}
		fold[folded(name)] = name
	}
	return members, nil
}
