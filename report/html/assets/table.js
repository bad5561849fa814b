// All comparisons as a table: a row each, a page at a time.
(() => {
  "use strict";

  const size = 100;
  let part, host;

  Tare.tableSection = () => {
    part = Tare.section("table", "All figures", ["level", "response"]);
    host = Tare.el("div", {});
    Tare.put(part.body, host);
    return part;
  };

  const columns = () => {
    const D = Tare.data,
      compare = D.res.compare;
    const fixed = new Set(D.fixed.map((l) => l.factor));
    const nested = new Set(D.treatments.flatMap((t) => t.cell.map((l) => l.factor)));
    const factors = D.factors.filter((f) => f.name !== "workload" && f.name !== compare && !fixed.has(f.name) && !nested.has(f.name));
    const unit = (i) => Tare.unitOf(i.c.response);
    return [
      { head: "workload", sort: "f.workload", text: (i) => i.c.workload },
      ...factors.map((f) => ({
        head: f.name,
        sort: "f." + f.name,
        text: (i) => {
          const v = Tare.levelOf(i.c.cell, f.name);
          return v === undefined ? "" : Tare.levelName({ factor: f.name, value: v });
        },
      })),
      {
        head: compare || "treatment",
        sort: "f." + compare,
        text: (i) => (i.column >= 0 ? Tare.treatmentName(D.treatments[i.column].cell) : i.c.treatment),
      },
      { head: "response", sort: "response", text: (i) => i.c.response.name },
      {
        head: D.res.baseline || "baseline",
        sort: "base",
        num: true,
        value: (i) => (i.hasRatio ? i.c.estimate.base : i.c.base.n ? i.c.base.typical : null),
        write: (v, i) => `${i.c.base.at_least ? "> " : ""}${Tare.value(v, unit(i))}`,
      },
      {
        head: "value",
        sort: "value",
        num: true,
        value: (i) => (i.hasRatio ? i.c.estimate.value : i.c.level.n ? i.c.level.typical : null),
        write: (v, i) => `${i.c.level.at_least ? "> " : ""}${Tare.value(v, unit(i))}`,
      },
      {
        head: "cost",
        sort: "ratio",
        num: true,
        strong: true,
        value: (i) => (i.hasRatio ? i.cost.x : null),
        write: (v, i) => `${Tare.late(i.c)}${Tare.times(v)}`,
      },
      {
        head: "interval",
        sort: "width",
        num: true,
        value: (i) => (i.hasRatio && i.cost.lo > 0 ? i.cost.lo : null),
        write: (v, i) => `${Tare.ratio(v)}–${Tare.ratio(i.cost.hi)}`,
        none: (i) => (i.hasRatio ? "few blocks" : ""),
      },
      { head: "n", sort: "n", num: true, value: (i) => (i.c.baseline ? i.c.level.n : i.c.estimate.n), write: (v) => String(v) },
      { head: "verdict", sort: "verdict", text: (i) => Tare.badge(i.kind, Tare.doubtful(i.c)) },
    ];
  };

  const cell = (col, i, tag) => {
    if (!col.value) return Tare.el(tag, { scope: tag === "th" ? "row" : null }, col.text(i));
    const v = col.value(i);
    return Tare.el(
      "td",
      {
        class: col.strong ? "num strong" : "num",
        "data-value": v === null ? null : v,
        "data-col": col.head === Tare.data.res.baseline ? "base" : col.head,
      },
      v === null ? (col.none ? col.none(i) : "") : col.write(v, i),
    );
  };

  Tare.renderTable = () => {
    part.refreshNote();
    const V = Tare.view,
      s = Tare.state,
      cols = columns();
    if (!V.items.length) {
      Tare.fill(
        host,
        Tare.el("p", { class: "quiet" }, Tare.data.items.length ? "No comparison matches the filter." : "Nothing has been measured yet."),
      );
      return;
    }
    const p = Tare.pageOf("table", V.items, size);
    const head = cols.map((c) => {
      const on = s.sort === c.sort;
      return Tare.el(
        "th",
        { scope: "col", class: c.num ? "num" : null, "aria-sort": on ? (s.desc ? "descending" : "ascending") : "none" },
        Tare.el(
          "button",
          {
            type: "button",
            class: "sort",
            "data-id": "sort-" + c.sort,
            "data-sort": c.sort,
            on: {
              click: () =>
                Tare.set("sort", (st) => {
                  if (st.sort === c.sort) st.desc = !st.desc;
                  else {
                    st.sort = c.sort;
                    st.desc = !!c.num;
                  }
                }),
            },
          },
          c.head,
          Tare.el("span", { "aria-hidden": "true", class: "arrow" }, on ? (s.desc ? " ↓" : " ↑") : ""),
        ),
      );
    });
    const rows = V.items.slice(p.from, p.to).map((i, n) =>
      Tare.el(
        "tr",
        { tabindex: n === 0 ? "0" : "-1", "data-key": i.key, "data-id": "t-" + i.key, "data-kind": i.kind },
        cols.map((c, k) => cell(c, i, k === 0 ? "th" : "td")),
      ),
    );
    const table = Tare.el(
      "table",
      { class: "figures", "aria-label": "All comparisons" },
      Tare.el("thead", {}, Tare.el("tr", {}, head)),
      Tare.el("tbody", {}, rows),
    );
    Tare.rover(table, "tbody tr");
    const act = (ev) => {
      const tr = ev.target.closest("tr[data-key]");
      if (tr) {
        ev.preventDefault();
        Tare.open(tr.dataset.key, tr);
      }
    };
    table.addEventListener("click", act);
    table.addEventListener("keydown", (ev) => {
      if (ev.key === "Enter" || ev.key === " ") if (!ev.target.closest("button")) act(ev);
    });
    Tare.fill(host, Tare.el("div", { class: "scroll" }, table), Tare.pager(p, "comparisons"));
  };
})();
