// Package store keeps trials on disk: one results folder with
//
//	results.db           every trial, in SQLite (docs/results.md has the schema)
//	series/TRIAL.parquet the time series of a trial, in long form
//	raw/TRIAL/NAME.zst   what its tools printed
//	study.yaml           the study as it was given
//	lost/N/              evidence without a row, set aside by Open
//	lock                 held by the one writer
//
// The data path: 1. run passes Append a finished trial and its evidence; 2. the evidence is
// written under temporary names, renamed and flushed; 3. one transaction writes the trial: it
// is in the database completely or not at all, and when Append has returned it survives
// kill -9 and a loss of power; 4. after a crash between 2 and 3, Open removes or sets aside
// the evidence; 5. Trials, All, Series and Raw read it back, also while another process
// writes.
//
// SQLite runs in WAL mode with synchronous=FULL. NORMAL would save one fsync a trial, but
// loses the last trials with the power. A trial takes seconds to repeat, a flush about a
// millisecond.
package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
	"modernc.org/sqlite" // the database/sql driver "sqlite", without cgo: the binary stays static
	sqlite3 "modernc.org/sqlite/lib"

	"tare/record"
)

// Names in a results folder.
const (
	dbName    = "results.db"
	seriesDir = "series"
	rawDir    = "raw"
	lostDir   = "lost" // evidence without a row, moved here by Open
	studyName = "study.yaml"
)

// TicketName is the file in which a results folder keeps the secret with which its session is returned to. It is there before the
// results.
const TicketName = "session.json"

// modelledKey is a key of the table meta in folders of modelled trials.
const modelledKey = "modelled"

// flagsKey is a key of the table meta: Meta.Flags.
const flagsKey = "flags"

// earlierKey is a key of the table meta: Meta.Earlier.
const earlierKey = "earlier_budgets"

// Budget is a budget that a study had until it was given a larger one. 0 is no limit.
type Budget struct {
	Time   time.Duration `json:"time_ns,omitempty"`
	Blocks int           `json:"blocks,omitempty"`
	Trials int           `json:"trials"` // that were stored by then
}

// Meta is what a results folder is about. Nodes, Host, TareVersion and Started belong
// to the first session; Sessions has the others.
type Meta struct {
	StudySource []byte   // the text of the study
	StudyFile   string   // the name it was read from
	Overrides   []string // the --set arguments
	Seed        uint64
	Nodes       []record.Node // for Create: none stands for one without a name, which Host describes
	Host        record.Host   // of the first node
	TareVersion string
	Started     time.Time
	// Modelled: the trials come from the model, not from a machine. A folder never has both;
	// callers that add trials must check.
	Modelled bool
	// Flags are the flags that selected the site of the first run, such as "--on k8s --tare-image REFERENCE"; "": this host.
	Flags string
	// Earlier are the smaller budgets that the study had before, the first one first.
	Earlier []Budget
}

// Session is one run that wrote to the folder.
type Session struct {
	ID          int64
	Started     time.Time
	TareVersion string
	Host        record.Host   // of the first node
	Nodes       []record.Node // at least one
}

// Hosts describes the session's nodes.
func (s *Session) Hosts() []record.Host {
	if len(s.Nodes) == 0 {
		return []record.Host{s.Host}
	}
	out := make([]record.Host, len(s.Nodes))
	for i := range s.Nodes {
		out[i] = s.Nodes[i].Host
	}
	return out
}

func (m *Meta) nodes() []record.Node {
	if len(m.Nodes) > 0 {
		return m.Nodes
	}
	return []record.Node{{Host: m.Host}}
}

// ErrNoResults is wrapped by the errors of Open and OpenReadOnly for a path that is not a
// results folder: nothing is there, a file is, or a folder in which Create died.
var ErrNoResults = errors.New("not a results folder")

