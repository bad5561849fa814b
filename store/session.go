package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"tare/record"
)

// BeginSession records that another run goes on with these results, on which nodes (one
// at least) and with which version. Trials appended from now on belong to it.
func (s *Store) BeginSession(ctx context.Context, started time.Time, version string, nodes []record.Node) error {
	if !s.writable {
		return ErrReadOnly
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.transact(ctx, func(ctx context.Context, c *sql.Conn) error {
		id, err := insertSession(ctx, c, started, version, nodes)
		if err != nil {
			return err
		}
		if err = s.seal(ctx, c, sumSession, id); err == nil {
			s.session = id
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("begin a session in %s: %w", s.dir, err)
	}
	return nil
}

func insertSession(ctx context.Context, c *sql.Conn, started time.Time, version string, nodes []record.Node) (int64, error) {
	res, err := c.ExecContext(ctx, "INSERT INTO sessions (started, tare_version) VALUES (?, ?)", timeText(started), version)
	if err != nil {
		return 0, err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return 0, err
	}
	h := nodes[0].Host
	w := inserter{ctx: ctx, c: c}
	w.into("host", "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?")
	w.row(id, h.Hostname, h.OS, h.Kernel, h.Arch, h.CPUModel, h.Sockets, h.Cores, h.Threads, h.MemoryBytes,
		h.Governor, h.Clocksource, h.Virtualization, h.KVM, h.Cgroups)
	w.into("host_details", "?,?,?,?")
	for _, k := range slices.Sorted(maps.Keys(h.Mitigations)) {
		w.row(id, "mitigation", k, h.Mitigations[k])
	}
	for _, k := range slices.Sorted(maps.Keys(h.Tools)) {
		w.row(id, "tool", k, h.Tools[k])
	}
	w.into("host_warnings", "?,?,?,?")
	for i, x := range h.Warnings {
		w.row(id, i, x.Code, x.Text)
	}
	w.into("nodes", "?,?,?,?")
	for i, n := range nodes {
		text, err := json.Marshal(n.Host)
		if err != nil {
			return 0, err
		}
		w.row(id, i, n.Name, string(text))
	}
	return id, w.close()
}

// damagedSessions returns the ids of the sessions that do not match their checksum.
func (s *Store) damagedSessions(ctx context.Context) (map[int64]bool, error) {
	bad := make(map[int64]bool)
	if s.version < 2 {
		return bad, nil
	}
	err := s.reading(ctx, func(ctx context.Context, c *sql.Conn) error {
		sums, err := s.sums(ctx, c, sumSession, math.MinInt64, math.MaxInt64)
		if err != nil {
			return err
		}
		for id := range sums {
			bad[id] = true
		}
		ids, err := s.sessionIDs(ctx, c)
		for _, id := range ids {
			bad[id] = true
		}
		for id := range bad {
			if err != nil {
				return err
			}
			var crc uint32
			if crc, err = s.sumOf(ctx, c, sumSession, id); err == nil {
				if want, ok := sums[id]; ok && want == crc {
					delete(bad, id)
				}
			}
		}
		return err
	})
	for id := range bad {
		s.note(Damage{DamagedSession, strconv.FormatInt(id, 10), "its rows are not those that were stored, so its machine is not shown"})
	}
	return bad, err
}

// sessionIDs lists the sessions in the database.
func (s *Store) sessionIDs(ctx context.Context, c *sql.Conn) (ids []int64, err error) {
	err = s.scan(ctx, c, "SELECT id FROM sessions", nil, func(row []driver.Value) error {
		id, _ := row[0].(int64)
		ids = append(ids, id)
		return nil
	})
	return ids, err
}

// Sessions returns every run that wrote here, in order. It leaves out damaged ones (Damage).
func (s *Store) Sessions() ([]Session, error) {
	ctx := context.Background()
	bad, err := s.damagedSessions(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the sessions in %s: %w", s.dir, err)
	}
	var out []Session
	index := make(map[int64]int)
	err = s.each(ctx, `SELECT s.id, s.started, s.tare_version, h.hostname, h.os, h.kernel, h.arch, h.cpu_model, h.sockets, h.cores,
		h.threads, h.memory_bytes, h.governor, h.clocksource, h.virtualization, h.kvm, h.cgroups
		FROM sessions s JOIN host h ON h.session = s.id ORDER BY s.id`, nil, func(r *sql.Rows) error {
		var x Session
		var started string
		h := &x.Host
		if err := r.Scan(&x.ID, &started, &x.TareVersion, &h.Hostname, &h.OS, &h.Kernel, &h.Arch, &h.CPUModel, &h.Sockets, &h.Cores,
			&h.Threads, &h.MemoryBytes, &h.Governor, &h.Clocksource, &h.Virtualization, &h.KVM, &h.Cgroups); err != nil {
			return err
		}
		if bad[x.ID] {
			return nil
		}
		var err error
		if x.Started, err = time.Parse(time.RFC3339Nano, started); err != nil {
			return err
		}
		index[x.ID] = len(out)
		out = append(out, x)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the sessions in %s: %w", s.dir, err)
	}
	err = s.each(ctx, "SELECT session, kind, name, value FROM host_details", nil, func(r *sql.Rows) error {
		var id int64
		var kind, name, value string
		if err := r.Scan(&id, &kind, &name, &value); err != nil {
			return err
		}
		i, ok := index[id]
		if !ok {
			return nil
		}
		m := &out[i].Host.Tools
		if kind == "mitigation" {
			m = &out[i].Host.Mitigations
		}
		if *m == nil {
			*m = make(map[string]string)
		}
		(*m)[name] = value
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the host's details in %s: %w", s.dir, err)
	}
	err = s.each(ctx, "SELECT session, code, text FROM host_warnings ORDER BY session, ord", nil, func(r *sql.Rows) error {
		var id int64
		var w record.Warning
		if err := r.Scan(&id, &w.Code, &w.Text); err != nil {
			return err
		}
		if i, ok := index[id]; ok {
			out[i].Host.Warnings = append(out[i].Host.Warnings, w)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the host's warnings in %s: %w", s.dir, err)
	}
	if err := s.readNodes(ctx, out, index); err != nil {
		return nil, fmt.Errorf("read the nodes in %s: %w", s.dir, err)
	}
	return out, nil
}

// readNodes adds the nodes of sessions; index has the places of their ids.
func (s *Store) readNodes(ctx context.Context, sessions []Session, index map[int64]int) error {
	if s.version >= 3 {
		err := s.each(ctx, "SELECT session, name, host FROM nodes ORDER BY session, ord", nil, func(r *sql.Rows) error {
			var id int64
			var n record.Node
			var host string
			if err := r.Scan(&id, &n.Name, &host); err != nil {
				return err
			}
			i, ok := index[id]
			if !ok {
				return nil
			}
			if err := json.Unmarshal([]byte(host), &n.Host); err != nil {
				return err
			}
			sessions[i].Nodes = append(sessions[i].Nodes, n)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i := range sessions {
		if x := &sessions[i]; len(x.Nodes) == 0 { // of an earlier schema
			x.Nodes = []record.Node{{Host: x.Host}}
		}
		sessions[i].Host.Data = sessions[i].Nodes[0].Host.Data // the table host has no column for it
	}
	return nil
}

// Meta returns what the folder is about. It reads the database, not the copy in
// study.yaml, which a user may have edited.
func (s *Store) Meta() (Meta, error) {
	var m Meta
	kv := make(map[string]string)
	ok, err := s.whole(sumMeta)
	if err == nil && !ok {
		err = fmt.Errorf("%s is damaged: the description of its study does not match its checksum; restore the results from a copy or a bundle", dbName)
	}
	if err != nil {
		return m, fmt.Errorf("read what the results in %s are about: %w", s.dir, err)
	}
	err = s.each(context.Background(), "SELECT key, value FROM meta", nil, func(r *sql.Rows) error {
		var k, v string
		err := r.Scan(&k, &v)
		kv[k] = v
		return err
	})
	if err != nil {
		return m, fmt.Errorf("read what the results in %s are about: %w", s.dir, err)
	}
	m.StudySource, m.StudyFile, m.Modelled = []byte(kv["study"]), kv["study_file"], kv[modelledKey] == "true"
	m.Flags = kv[flagsKey]
	if m.Seed, err = strconv.ParseUint(kv["seed"], 10, 64); err != nil {
		return m, fmt.Errorf("read the seed in %s: %w", s.dir, err)
	}
	if err := json.Unmarshal([]byte(kv["overrides"]), &m.Overrides); err != nil {
		return m, fmt.Errorf("read the overrides in %s: %w", s.dir, err)
	}
	if text := kv[earlierKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &m.Earlier); err != nil {
			return m, fmt.Errorf("read the earlier budgets in %s: %w", s.dir, err)
		}
	}
	all, err := s.Sessions()
	if err != nil {
		return m, err
	}
	if len(all) == 0 { // Create writes the first one
		return m, fmt.Errorf("%s is damaged: it has no session; restore the results from a copy or a bundle", dbName)
	}
	m.Nodes, m.Host, m.TareVersion, m.Started = all[0].Nodes, all[0].Host, all[0].TareVersion, all[0].Started
	return m, nil
}

// SetStudy replaces the text and the --set arguments of a study that goes on with a larger budget. earlier are the budgets that it has had.
func (s *Store) SetStudy(ctx context.Context, source []byte, overrides []string, earlier []Budget) error {
	if !s.writable {
		return ErrReadOnly
	}
	sets, err := json.Marshal(overrides)
	if err != nil {
		return err
	}
	had, err := json.Marshal(earlier)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.transact(ctx, func(ctx context.Context, c *sql.Conn) error {
		for _, kv := range [][2]string{{"study", string(source)}, {"overrides", string(sets)}, {earlierKey, string(had)}} {
			if _, err := c.ExecContext(ctx, "INSERT OR REPLACE INTO meta VALUES (?, ?)", kv[0], kv[1]); err != nil {
				return err
			}
		}
		return s.seal(ctx, c, sumMeta, 0)
	})
	if err == nil {
		_, err = writeFile(filepath.Join(s.dir, studyName), source)
	}
	if err != nil {
		return fmt.Errorf("store the study with its larger budget: %w", err)
	}
	return nil
}

// SetSkips replaces the list of cells that this host cannot run.
func (s *Store) SetSkips(ctx context.Context, skips []record.Skip) error {
	if !s.writable {
		return ErrReadOnly
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.transact(ctx, func(ctx context.Context, c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, "DELETE FROM skips"); err != nil {
			return err
		}
		w := inserter{ctx: ctx, c: c}
		w.into("skips", "?,?,?")
		for i, k := range skips {
			w.row(i, k.Cell.Key(), k.Reason)
		}
		return errors.Join(w.close(), s.seal(ctx, c, sumSkips, 0))
	})
	if err != nil {
		return fmt.Errorf("store the skipped cells: %w", err)
	}
	return nil
}

// minSkip is the memory of a skip beside its texts, in bytes.
const minSkip = 64

// Skips returns the cells that the host could not run.
func (s *Store) Skips() ([]record.Skip, error) {
	var out []record.Skip
	ok, err := s.whole(sumSkips)
	if err == nil && !ok {
		s.note(Damage{DamagedSkips, "", "the list of cells that the host cannot run is not the one that was stored"})
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the skipped cells in %s: %w", s.dir, err)
	}
	held := 0
	err = s.each(context.Background(), "SELECT cell, reason FROM skips ORDER BY ord", nil, func(r *sql.Rows) error {
		var k record.Skip
		var cell string
		if err := r.Scan(&cell, &k.Reason); err != nil {
			return err
		}
		if held += minSkip + len(cell) + len(k.Reason); held > s.mostLoaded {
			return errMuch
		}
		// A cell's key has the escapes of Labels.
		for _, p := range record.Labels(cell).Pairs() {
			k.Cell = append(k.Cell, record.Level{Factor: p[0], Value: p[1]})
		}
		out = append(out, k)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the skipped cells in %s: %w", s.dir, err)
	}
	return out, nil
}
