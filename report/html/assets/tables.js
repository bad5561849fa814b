// Summary tables as the study asks for them: values and ratios to the baseline's cell
// of the same column, which the colour is of. What a cell is made of is told below
// the table when it is pointed at, and to screen readers in the cell.
(() => {
  "use strict";

  let part, host;

  Tare.tablesSection = () => {
    part = Tare.section("tables", "Summary tables", ["tables", "ratio", "interval", "verdict"]);
    host = Tare.el("div", {});
    Tare.put(part.body, host);
    return part;
  };

  Tare.renderTables = () => {
    const all = Tare.data.res.tables || [];
    part.node.hidden = !all.length;
    if (!all.length) return;
    part.refreshNote();
    Tare.fill(host, legend(all), all.map(one));
    Tare.dropCharts();
  };

  // item is a cell as the heat scale wants it.
  const item = (table, row, cell) => {
    const e = cell.estimate || {};
    let kind = { faster: "better", slower: "worse" }[cell.verdict] || cell.verdict;
    if (!cell.combinations) kind = "no-value";
    else if (row.baseline) kind = "baseline";
    else if (!(e.ratio > 0) || e.undefined) kind = "no-ratio";
    else if (!Object.hasOwn(Tare.kinds, kind || "")) kind = "undecided";
    if (kind === "undecided") kind = Tare.openKind(e, table.response.better);
    const cost = Tare.costOf(e, table.response.better);
    return { kind, cost, ln: e.ratio > 0 ? Math.log(cost.x) : NaN, c: { response: table.response } };
  };

  const cells = (t) => t.rows.flatMap((row) => row.cells.map((cell) => ({ row, cell, item: item(t, row, cell) })));

  // legend explains what occurs.
  const legend = (all) => {
    const list = all.flatMap((t) => cells(t).map((x) => ({ ...x, t })));
    const has = (k) => list.some((x) => x.item.kind === k);
    const key = (k, text) => (has(k) ? Tare.el("span", { class: "key" }, Tare.el("i", { class: `heat k-${k}` }, Tare.kinds[k].mark || " "), " ", text) : null);
    return Tare.el(
      "div",
      { class: "legend" },
      Tare.el(
        "p",
        {},
        "Each cell: the geometric mean over all levels that are not in the table, and its cost compared with that of ",
        Tare.el("b", {}, Tare.data.res.baseline || "the baseline"),
        " in the same column, which the colour is of. All of the study, whatever the filter.",
      ),
      Tare.el(
        "div",
        { class: "keys" },
        Tare.heatScale((k) => has(k), cap(all)),
        key("equivalent", `free (within ${Tare.percent(Tare.data.res.margin || 0)})`),
        key("bounded", "no cost above this"),
        Object.keys(Tare.kinds).filter(Tare.tooFew).map((k) => key(k, Tare.kinds[k].word)),
        key("undecided", Tare.kinds.undecided.word),
        key("no-value", "no value"),
        list.some((x) => x.cell.fewer) ? Tare.el("span", { class: "key" }, Tare.el("b", {}, fewer), " over fewer combinations than its column or row has") : null,
      ),
      Tare.machineNote(),
    );
  };
  const fewer = "†";
  const cap = (all) => Tare.heatCap(all.flatMap((t) => cells(t).map((x) => Math.abs(x.item.ln)).filter(Number.isFinite)));

  const named = (t, row) => {
    if (!row.mean) return Tare.treatmentName(row.cell);
    return `${Tare.treatmentName(row.cell)}: geometric mean of ${row.of}`;
  };
  const among = (list) => (list || []).map((f) => `${f.factor} ${f.levels.map((v) => Tare.levelName({ factor: f.factor, value: v })).join(", ")}`).join("; ");

  // made says in words what a cell is.
  const made = (t, row, column, cell, it) => {
    const e = cell.estimate || {},
      unit = Tare.unitOf(t.response),
      at = `${named(t, row)}${column.level !== "" ? `, ${t.column_factor} ${column.level}` : ""}`;
    if (!cell.combinations) return `${at}: no value${cell.why ? `, ${cell.why}` : ""}.`;
    const over = `${Tare.plural(cell.combinations, "combination")}${cell.fewer ? `${row.mean && cell.rows < row.of ? ` and ${cell.rows} of ${row.of} rows` : ""}, fewer than there are` : ""}`;
    if (row.baseline) return `${at}: ${Tare.value(e.value, unit)}, the baseline; ${over}, n ${e.n}.`;
    const span = e.lo > 0 ? `, interval ${Tare.ratio(it.cost.lo)} to ${Tare.ratio(it.cost.hi)}` : ", no interval";
    const ratio = e.ratio > 0 ? `${Tare.times(it.cost.x)} the cost${span}, ${Tare.kinds[it.kind].word}; raw ratio ${Tare.ratio(e.ratio)}` : "no ratio";
    const base = e.ratio > 0 && e.base > 0 ? ` against ${Tare.value(e.base, unit)}` : "";
    return `${at}: ${Tare.value(e.value, unit)}${base}; ${ratio}; ${over}, n ${e.n}.${cell.why ? ` ${cell.why.replace(/\.?$/, ".")}` : ""}`;
  };

  const cellNode = (t, row, column, cell, most, first) => {
    const it = item(t, row, cell),
      e = cell.estimate || {},
      bg = Tare.heat(it, most),
      says = made(t, row, column, cell, it);
    const value = cell.combinations ? Tare.value(e.value, Tare.unitOf(t.response)) : "–";
    const ratio = !row.baseline && e.ratio > 0 ? it.kind === "bounded" ? `≤ ${Tare.bound(e.no_cost_above)}` : `${Tare.times(it.cost.x)} ${Tare.kinds[it.kind].mark}`.trim() : "";
    const td = Tare.el(
      "td",
      { class: `heat told k-${it.kind}`, tabindex: first ? "0" : "-1", "data-kind": it.kind, "data-value": cell.combinations ? e.value : null, "data-ratio": e.ratio > 0 ? e.ratio : null, "data-says": says },
      Tare.el("span", { class: "r" }, value, cell.fewer ? Tare.el("sup", {}, fewer) : null),
      Tare.el("span", { class: "iv" }, ratio),
      Tare.el("span", { class: "hidden" }, ` ${says}`),
    );
    if (bg) {
      td.style.setProperty("background-color", bg);
      td.style.setProperty("color", Tare.ink(bg));
    }
    return td;
  };

  const one = (t) => {
    const most = cap(Tare.data.res.tables);
    let first = true;
    const body = t.rows.map((row) =>
      Tare.el(
        "tr",
        { class: row.mean ? "mean" : null },
        Tare.el("th", { scope: "row", class: "rowhead" }, Tare.el("span", { class: "stratum" }, named(t, row))),
        t.columns.map((c, i) => {
          const td = cellNode(t, row, c, row.cells[i], most, first);
          first = false;
          return td;
        }),
      ),
    );
    const says = Tare.el("p", { class: "says quiet", "aria-hidden": "true" }, "Point at a cell for its parts.");
    const table = Tare.el(
      "table",
      { class: "heatmap tight", role: "grid", "aria-label": `${t.name}: ${t.response.name}` },
      Tare.el(
        "thead",
        {},
        t.column_factor
          ? Tare.el("tr", {}, Tare.el("td", {}), Tare.el("th", { scope: "colgroup", colspan: String(t.columns.length), class: "over" }, t.column_factor))
          : null,
        Tare.el(
          "tr",
          {},
          Tare.el("th", { scope: "col", class: "rowhead" }, t.row_factors.join(", ")),
          t.columns.map((c) => Tare.el("th", { scope: "col" }, c.level === "" ? (t.column_factor ? Tare.none : t.response.name) : c.level)),
        ),
      ),
      Tare.el("tbody", {}, body),
    );
    Tare.rover(table, "td.heat", () => t.columns.length);
    const tell = (ev) => {
      const td = ev.target.closest("td.heat");
      if (td) says.textContent = Tare.clean(td.dataset.says);
    };
    for (const what of ["pointerover", "focusin", "click"]) table.addEventListener(what, tell);
    const better = { higher: "higher is better", lower: "lower is better" }[t.response.better];
    return Tare.el(
      "div",
      { class: "summary-table", "data-table": t.name },
      Tare.el("h3", {}, `${t.name}: ${t.response.name}`, better ? Tare.el("span", { class: "resp" }, ` ${better}`) : null),
      Tare.el(
        "p",
        { class: "quiet" },
        [
          // What the study asked for is fixed already where it is one level.
          (t.fixed || []).length ? Tare.levelsText(t.fixed) : "",
          among((t.where || []).filter((f) => !(t.fixed || []).some((l) => l.factor === f.factor))),
          (t.over || []).length ? `geometric mean over ${among(t.over)}` : "",
        ]
          .filter(Boolean)
          .join("; "),
      ),
      Tare.el("div", { class: "scroll heatscroll" }, table),
      says,
      Tare.barsOf(t),
    );
  };
})();