// ErrEmpty is an ErrNoResults with a database of 0 bytes.
var ErrEmpty = fmt.Errorf("%w: its %s has 0 bytes, because a copy was cut short or a run was killed at its start; copy the folder again, or remove that file", ErrNoResults, dbName)

// ErrReadOnly is returned when a store from OpenReadOnly is written to.
var ErrReadOnly = errors.New("the results folder is open for reading only")

// Store is one open results folder. It is safe for concurrent use.
type Store struct {
	dir        string
	db         *sql.DB
	root       *os.Root // reads of evidence cannot leave the folder
	version    int
	readers    int           // batches of trials that are loaded concurrently, each on a connection
	patience   time.Duration // for one query
	mostLoaded int           // maxLoaded, except in tests
	mostPicked int           // maxPicked, except in tests
	writable   bool
	lock       *os.File
	scratch    string // a private copy of the database, removed by Close
	found      findings
	aside      Aside

	mu       sync.Mutex // one Append at a time; guards the fields below
	session  int64
	appended int // trials, since the folder was opened
	enc      *zstd.Encoder
	codec    parquetzstd.Codec // of the series
}

// findings are the damage found so far.
type findings struct {
	mu  sync.Mutex
	all map[Damage]bool
}

// Create makes the folder and opens it for writing with a first session. The folder must be
// absent, empty, or left by a Create that was killed. For a folder with results, Create
// returns an error that wraps fs.ErrExist: use Open.
func Create(dir string, meta Meta) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // results are meant to be read by others than root
		return nil, fmt.Errorf("create the results folder: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s, err := create(dir, meta)
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("create results in %s: %w", dir, err)
	}
	s.lock = lock
	return s, nil
}

func create(dir string, meta Meta) (_ *Store, err error) {
	if err := vacant(dir); err != nil {
		return nil, err
	}
	for _, d := range []string{seriesDir, rawDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil { //nolint:gosec // as above
			return nil, err
		}
	}
	if _, err := writeFile(filepath.Join(dir, studyName), meta.StudySource); err != nil {
		return nil, err
	}
	s, err := openDB(dir, dsn(filepath.Join(dir, dbName), "rwc"))
	if err != nil {
		return nil, err
	}
	s.writable = true
	s.version = SchemaVersion
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if err := harden(context.Background(), s.db, s.readers); err != nil {
		return nil, err
	}
	overrides, err := json.Marshal(meta.Overrides)
	if err != nil {
		return nil, err
	}
	err = s.transact(context.Background(), func(ctx context.Context, c *sql.Conn) error {
		if err := createSchema(ctx, c, 0); err != nil {
			return err
		}
		about := [][2]string{
			{"format", "tare results"},
			{"schema", strconv.Itoa(SchemaVersion)},
			{"study_file", meta.StudyFile},
			{"study", string(meta.StudySource)},
			{"overrides", string(overrides)},
			{"seed", strconv.FormatUint(meta.Seed, 10)},
		}
		if meta.Modelled { // without the key the trials are measured, as in older folders
			about = append(about, [2]string{modelledKey, "true"})
		}
		if meta.Flags != "" {
			about = append(about, [2]string{flagsKey, meta.Flags})
		}
		for _, kv := range about {
			if _, err := c.ExecContext(ctx, "INSERT INTO meta VALUES (?, ?)", kv[0], kv[1]); err != nil {
				return err
			}
		}
		if s.session, err = insertSession(ctx, c, meta.Started, meta.TareVersion, meta.nodes()); err != nil {
			return err
		}
		return errors.Join(s.seal(ctx, c, sumMeta, 0), s.seal(ctx, c, sumSkips, 0), s.seal(ctx, c, sumSession, s.session))
	})
	if err != nil {
		return nil, err
	}
	s.checkpoint()
	if err := syncDir(dir); err != nil {
		return nil, err
	}
	return s, syncDir(filepath.Dir(filepath.Clean(dir)))
}

