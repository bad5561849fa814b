// Which comparisons are shown, and in which order. Everything that shows
// comparisons reads Tare.view, which is made anew when filter, order or data change.
(() => {
  "use strict";

  // words are what the text filter looks in.
  const words = (i) => {
    if (i.words === null) {
      const c = i.c;
      i.words = [i.key, Tare.levelsText(c.cell), c.kind, c.response.name, Tare.kinds[i.kind].word, c.why, c.skipped, c.gave_up]
        .filter(Boolean)
        .join(" ")
        .toLowerCase();
    }
    return i.words;
  };

  // none stands for the cells that a factor does not apply to.
  Tare.none = "(none)";

  const passes = (i, s, asked, except) => {
    for (const [f, set] of s.pick) {
      if (!set.size || f === except) continue;
      const v = Tare.levelOf(i.c.cell, f);
      if (!set.has(v === undefined ? Tare.none : v)) return false;
    }
    if (s.response.size && !s.response.has(i.c.response.name)) return false;
    if (s.verdict.size && !s.verdict.has(i.kind)) return false;
    if (s.first && !i.c.first) return false;
    if (asked.length) {
      const w = words(i);
      for (const a of asked) if (!w.includes(a)) return false;
    }
    return true;
  };

  // harm is how much worse than the baseline: positive is worse.
  const harm = (i) => {
    return ["higher", "lower"].includes(i.c.response.better) ? i.ln : NaN;
  };
  Tare.harm = harm;

  const level = (i, f) => {
    const v = Tare.levelOf(i.c.cell, f.name);
    return v === undefined ? -1 : f.at.get(v);
  };

  // keyOf returns what to sort by: a number or NaN, which comes last either way.
  const sortKey = (sort) => {
    switch (sort) {
      case "ratio":
        return (i) => i.ln;
      case "harm":
        return harm;
      case "width":
        return (i) => (Number.isFinite(i.width) ? i.width : NaN);
      case "n":
        return (i) => i.c.estimate.n;
      case "verdict":
        return (i) => Tare.data.kinds.indexOf(i.kind);
      case "response":
        return (i) => Tare.data.responses.indexOf(i.c.response.name);
      case "base":
        return (i) => (i.hasRatio ? i.c.estimate.base : i.c.base.typical);
      case "value":
        return (i) => (i.hasRatio ? i.c.estimate.value : i.c.level.typical);
    }
    if (sort.startsWith("f.")) {
      const f = Tare.data.factors.find((x) => x.name === sort.slice(2));
      if (f) return (i) => level(i, f);
    }
    return null;
  };

  const ordered = (list, key, desc) => {
    const k = list.map((x) => key(x));
    const at = list.map((_, i) => i);
    at.sort((a, b) => {
      const na = Number.isNaN(k[a]),
        nb = Number.isNaN(k[b]);
      if (na || nb) return na && nb ? a - b : na ? 1 : -1;
      return (desc ? k[b] - k[a] : k[a] - k[b]) || a - b;
    });
    return at.map((i) => list[i]);
  };

  // sameLevels are the levels, beside those of the whole study, that every row in
  // view has: they are said once and not in every row.
  const sameLevels = (rows) => {
    if (rows.length < 2) return [];
    let out = rows[0].row.rest;
    for (const { row } of rows) {
      if (!out.length) break;
      out = out.filter((l) => row.rest.some((m) => m.factor === l.factor && m.value === l.value));
    }
    return out;
  };

  // levelsOf are the levels that tell a row from the others in view.
  Tare.levelsOf = (row) => row.rest.filter((l) => !Tare.view.same.some((m) => m.factor === l.factor));
  Tare.rowName = (row) => `${row.workload} ${Tare.levelsText(Tare.levelsOf(row))}`.trim();

  Tare.makeView = () => {
    const D = Tare.data,
      s = Tare.state;
    const asked = s.text.toLowerCase().split(/\s+/).filter(Boolean);
    const total = D.items.reduce((n, i) => n + (i.c.baseline ? 0 : 1), 0);
    let items = [];
    const inRow = new Map();
    for (const i of D.items) {
      // Where nothing is compared, the baseline's values are all that there is.
      if ((total && (i.kind === "baseline" || i.c.baseline)) || !passes(i, s, asked)) continue;
      items.push(i);
      if (!inRow.has(i.row)) inRow.set(i.row, []);
      inRow.get(i.row).push(i);
    }
    let rows = [...inRow].map(([row, shown]) => ({ row, shown: new Set(shown) }));
    const key = sortKey(s.sort);
    if (key) {
      items = ordered(items, key, s.desc);
      const best = (r) => {
        let out = NaN;
        for (const i of r.shown) {
          const v = key(i);
          if (!Number.isNaN(v) && (Number.isNaN(out) || (s.desc ? v > out : v < out))) out = v;
        }
        return out;
      };
      rows = ordered(rows, best, s.desc);
    }
    // A column stays as long as the filter by factor leaves its treatment in.
    const columns = D.treatments
      .map((t, at) => ({ t, at }))
      .filter(
        ({ t }) =>
          t.baseline ||
          t.cell.every((l) => {
            const set = s.pick.get(l.factor);
            return !set || !set.size || set.has(l.value);
          }),
      );
    const filtered = items.length !== (total || D.items.length);
    return { items, rows, columns, total, compared: total > 0, filtered, same: sameLevels(rows) };
  };

  // cellsShown are the cells that comparisons in view belong to, the baselines
  // with them, as indices of Document.Cells.
  Tare.cellsShown = () => {
    const D = Tare.data,
      out = new Set();
    for (const i of Tare.view.items) {
      const at = D.cellOf.get(Tare.keyOf(i.c.cell));
      if (at !== undefined) out.add(at);
      if (i.row.base) {
        const b = D.cellOf.get(Tare.keyOf(i.row.base.c.cell));
        if (b !== undefined) out.add(b);
      }
    }
    return out;
  };
})();
