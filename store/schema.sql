-- Schema 1 of results.db. docs/results.md describes it for users; a change here
-- needs a new number in schema.go, a migration and a line there.
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- One row each time `tare run` wrote to this folder: the first run and each
-- resumption, possibly on another machine or with another version.
CREATE TABLE sessions (
  id           INTEGER PRIMARY KEY,
  started      TEXT NOT NULL,
  tare_version TEXT NOT NULL
);
CREATE TABLE host (
  session        INTEGER PRIMARY KEY REFERENCES sessions(id),
  hostname       TEXT NOT NULL,
  os             TEXT NOT NULL,
  kernel         TEXT NOT NULL,
  arch           TEXT NOT NULL,
  cpu_model      TEXT NOT NULL,
  sockets        INTEGER NOT NULL,
  cores          INTEGER NOT NULL,
  threads        INTEGER NOT NULL,
  memory_bytes   INTEGER NOT NULL,
  governor       TEXT NOT NULL,
  clocksource    TEXT NOT NULL,
  virtualization TEXT NOT NULL,
  kvm            TEXT NOT NULL,
  cgroups        TEXT NOT NULL
);
CREATE TABLE host_details (
  session INTEGER NOT NULL REFERENCES sessions(id),
  kind    TEXT NOT NULL CHECK (kind IN ('mitigation', 'tool')),
  name    TEXT NOT NULL,
  value   TEXT NOT NULL,
  PRIMARY KEY (session, kind, name)
) WITHOUT ROWID;
CREATE TABLE host_warnings (
  session INTEGER NOT NULL REFERENCES sessions(id),
  ord     INTEGER NOT NULL,
  code    TEXT NOT NULL,
  text    TEXT NOT NULL,
  PRIMARY KEY (session, ord)
) WITHOUT ROWID;

CREATE TABLE trials (
  id             INTEGER PRIMARY KEY,
  name           TEXT NOT NULL UNIQUE, -- of series/NAME.parquet and raw/NAME/
  session        INTEGER NOT NULL REFERENCES sessions(id),
  seq            INTEGER NOT NULL,
  block          INTEGER NOT NULL,
  attempt        INTEGER NOT NULL,
  cell           TEXT NOT NULL,
  status         TEXT NOT NULL,
  start          TEXT NOT NULL,        -- RFC 3339, UTC
  duration_ns    INTEGER NOT NULL,
  failure_phase  TEXT,                 -- the five are NULL unless it failed
  failure_kind   TEXT,
  failure_reason TEXT,
  failure_tail   TEXT,
  failure_role   TEXT,
  UNIQUE (seq, attempt)
);
CREATE TABLE levels (
  trial  INTEGER NOT NULL REFERENCES trials(id),
  ord    INTEGER NOT NULL,
  factor TEXT NOT NULL,
  level  TEXT NOT NULL,
  PRIMARY KEY (trial, ord)
) WITHOUT ROWID;
CREATE TABLE samples (
  trial    INTEGER NOT NULL REFERENCES trials(id),
  ord      INTEGER NOT NULL,
  name     TEXT NOT NULL,
  labels   TEXT NOT NULL,
  unit     TEXT NOT NULL,
  kind     TEXT NOT NULL,
  value    REAL,                       -- NULL: not a number
  original TEXT NOT NULL,
  PRIMARY KEY (trial, ord)
) WITHOUT ROWID;
CREATE TABLE histograms (
  trial   INTEGER NOT NULL REFERENCES trials(id),
  ord     INTEGER NOT NULL,
  name    TEXT NOT NULL,
  labels  TEXT NOT NULL,
  unit    TEXT NOT NULL,
  scale   REAL NOT NULL,
  encoded BLOB NOT NULL,
  PRIMARY KEY (trial, ord)
);
CREATE TABLE phases (
  trial       INTEGER NOT NULL REFERENCES trials(id),
  ord         INTEGER NOT NULL,
  name        TEXT NOT NULL,
  offset_ns   INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  PRIMARY KEY (trial, ord)
) WITHOUT ROWID;
CREATE TABLE warnings (
  trial INTEGER NOT NULL REFERENCES trials(id),
  ord   INTEGER NOT NULL,
  code  TEXT NOT NULL,
  text  TEXT NOT NULL,
  PRIMARY KEY (trial, ord)
) WITHOUT ROWID;
CREATE TABLE facts (
  trial INTEGER NOT NULL REFERENCES trials(id),
  name  TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (trial, name)
) WITHOUT ROWID;
-- The files of a trial: kind series has the one row with name '', kind raw one
-- row a stream. bytes is the size on disk.
CREATE TABLE evidence (
  trial INTEGER NOT NULL REFERENCES trials(id),
  kind  TEXT NOT NULL CHECK (kind IN ('series', 'raw')),
  name  TEXT NOT NULL,
  file  TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (trial, kind, name)
) WITHOUT ROWID;
CREATE TABLE skips (
  ord    INTEGER PRIMARY KEY,
  cell   TEXT NOT NULL,
  reason TEXT NOT NULL
);

CREATE INDEX samples_name ON samples (name, trial);
CREATE INDEX levels_factor ON levels (factor, level, trial);

-- One row a finished trial and figure of the whole trial.
CREATE VIEW responses AS
SELECT t.name AS trial, t.seq, t.block, t.session, t.cell,
  (SELECT level FROM levels l WHERE l.trial = t.id AND l.factor = 'workload') AS workload,
  (SELECT level FROM levels l WHERE l.trial = t.id AND l.factor = 'sandbox') AS sandbox,
  s.name AS response, s.value, s.unit
FROM trials t JOIN samples s ON s.trial = t.id
WHERE t.status = 'ok' AND s.labels = '';

-- One row a failed trial.
CREATE VIEW failures AS
SELECT t.name AS trial, t.seq, t.block, t.attempt, t.cell,
  (SELECT level FROM levels l WHERE l.trial = t.id AND l.factor = 'workload') AS workload,
  (SELECT level FROM levels l WHERE l.trial = t.id AND l.factor = 'sandbox') AS sandbox,
  t.failure_kind AS kind, t.failure_phase AS phase, t.failure_reason AS reason
FROM trials t WHERE t.status = 'failed';

-- One row a cell: how often it ran.
CREATE VIEW cells AS
SELECT cell, sum(status = 'ok') AS ok, sum(status = 'failed') AS failed,
  sum(duration_ns) / 1e9 AS seconds
FROM trials GROUP BY cell;
