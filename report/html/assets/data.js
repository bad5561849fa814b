// The document: where it comes from, and what is looked up in it again and again.
(() => {
  "use strict";

  const bytesOf = (base64) => {
    const text = atob(base64.replace(/\s+/g, ""));
    const out = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
    return out;
  };

  const unpacked = async (script) => {
    if (script.getAttribute("data-encoding") !== "gzip") return JSON.parse(script.textContent);
    if (typeof DecompressionStream !== "function")
      throw new Error("this browser cannot unpack it (it has no DecompressionStream; any of 2023 or later has)");
    let stream;
    try {
      stream = new Blob([bytesOf(script.textContent)]).stream().pipeThrough(new DecompressionStream("gzip"));
      return JSON.parse(await new Response(stream).text());
    } catch (err) {
      throw new Error(`the data in this file is damaged (${err.message}); fetch the file again`, { cause: err });
    }
  };

  Tare.live = () => {
    const m = document.querySelector('meta[name="tare-live"]');
    return m ? m.getAttribute("content") || "./" : null;
  };

  // get asks the server of a live report.
  Tare.get = async (what) => {
    const base = new URL(Tare.live(), document.baseURI);
    if (!base.pathname.endsWith("/")) base.pathname += "/";
    const url = new URL(what, base);
    if (!url.search)
      url.search = base.search; // a token may be there
    else if (base.search) url.search += "&" + base.search.slice(1);
    const res = await fetch(url, { cache: "no-store", credentials: "same-origin" });
    if (!res.ok) throw new Error(`the server says ${res.status}: ${(await res.text()).slice(0, 200)}`);
    return res.json();
  };

  Tare.load = async () => {
    if (Tare.live() !== null) return Tare.get("doc");
    const script = document.getElementById("tare-data");
    if (!script || !script.textContent.trim()) throw new Error("there is no data in this file");
    return unpacked(script);
  };

  // kindOf sorts a comparison into what can be said of it. The order of the
  // questions is that of report/text.
  Tare.kindOf = (c) => {
    const e = c.estimate;
    if (c.skipped) return "skipped";
    if (c.level.n === 0 && c.gave_up) return "gave-up";
    if (c.level.below_noise > 0) return "below-noise";
    if (c.level.n === 0 && c.failed > 0) return "failed";
    if (c.level.n === 0) return "no-value";
    if (c.baseline) return "baseline";
    if (c.base.below_noise > 0 || e.n === 0 || e.undefined) return "no-ratio";
    switch (c.verdict) {
      case "faster":
        return "better";
      case "slower":
        return "worse";
      case "higher":
      case "lower":
      case "equivalent":
        return c.verdict;
    }
    return Tare.openKind(e, c.response.better);
  };

  // openKind is the kind of an undecided estimate (stat.Estimate.Shown). One without an interval, or whose
  // interval lies on one side of 1, rests on too few blocks.
  Tare.openKind = (e, better) => {
    if (e.no_cost_above > 0) return "bounded";
    if (!(e.lo > 0)) return "few";
    if (!(e.lo > 1) && !(e.hi < 1)) return "undecided";
    const up = e.lo > 1;
    if (better !== "lower" && better !== "higher") return up ? "perhaps-higher" : "perhaps-lower";
    return up === (better === "higher") ? "perhaps-better" : "perhaps-worse";
  };

  // tooFew reports whether a kind is of too few blocks.
  Tare.tooFew = (kind) => kind === "few" || kind.startsWith("perhaps-");

  // Signs and words of each kind: the signs of the text report.
  Tare.kinds = {
    better: { mark: "▲", word: "costs less" },
    worse: { mark: "▼", word: "costs more" },
    higher: { mark: "↑", word: "higher" },
    lower: { mark: "↓", word: "lower" },
    equivalent: { mark: "=", word: "free" },
    bounded: { mark: "≤", word: "no cost above this" },
    "perhaps-better": { mark: "(▲)", word: "perhaps costs less, too few blocks" },
    "perhaps-worse": { mark: "(▼)", word: "perhaps costs more, too few blocks" },
    "perhaps-higher": { mark: "(↑)", word: "perhaps higher, too few blocks" },
    "perhaps-lower": { mark: "(↓)", word: "perhaps lower, too few blocks" },
    few: { mark: "(?)", word: "too few blocks to say" },
    undecided: { mark: "?", word: "too noisy to say" },
    "no-ratio": { mark: "", word: "no ratio" },
    "below-noise": { mark: "", word: "below noise" },
    "no-value": { mark: "", word: "no value" },
    failed: { mark: "✗", word: "failed" },
    "gave-up": { mark: "✗", word: "given up" },
    skipped: { mark: "–", word: "skipped" },
    baseline: { mark: "", word: "baseline" },
  };

  // doubtful: called different, but no discovery among all rows of the study
  // (analyse.Comparison.Doubtful). Results of older versions have no q.
  Tare.doubt = "~";
  Tare.doubtful = (c) => {
    const d = Tare.data && Tare.data.res.discoveries;
    return !!d && typeof c.q === "number" && c.q > d.rate && ["better", "worse", "higher", "lower"].includes(Tare.kindOf(c));
  };

  // late is the sign before a cost of which a side is a lower bound, because pods or claims came late.
  Tare.late = (c) => (c.level.at_least && c.base.at_least ? "≷ " : c.level.at_least ? "> " : c.base.at_least ? "< " : "");

  // cellText is what is written for a comparison: its cost, and the interval of that.
  Tare.cellText = (c) => {
    const kind = Tare.kindOf(c),
      e = c.estimate,
      value = () => `${c.level.at_least ? "> " : ""}${Tare.value(c.level.typical, Tare.unitOf(c.response))}`;
    switch (kind) {
      case "skipped":
      case "failed":
      case "gave-up":
      case "below-noise":
      case "no-value":
        return [Tare.kinds[kind].word, ""];
      case "baseline":
        return [value(), ""];
      case "no-ratio":
        if (e.undefined) return [`${value()} ?`, "no ratio"];
        return [value(), c.base.below_noise > 0 ? "no ratio" : ""];
    }
    const cost = Tare.costOf(e, c.response.better);
    return [
      kind === "bounded" ? `≤ ${Tare.bound(e.no_cost_above)}` : `${Tare.late(c)}${Tare.times(cost.x)} ${Tare.kinds[kind].mark}${Tare.doubtful(c) ? Tare.doubt : ""}`,
      e.lo > 0 ? `${Tare.ratio(cost.lo)}–${Tare.ratio(cost.hi)}` : "few blocks",
    ];
  };

  Tare.keyOf = (cell) => cell.map((l) => [l.factor, l.value].map((s) => s.replace(/[\\,=]/g, "\\$&")).join("=")).join(",");

  const levelOf = (cell, factor) => {
    for (const l of cell) if (l.factor === factor) return l.value;
    return undefined;
  };
  Tare.levelOf = levelOf;

  // levelName is a level as every report writes it: a virtual machine with what ran
  // its processors, as in vm (TCG). The analysis says it (analyse.Result.LevelName).
  let machines = new Map();
  Tare.levelName = (l) => (l.factor === "sandbox" && machines.get(l.value)) || l.value;
  Tare.levelsText = (cell) => cell.map((l) => `${l.factor}=${Tare.levelName(l)}`).join(" ");

  // treatmentName is the level of the compared factor, and what is nested below
  // it with its name, where it tells treatments apart; what does not is said once
  // (analyse.Common).
  let common = [];
  Tare.treatmentName = (cell) =>
    cell.length
      ? Tare.levelName(cell[0]) +
        cell
          .slice(1)
          .filter((l) => !common.some((c) => c.level.factor === l.factor && c.level.value === l.value))
          .map((l) => ` ${l.factor}=${Tare.levelName(l)}`)
          .join("")
      : "";

  // treatmentOf names the treatment of a key; one that there is not is called by the key.
  Tare.treatmentOf = (key) => {
    const t = Tare.data.treatments.find((x) => x.key === key);
    return t ? Tare.treatmentName(t.cell) : key;
  };

  // fixed are the levels that every stratum has: they are said once.
  const fixedLevels = (compared) => {
    let out = null;
    const seen = new Set();
    for (const c of compared) {
      if (seen.has(c.stratum)) continue;
      seen.add(c.stratum);
      const shared = c.shared.filter((l) => l.factor !== "workload");
      out = out === null ? shared : out.filter((l) => shared.some((s) => s.factor === l.factor && s.value === l.value));
    }
    return out || [];
  };

  // withText says what all have, and what all of one level of the compared factor have.
  Tare.withText = (fixed) =>
    [
      ...(fixed.length ? [`All with ${Tare.levelsText(fixed)}.`] : []),
      ...common.map((c) => `${c.of.map((v) => Tare.levelName({ factor: Tare.data.res.compare, value: v })).join(", ")} with ${Tare.levelsText([c.level])}.`),
    ]
      .map((s) => ` ${s}`)
      .join("");

  // index looks a document over once. What it returns is Tare.data.
  Tare.index = (doc) => {
    const res = doc.result;
    const compared = res.comparisons || [];
    common = res.common || [];
    machines = new Map((res.accelerators || []).map((a) => [a.sandbox, a.name]));
    const fixed = fixedLevels(compared);
    const fixedNames = new Set(fixed.map((l) => l.factor));
    const treatments = [...(res.treatments || [])].sort((a, b) => Number(b.baseline) - Number(a.baseline));
    const treatmentAt = new Map(treatments.map((t, i) => [t.key, i]));
    const items = [],
      rows = [];
    const baseline = new Map();
    for (const c of compared) if (c.baseline) baseline.set(c.stratum + "\n" + c.response.name, c);
    let row = null;
    for (const c of compared) {
      if (!row || row.stratum !== c.stratum || row.response.name !== c.response.name) {
        const rest = c.shared.filter((l) => l.factor !== "workload" && !fixedNames.has(l.factor));
        row = {
          at: rows.length,
          stratum: c.stratum,
          response: c.response,
          workload: c.workload,
          first: !!c.first,
          name: `${c.workload} ${Tare.levelsText(rest)}`.trim(),
          rest,
          items: [],
          base: null,
        };
        rows.push(row);
      }
      const kind = Tare.kindOf(c),
        e = c.estimate;
      const hasRatio = e.ratio > 0 && !["no-ratio", "baseline", "skipped", "failed", "gave-up", "below-noise", "no-value"].includes(kind);
      const item = {
        at: items.length,
        c,
        row,
        kind,
        hasRatio,
        column: treatmentAt.has(c.treatment) ? treatmentAt.get(c.treatment) : -1,
        key: [c.stratum, c.treatment, c.response.name].join("|"),
        cost: Tare.costOf(e, c.response.better),
        ln: hasRatio ? Math.log(Tare.costOf(e, c.response.better).x) : NaN,
        width: hasRatio ? Tare.halfWidth(e) : Infinity,
        words: null,
      };
      items.push(item);
      row.items.push(item);
      if (c.baseline) row.base = item;
    }
    const byKey = new Map(items.map((i) => [i.key, i]));
    const { factors, cellOf, trialsOf } = indexTrials(doc, items);
    const responses = [...new Set(items.map((i) => i.c.response.name))];
    const kinds = Object.keys(Tare.kinds).filter((k) => k !== "baseline" && items.some((i) => i.kind === k));
    return {
      doc,
      res,
      items,
      rows,
      byKey,
      fixed,
      treatments,
      baseline,
      factors,
      cellOf,
      trialsOf,
      responses,
      kinds,
      curvesOf: groupBy(doc.curves || [], (c) => c.cell),
      series: new Map((doc.series || []).map((s) => [s.trial, s])),
    };
  };

  const groupBy = (list, f) => {
    const out = new Map();
    list.forEach((x, i) => {
      const k = f(x, i);
      if (!out.has(k)) out.set(k, []);
      out.get(k).push(x);
    });
    return out;
  };

  const indexTrials = (doc, items) => {
    const cellOf = new Map(doc.cells.map((c, i) => [c.key, i]));
    const trialsOf = doc.cells.map(() => []);
    doc.trials.cell.forEach((c, t) => trialsOf[c].push(t));
    // The study's factors in its order, then those that only cells name.
    const levels = new Map((doc.study.factors || []).map((f) => [f.name, [...f.levels]]));
    const seen = new Map(),
      lacking = new Set();
    // Cells of no stratum are the sentinel's, or of another study: nothing is compared there.
    const cells = doc.cells.filter((c) => c.stratum).map((c) => c.levels);
    for (const cell of cells)
      for (const l of cell) {
        if (!seen.has(l.factor)) seen.set(l.factor, new Set());
        seen.get(l.factor).add(l.value);
      }
    for (const i of items)
      for (const l of i.c.cell) {
        if (!seen.has(l.factor)) seen.set(l.factor, new Set());
        seen.get(l.factor).add(l.value);
      }
    for (const cell of cells) for (const f of seen.keys()) if (levelOf(cell, f) === undefined) lacking.add(f);
    const factors = [];
    for (const [name, used] of seen) {
      const order = levels.get(name) || [];
      const list = [...order.filter((v) => used.has(v)), ...[...used].filter((v) => !order.includes(v))];
      factors.push({ name, levels: list, at: new Map(list.map((v, i) => [v, i])), lacking: lacking.has(name) });
    }
    const place = new Map((doc.study.factors || []).map((f, i) => [f.name, i]));
    const rank = (f) => (place.has(f.name) ? place.get(f.name) : 1e6);
    factors.sort((a, b) => rank(a) - rank(b));
    return { factors, cellOf, trialsOf };
  };

  // pairs are the values of an item and its baseline in each block, the last good
  // attempt of each: what its ratio is made of.
  Tare.pairs = (item) => {
    const D = Tare.data,
      T = D.doc.trials,
      name = item.c.response.name;
    // Good trials that do not count, because their block ran again.
    const superseded = new Set((D.res.superseded || []).map((s) => `${s.seq}-${s.attempt}`));
    const read = (key) => {
      const out = new Map();
      const cell = D.cellOf.get(key);
      if (cell === undefined) return out;
      const column = (D.doc.cells[cell].responses || []).indexOf(name);
      for (const t of D.trialsOf[cell]) {
        if (superseded.has(`${T.seq[t]}-${T.attempt[t]}`)) continue;
        const block = T.block[t];
        const old = out.get(block);
        const ok = !!T.ok[t];
        if (old && old.ok && (!ok || T.attempt[old.trial] > T.attempt[t])) continue;
        const noisy = ((T.warnings && T.warnings[t]) || []).includes(`below-noise:${name}`);
        const v = column >= 0 && T.values[t] ? T.values[t][column] : null;
        out.set(block, { trial: t, ok, value: ok && v !== undefined ? v : null, noisy });
      }
      return out;
    };
    const mine = read(Tare.keyOf(item.c.cell));
    const base = item.row.base ? read(Tare.keyOf(item.row.base.c.cell)) : new Map();
    const blocks = [...new Set([...mine.keys(), ...base.keys()])].sort((a, b) => a - b);
    return blocks.map((block) => {
      const a = mine.get(block),
        b = base.get(block);
      const usable = (x) => x && x.ok && !x.noisy && typeof x.value === "number";
      return { block, mine: a, base: b, ratio: usable(a) && usable(b) && a.value > 0 && b.value > 0 ? a.value / b.value : NaN };
    });
  };
})();
