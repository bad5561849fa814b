-- Schema 3 of results.db: what schema 2 makes, and the nodes that trials ran on.
ALTER TABLE trials ADD COLUMN node TEXT NOT NULL DEFAULT ''; -- nodes.name; '' of trials stored under an earlier schema

-- One row for each machine that a session could run trials on; none for sessions of an
-- earlier schema, which had one. The first one is also in the table host.
CREATE TABLE nodes (
  session INTEGER NOT NULL REFERENCES sessions(id),
  ord     INTEGER NOT NULL,
  name    TEXT NOT NULL,
  host    TEXT NOT NULL, -- JSON: the columns of the table host, mitigations, tools and warnings
  PRIMARY KEY (session, ord)
) WITHOUT ROWID;

DROP VIEW responses;
CREATE VIEW responses AS
SELECT t.name AS trial, t.seq, t.block, t.session, t.cell,
  (SELECT level FROM levels l WHERE l.trial = t.id AND l.factor = 'workload') AS workload,
  (SELECT level FROM levels l WHERE l.trial = t.id AND l.factor = 'sandbox') AS sandbox,
  s.name AS response, s.value, s.unit, t.node
FROM trials t JOIN samples s ON s.trial = t.id
WHERE t.status = 'ok' AND s.labels = '';

DROP VIEW failures;
CREATE VIEW failures AS
SELECT t.name AS trial, t.seq, t.block, t.attempt, t.cell,
  (SELECT level FROM levels l WHERE l.trial = t.id AND l.factor = 'workload') AS workload,
  (SELECT level FROM levels l WHERE l.trial = t.id AND l.factor = 'sandbox') AS sandbox,
  t.failure_kind AS kind, t.failure_phase AS phase, t.failure_reason AS reason, t.node
FROM trials t WHERE t.status = 'failed';
