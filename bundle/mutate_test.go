package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestMutations changes good archives at random: what is accepted all the same
// is what its manifest says, and what is not is refused. The fuzz targets do this
// with coverage, but slowly: they carry SQLite's counters along.
func TestMutations(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	g := good(t)
	g.m.Members, g.pieces = g.m.Members[:1], g.pieces[:1]
	g.add(dbName, []byte("SQLite format 3\x00"))
	g.add("study.yaml", []byte("study: x\n"))
	whole := g.archive(t)
	accepted := 0
	for range 20000 {
		b := slices.Clone(whole)
		for range 1 + rng.IntN(4) {
			at, n := rng.IntN(len(b)), 512*(1+rng.IntN(3))
			switch rng.IntN(5) {
			case 0:
				b[at] ^= 1 << rng.IntN(8)
			case 1:
				b[at] = byte(rng.IntN(256))
			case 2: // blocks again
				at = at / 512 * 512
				b = slices.Insert(b, at, b[at:min(at+n, len(b))]...)
			case 3: // blocks less
				at = at / 512 * 512
				b = slices.Delete(b, at, min(at+n, len(b)))
			case 4:
				b = b[:at+1]
			}
			if len(b) == 0 {
				b = []byte{0}
			}
		}
		for i := 0; i+512 <= len(b); i += 512 { // else the tar reader finds most of it
			if bytes.Equal(b[i+257:i+262], []byte("ustar")) {
				resum(b[i : i+512])
			}
		}
		keep := make(keeper)
		m, err := scan(&bounded{r: bytes.NewReader(b), left: 1 << 20, allowed: 1 << 20}, keep)
		if err != nil {
			if !errors.Is(err, ErrRefused) && (m != nil || !bytes.Contains(b, []byte(`"version":`))) {
				t.Fatalf("not refused: %v", err)
			}
			continue
		}
		accepted++
		for _, x := range m.Members {
			if h := sha256.Sum256(keep[x.Name]); hex.EncodeToString(h[:]) != x.SHA256 || checkName(x.Name) != nil {
				t.Fatalf("%q was accepted", x.Name)
			}
		}
	}
	if accepted == 0 {
		t.Error("every archive was refused: the mutations are too wild to tell anything")
	}
}

// resum writes the checksum of a header: the sum of its bytes, the field itself
// counted as spaces, in octal.
func resum(h []byte) {
	copy(h[148:156], "        ")
	n := 0
	for _, c := range h {
		n += int(c)
	}
	for i := 153; i >= 148; i-- {
		h[i] = byte('0' + n&7)
		n >>= 3
	}
	h[154] = 0
}
