// What bounds each cell: maps of causes, with the rows and columns of the summary
// tables and of the heat map. A cause has a word, a colour and, where two share one, a
// hatching; the paler, the less sure. Cells that are not known to cost are framed only.
// Each cell opens to its readings (cause.js).
(() => {
  "use strict";

  const size = 60; // rows on one page
  let part, lead, legendHost, mapHost, allHost;
  let ix = null;

  Tare.causesSection = () => {
    part = Tare.section("causes", "Causes", ["causes"]);
    lead = Tare.el("div", {});
    legendHost = Tare.el("div", { class: "legend" });
    mapHost = Tare.el("div", {});
    allHost = Tare.el("div", {});
    Tare.put(part.body, lead, legendHost, mapHost, allHost);
    return part;
  };

  // causes are the document's, looked over once; null where there are none.
  Tare.causes = () => {
    const doc = Tare.data.doc;
    if (!doc.causes) return null;
    if (ix && ix.doc === doc) return ix;
    const kinds = new Map(doc.causes.kinds.map((k, at) => [k.id, { ...k, at, hue: k.hue ? `#${k.hue.toString(16).padStart(6, "0")}` : "" }])),
      byPlace = new Map(),
      byKey = new Map();
    for (const f of doc.causes.findings) {
      const c = doc.cells[f.cell];
      byPlace.set(`${c.stratum}\n${c.treatment}`, f);
      byKey.set(c.key, f);
    }
    ix = { doc, kinds, byPlace, byKey, all: doc.causes.findings, maps: doc.causes.maps || [] };
    return ix;
  };

  Tare.causeKind = (id) => Tare.causes().kinds.get(id) || { id, word: id, about: "", at: 99 };
  Tare.causeWord = (f) => `${Tare.causeKind(f.cause).word}${f.role ? ` ${f.role}` : ""}`;
  Tare.causeWords = (f) => `${Tare.causeWord(f)}${f.among ? `: ${f.among.map((k) => Tare.causeKind(k).word).join(" or ")}` : ""}`;
  Tare.causeBaseline = (f) => !!Tare.data.doc.cells[f.cell].baseline;
  const sure = (k) => k !== "untold" && k !== "unknown";
  Tare.causeConfidence = (f) => (sure(f.cause) && f.confidence > 0 ? `${Math.round(100 * f.confidence)} %` : "");
  Tare.causeState = (f) => (Tare.causeBaseline(f) ? "the baseline" : f.costs ? "isolation costs" : f.undecided ? "undecided" : "no cost");
  Tare.causeLoss = (f) => (f.ratio > 0 ? Math.abs(Math.log(f.ratio)) : 0);
  Tare.causeFinding = (stratum, treatment) => (Tare.causes() ? Tare.causes().byPlace.get(`${stratum}\n${treatment}`) : undefined);

  const mixed = (hex, part) => {
    const paper = Tare.css("--paper"),
      rgb = (h) => [1, 3, 5].map((i) => parseInt(h.slice(i, i + 2), 16)),
      p = rgb(paper);
    return "#" + rgb(hex).map((v, i) => Math.round(p[i] + (v - p[i]) * part).toString(16).padStart(2, "0")).join("");
  };

  // dress gives an element a cause's colours. What does not cost has its frame alone.
  Tare.dressCause = (node, kind, confidence, costs) => {
    const { hue, hatched } = Tare.causeKind(kind);
    node.classList.add("cause", `c-${hue || !sure(kind) || kind === "none" ? kind : "other"}`);
    if (!hue) return;
    if (!costs) {
      node.style.setProperty("box-shadow", `inset 0 0 0 2px ${mixed(hue, 0.8)}`);
      return;
    }
    const bg = mixed(hue, 0.3 + 0.7 * Math.min(1, Math.max(0, confidence)));
    node.style.setProperty("background-color", bg);
    node.style.setProperty("color", Tare.ink(bg));
    if (hatched) node.classList.add("hatched");
  };

  // cellOf makes a cell of a map: its words, and what they are of.
  const cellOf = (c, list, key, says) => {
    const x = c && c.cause;
    if (!x || !list.length) return Tare.el("td", { class: "nothing" }, Tare.el("span", { class: "hidden" }, "no finding"));
    const one = list.length === 1 ? list[0] : null,
      costs = list.filter((f) => f.costs).length,
      open = list.filter((f) => f.undecided && !f.costs).length;
    const state = one ? Tare.causeState(one) : `isolation costs in ${costs} of ${list.length}${open ? `, undecided in ${open}` : ""}`;
    const td = Tare.el(
      "td",
      {
        class: "heat",
        tabindex: "-1",
        "data-open": key,
        "data-id": `c-${key}`,
        "data-cause": x.kind,
        "data-costs": x.costs ? "1" : "0",
        "data-undecided": x.undecided ? "1" : "0",
        title: one ? one.text : null,
      },
      Tare.el("span", { class: "r" }, c.a),
      c.b ? Tare.el("span", { class: "iv" }, c.b) : null,
      Tare.el("span", { class: "hidden" }, ` ${says}: ${state}`),
    );
    Tare.dressCause(td, x.kind, x.confidence || 0, x.costs);
    return td;
  };

  // grid makes a table of cells that open, reachable as those of the heat map are.
  const grid = (label, over, corner, heads, rows) => {
    const table = Tare.el(
      "table",
      { class: "heatmap tight causemap", role: "grid", "aria-label": label },
      Tare.el(
        "thead",
        {},
        over ? Tare.el("tr", {}, Tare.el("td", {}), Tare.el("th", { scope: "colgroup", colspan: String(heads.length), class: "over" }, over)) : null,
        Tare.el(
          "tr",
          {},
          Tare.el("th", { scope: "col", class: "rowhead" }, corner),
          heads.map((h) => Tare.el("th", { scope: "col", class: "col", title: h }, h)),
        ),
      ),
      Tare.el("tbody", {}, rows),
    );
    const first = table.querySelector("td.heat:not([data-baseline])") || table.querySelector("td.heat");
    if (first) first.tabIndex = 0;
    Tare.rover(table, "td.heat", () => heads.length);
    const open = (ev) => {
      const td = ev.target.closest("td[data-open]");
      if (td) Tare.open(td.dataset.open, td);
      return td;
    };
    table.addEventListener("click", open);
    table.addEventListener("keydown", (ev) => {
      if ((ev.key === "Enter" || ev.key === " ") && ev.target.closest("td[data-open]")) {
        ev.preventDefault();
        open(ev);
      }
    });
    return Tare.el("div", { class: "scroll heatscroll" }, table);
  };

  // keyOfCell is what Tare.open takes for a finding.
  Tare.causeKey = (f) => `cause|${Tare.data.doc.cells[f.cell].key}`;

  const findingsOf = (cell) => ((cell.cause && cell.cause.findings) || []).map((k) => Tare.causes().all[k]);

  const one = (m, at) =>
    Tare.el(
      "div",
      { class: "summary-table", "data-causes": m.table },
      Tare.el("h3", {}, m.title),
      grid(
        `Causes: ${m.title}`,
        m.column || null,
        m.factors.join(", "),
        m.columns,
        m.cells.rows.map(([name, ...cells], r) =>
          Tare.el(
            "tr",
            { class: name.mean ? "mean" : null },
            Tare.el("th", { scope: "row", class: "rowhead" }, Tare.el("span", { class: "stratum" }, name.a)),
            cells.map((cell, c) => {
              const found = findingsOf(cell);
              return cellOf(cell, found, found.length === 1 ? Tare.causeKey(found[0]) : `cause-map|${at}|${r}|${c}`, `${name.a}, ${m.columns[c]}`);
            }),
          ),
        ),
      ),
    );

  // causeCells are the findings of a cell of a map, and what it is called.
  Tare.causeCells = (at, r, c) => {
    const m = Tare.causes().maps[at],
      row = m && m.cells.rows[r],
      cell = row && c >= 0 && row[c + 1];
    if (!cell) return null;
    return { title: row[0].a, sub: `${m.title}${m.column ? `, ${m.column} ${m.columns[c]}` : ""}`, list: findingsOf(cell) };
  };

  Tare.renderCauses = () => {
    const C = Tare.causes();
    part.node.hidden = !C;
    if (!C) return;
    part.refreshNote();
    const doc = C.doc.causes,
      known = C.all.some((f) => f.cause !== "unknown" && !Tare.causeBaseline(f));
    Tare.fill(
      lead,
      doc.summary ? Tare.el("p", {}, doc.summary) : null,
      doc.missing ? Tare.el("ul", { class: "quiet" }, doc.missing.map((s) => Tare.el("li", {}, s))) : null,
    );
    Tare.fill(legendHost, known ? legend(C) : null);
    Tare.fill(mapHost, known ? C.maps.map(one) : null);
    Tare.renderCauseCells();
    part.node.hidden = ![lead, mapHost, allHost].some((host) => host.childElementCount);
  };

  // The map of all cells has the rows and columns of the heat map, filter and order too.
  Tare.renderCauseCells = () => {
    const C = Tare.causes(),
      V = Tare.view;
    if (!C || !part || part.node.hidden) return;
    if (!C.all.some((f) => f.cause !== "unknown")) {
      Tare.fill(allHost, null);
      return;
    }
    const strata = new Map();
    for (const { row, shown } of V.rows) {
      if (!V.columns.some(({ t }) => C.byPlace.has(`${row.stratum}\n${t.key}`))) continue;
      if (!strata.has(row.stratum)) strata.set(row.stratum, { row, shown: new Set() });
      for (const i of shown) strata.get(row.stratum).shown.add(i.column);
    }
    const list = [...strata.values()],
      p = Tare.pageOf("causes", list, size);
    const rows = list.slice(p.from, p.to).map(({ row, shown }) =>
      Tare.el(
        "tr",
        {},
        Tare.el("th", { scope: "row", class: "rowhead" }, Tare.el("span", { class: "stratum", title: row.name }, Tare.rowName(row))),
        V.columns.map(({ at, t }) => {
          const f = C.byPlace.get(`${row.stratum}\n${t.key}`),
            cell = f ? { a: f.word, b: f.below, cause: { kind: f.cause, confidence: f.confidence, costs: f.costs, undecided: f.undecided } } : null,
            td = cellOf(cell, f ? [f] : [], f ? Tare.causeKey(f) : "", `${row.name}, ${Tare.treatmentName(t.cell)}`);
          if (!t.baseline && !shown.has(at)) td.classList.add("faded");
          if (t.baseline) td.dataset.baseline = "1";
          return td;
        }),
      ),
    );
    Tare.fill(
      allHost,
      C.maps.length ? Tare.el("h3", {}, "Every cell") : null,
      list.length
        ? grid("Causes of every cell", null, "workload", V.columns.map(({ t }) => Tare.treatmentName(t.cell)), rows)
        : Tare.el("p", { class: "quiet" }, "No cell matches the filter."),
      Tare.pager(p, "rows"),
      Tare.el("p", { class: "quiet hint" }, "Choose a cell for its readings and settings. Arrow keys move, Enter opens, Escape closes."),
    );
  };

  const legend = (C) => {
    const n = new Map(),
      free = new Map(),
      open = new Map();
    for (const f of C.all) {
      if (Tare.causeBaseline(f)) continue;
      const m = f.costs ? n : f.undecided ? open : free;
      m.set(f.cause, (m.get(f.cause) || 0) + 1);
    }
    // framed is the key of those that are not known to cost, with a frame of a cause that occurs.
    const framed = (m, text) => {
      const hue = ([...C.kinds.values()].find((k) => k.hue && m.has(k.id)) || { id: "none" }).id;
      return m.size ? key(hue, false, `${text} ${Tare.grouped([...m.values()].reduce((s, x) => s + x, 0))}`) : null;
    };
    const key = (k, costs, text) => {
      const i = Tare.el("i", { class: "heat" });
      Tare.dressCause(i, k, 1, costs);
      return Tare.el("span", { class: "key", "data-kind": k }, i, " ", Tare.el("span", {}, text));
    };
    const kinds = [...C.kinds.values()].filter((k) => n.has(k.id));
    return [
      Tare.el(
        "p",
        {},
        "Filled: isolation has a cost here, with this cause; the paler, the lower the confidence. Framed, in the colour of the cause: no cost is known. Undecided: too few blocks, or the interval holds 1. No cost: as good as the baseline, or better. ",
        C.maps.length ? "A cell of the tables has the most frequent cause among its variants with a cost, how many of all have it, and the mean confidence. " : "",
        `?: a confidence below ${Tare.percent(C.doc.causes.doubtful)}.`,
      ),
      Tare.el(
        "div",
        { class: "keys" },
        kinds.map((k) => key(k.id, true, [Tare.el("b", {}, k.word), ` ${Tare.grouped(n.get(k.id))}`, k.about ? `: ${k.about}` : ""])),
framed(open, "undecided"),
        framed(free, "no cost"),
      ),
    ];
  };
})();
