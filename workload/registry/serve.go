package registry

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"tare/workload/inside"
)

// serve is the registry of go-containerregistry: `/tare internal registry serve`.
func serve(ctx context.Context, args []string, stderr io.Writer) error {
	fs := inside.Flags("tare internal registry serve", stderr)
	dir := fs.String("storage", "", "`folder` of blobs and manifests")
	if err := inside.Parse(fs, args); err != nil {
		return err
	}
	if *dir == "" {
		return fmt.Errorf("%w: --storage is missing", inside.ErrUsage)
	}
	h, err := newHandler(*dir)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return err
	}
	s := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: h}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// maxManifest bounds a manifest, in bytes, as registries do.
const maxManifest = 4 << 20

// handler is go-containerregistry's registry with blobs on the disk. That one keeps manifests in memory alone,
// so handler notes them, for the next process that serves the same storage.
type handler struct {
	http.Handler
	manifests string // folder
}

// noted is a manifest that was put.
type noted struct {
	Path string `json:"path"`
	Type string `json:"type"`
	Body []byte `json:"body"`
}

func newHandler(dir string) (*handler, error) {
	h := &handler{
		manifests: filepath.Join(dir, "manifests"),
		Handler:   ggcr.New(ggcr.WithBlobHandler(ggcr.NewDiskBlobHandler(filepath.Join(dir, "blobs"))), ggcr.Logger(log.New(io.Discard, "", 0))),
	}
	for _, d := range []string{h.manifests, filepath.Join(dir, "blobs")} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			return nil, fmt.Errorf("cannot make the registry's storage: %w", err)
		}
	}
	found, err := filepath.Glob(filepath.Join(h.manifests, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, path := range found {
		if err := h.recall(path); err != nil {
			return nil, fmt.Errorf("cannot read the manifest %s: %w", path, err)
		}
	}
	return h, nil
}

// recall puts a noted manifest again.
func (h *handler) recall(path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // in the registry's own folder
	if err != nil {
		return err
	}
	var n noted
	if err := json.Unmarshal(text, &n); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPut, n.Path, bytes.NewReader(n.Body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", n.Type)
	w := answer{header: http.Header{}}
	if h.Handler.ServeHTTP(&w, r); w.status != http.StatusCreated {
		return fmt.Errorf("the registry answers with status %d", w.status)
	}
	return nil
}

// answer takes the status of an answer that nobody reads.
type answer struct {
	header http.Header
	status int
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return len(b), nil }

// ServeHTTP notes a manifest before it is put.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut && filepath.Base(filepath.Dir(r.URL.Path)) == "manifests" {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
		if err == nil {
			err = h.note(noted{r.URL.Path, r.Header.Get("Content-Type"), body})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	h.Handler.ServeHTTP(w, r)
}

func (h *handler) note(n noted) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(h.manifests, base64.RawURLEncoding.EncodeToString([]byte(n.Path))+".json"), text, 0o600) //nolint:gosec // base64 has no path in it
}