// vacant checks that Create may use dir, and removes an unfinished database.
func vacant(dir string) error {
	if err := Vacant(dir); err != nil {
		return err
	}
	for _, end := range append(sideFiles(), "") {
		if err := os.Remove(filepath.Join(dir, dbName+end)); err != nil && !errors.Is(err, fs.ErrNotExist) { //nolint:gosec // below the folder that the user named
			return err
		}
	}
	return nil
}

// Vacant returns an error if Create may not use dir, because it has results or files of others. It changes nothing. A folder that does not
// exist is vacant.
func Vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	evidence, err := evidenceIn(dir)
	if err != nil {
		return err
	}
	hasDB, foreign := false, ""
	for _, e := range entries {
		switch e.Name() {
		case "lock", TicketName, seriesDir, rawDir, studyName, tempName(studyName), dbName + "-journal", dbName + "-wal", dbName + "-shm":
		case dbName:
			hasDB = true
		default:
			foreign = e.Name()
		}
	}
	if hasDB {
		s, err := openDB(dir, dsn(filepath.Join(dir, dbName), "rw"))
		if err != nil {
			return err
		}
		_, err = s.checkSchema(context.Background())
		_ = s.Close()
		if !errors.Is(err, errUnfinished) {
			return fmt.Errorf("the folder has results already: %w; resume them, or give another folder", fs.ErrExist)
		}
	}
	if len(evidence) > 0 {
		return lostDatabase(evidence)
	}
	if foreign != "" {
		return fmt.Errorf("the folder holds %q, which is not a result of tare; give an empty folder", foreign)
	}
	return nil
}

// lostDatabase is the error for a folder that has evidence but no database: a fresh start
// would overwrite the evidence.
func lostDatabase(evidence []string) error {
	trials := "trial " + evidence[0]
	if n := len(evidence); n > 1 {
		trials = fmt.Sprintf("%d trials (%s to %s)", n, evidence[0], evidence[n-1])
	}
	return fmt.Errorf("the evidence of %s is in %s/ and %s/, but %s is empty: it or its log %s-wal was lost or damaged. "+
		"Restore both from a copy or a bundle. Without a copy, move the folder away or give another folder; its files stay readable without the database (docs/results.md)",
		trials, seriesDir, rawDir, dbName, dbName)
}

// Exists reports whether dir has results that Open accepts. A folder in which Create was
// killed has none.
func Exists(dir string) bool {
	s, err := OpenReadOnly(dir)
	if err == nil {
		err = s.Close()
	}
	return !errors.Is(err, ErrNoResults) // results that are damaged or too new are there all the same
}

// Open opens a folder to go on with it. Errors: ErrNoResults, a *LockedError
// when someone else writes to it, ErrNewer. Unfinished files of a trial are
// removed, and those of a trial without a row are set aside (SetAside). The caller tells where it runs with BeginSession.
func Open(dir string) (*Store, error) {
	if err := present(dir); err != nil {
		return nil, fmt.Errorf("open results in %s: %w", dir, err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s, err := open(dir)
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("open results in %s: %w", dir, err)
	}
	s.lock = lock
	return s, nil
}

func open(dir string) (_ *Store, err error) {
	s, err := openDB(dir, dsn(filepath.Join(dir, dbName), "rw"))
	if err != nil {
		return nil, err
	}
	s.writable = true
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	ctx := context.Background()
	if err = s.vet(ctx); err != nil {
		return nil, err
	}
	if err = s.checkPages(ctx); err != nil {
		return nil, err
	}
	if err = s.db.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM sessions").Scan(&s.session); err != nil {
		return nil, fmt.Errorf("read the sessions: %w", err)
	}
	for _, d := range []string{seriesDir, rawDir} {
		// A folder that was copied without empty directories is still good.
		if err = os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil { //nolint:gosec // as in Create
			return nil, err
		}
	}
	if err = s.verifyAll(ctx); err != nil {
		return nil, err
	}
	if err = s.upgrade(ctx); err != nil {
		return nil, fmt.Errorf("bring the results to schema %d: %w", SchemaVersion, err)
	}
	if err = s.removeOrphans(ctx); err != nil {
		return nil, fmt.Errorf("clear what a dead trial left: %w", err)
	}
	return s, nil
}

