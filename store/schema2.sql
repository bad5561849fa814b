-- Schema 2 of results.db: what schema 1 makes, and checksums. They tell damage,
-- not an attacker, who can compute them as well.
ALTER TABLE evidence ADD COLUMN sha256 TEXT; -- of the file, in hexadecimal; NULL of files stored under schema 1

-- CRC-32C (Castagnoli, RFC 3720) over the rows of one thing, in the order of
-- store/sum.go. Kinds: meta and skips (id 0), session (sessions.id), trial
-- (trials.id: its rows in all tables, those of evidence included).
CREATE TABLE checksums (
  kind   TEXT NOT NULL CHECK (kind IN ('meta', 'session', 'skips', 'trial')),
  id     INTEGER NOT NULL,
  crc32c INTEGER NOT NULL,
  PRIMARY KEY (kind, id)
) WITHOUT ROWID;