// vet checks that a database is tare's, before any other query.
func (s *Store) vet(ctx context.Context) (err error) {
	if err := harden(ctx, s.db, s.readers); err != nil {
		return unreadable(err)
	}
	if s.version, err = s.checkSchema(ctx); err != nil {
		return err
	}
	if err := s.checkShape(ctx); err != nil {
		return err
	}
	return s.checkNames(ctx)
}

// queryTime is how long one query may take: a thousand times as long as on the largest study.
// A damaged or hostile file can make a query endless, with pages that point to each other,
// twenty levels deep.
const queryTime = time.Minute

// harden sets the limits that SQLite recommends for untrusted databases
// (https://www.sqlite.org/security.html), on every connection.
func harden(ctx context.Context, db *sql.DB, connections int) error {
	held := make([]*sql.Conn, 0, connections)
	defer func() {
		for _, c := range held {
			_ = c.Close() // back into the pool
		}
	}()
	for range connections {
		c, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		held = append(held, c)
		for _, l := range [][2]int{
			{sqlite3.SQLITE_LIMIT_LENGTH, 64 << 20}, // of a text or a row
			{sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000},
			{sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100},
			{sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 3},
			{sqlite3.SQLITE_LIMIT_VDBE_OP, 25_000},
			{sqlite3.SQLITE_LIMIT_FUNCTION_ARG, 8},
			{sqlite3.SQLITE_LIMIT_ATTACHED, 1}, // VACUUM INTO attaches its file
			{sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200},
			{sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 10},
		} {
			if _, err := sqlite.Limit(c, l[0], l[1]); err != nil {
				return err
			}
		}
		// SQLite opens the log by its name at a connection's first read. Reading now lets the
		// folder be moved later.
		var version int
		if err := c.QueryRowContext(ctx, "PRAGMA schema_version").Scan(&version); err != nil {
			return err
		}
	}
	return nil
}

// dsn returns the driver's address of a database file. Defensive mode, trusted_schema and
// cell_size_check make SQLite safe against a database made by someone else
// (https://www.sqlite.org/security.html).
func dsn(path, mode string, more ...string) string {
	q := url.Values{"mode": {mode}, "_txlock": {"immediate"}, "_defensive": {"1"}}
	q["_pragma"] = []string{"busy_timeout(10000)", "trusted_schema(0)", "cell_size_check(1)", "foreign_keys(1)"}
	if mode != "ro" {
		q["_pragma"] = append(q["_pragma"], "journal_mode(WAL)", "synchronous(FULL)")
	}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}
	return u.String()
}

func openDB(dir, address string) (*Store, error) {
	if err := plainFiles(dir); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", address)
	if err != nil {
		return nil, err
	}
	// A writable store has one connection: SQLite has one writer anyway, and a second
	// connection would only use memory beside the load.
	db.SetMaxOpenConns(1)
	root, err := os.OpenRoot(dir)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return &Store{dir: dir, db: db, root: root, readers: 1, patience: queryTime, mostLoaded: maxLoaded, mostPicked: maxPicked, codec: parquetzstd.Codec{Level: zstd.SpeedFastest}}, nil
}

// Dir returns the folder.
func (s *Store) Dir() string { return s.dir }

// Close closes the folder and releases the writer's lock. What Append stored is durable
// without it.
func (s *Store) Close() error {
	err := s.db.Close()
	if s.root != nil {
		err = errors.Join(err, s.root.Close())
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
		s.lock = nil
	}
	if s.scratch != "" {
		err = errors.Join(err, os.RemoveAll(s.scratch)) //nolint:gosec // below the folder that the user named
		s.scratch = ""
	}
	return err
}
