// The order of the trials: each trial's first response beside what is typical of
// its cell, against the time at which it ran. A machine that drifts shows here.
(() => {
  "use strict";

  let part, chart, keyHost, tableHost;

  Tare.orderSection = () => {
    part = Tare.section("order", "The order of trials", ["order", "epoch", "sentinel"]);
    keyHost = Tare.el("div", { class: "keys treatments" });
    tableHost = Tare.el("div", {});
    chart = Tare.chart({ name: "order", room: 290, build });
    Tare.put(
      part.body,
      Tare.el(
        "p",
        {},
        "Each mark is a trial: its first response, relative to what is typical of its cell. Marks that wander together are the machine's drift; blocks cancel it.",
      ),
      keyHost,
      chart.node,
      tableHost,
    );
    return part;
  };

  Tare.renderOrder = () => {
    const D = Tare.data;
    part.refreshNote();
    part.node.hidden = !D.doc.trials.cell.length;
    if (part.node.hidden) return;
    Tare.treatmentKeys(
      keyHost,
      Tare.view.columns.map(({ at }) => at),
      "dot",
    );
    const extra = [];
    if (D.doc.trials.ok.some((x) => !x)) extra.push(["dot-cross", "failed", "--fail"]);
    if (sessionStarts().length > 1 && sessionStarts().length <= 41) extra.push(["line-dashed", "a session begins", "--line-2"]);
    if (watched().length) extra.push(["line-solid", "the sentinel", "--ink"]);
    if (epochs().length) extra.push(["line-solid", "an epoch begins", "--fail"]);
    Tare.put(
      keyHost,
      extra.map(([cls, text, c]) =>
        Tare.el(
          "span",
          { class: "key" },
          Tare.el("i", { class: `mark ${cls}`, style: { "--c": `var(${c})` }, "aria-hidden": "true" }),
          " ",
          text,
        ),
      ),
    );
    chart.update();
    Tare.fill(tableHost, sentinelWords(), Tare.folded("order-table", "Figures", table));
  };

  // typical of each cell and its first response.
  const typical = () => {
    const D = Tare.data,
      out = new Map();
    for (const i of D.items) {
      if (!i.c.first) continue;
      const cell = D.cellOf.get(Tare.keyOf(i.c.cell));
      if (cell !== undefined) out.set(cell, { name: i.c.response.name, unit: Tare.unitOf(i.c.response), typical: i.c.level.typical });
    }
    return out;
  };

  const points = () => {
    const D = Tare.data,
      T = D.doc.trials,
      typ = typical();
    const shown = Tare.view.filtered ? Tare.cellsShown() : null;
    const out = [],
      columns = new Map(D.treatments.map((x, i) => [x.key, i]));
    for (let t = 0; t < T.cell.length; t++) {
      const cell = T.cell[t],
        c = D.doc.cells[cell];
      if (!c.stratum) continue; // the sentinel's
      if (shown && !shown.has(cell)) continue;
      const y = typ.get(cell),
        column = columns.has(c.treatment) ? columns.get(c.treatment) : -1;
      const k = y ? (c.responses || []).indexOf(y.name) : -1;
      const v = k >= 0 && T.values[t] ? T.values[t][k] : null;
      out.push({ t, column, ok: !!T.ok[t], v, unit: y && y.unit, rel: T.ok[t] && v > 0 && y.typical > 0 ? v / y.typical : NaN });
    }
    return out;
  };

  const sessionStarts = () => {
    const T = Tare.data.doc.trials,
      out = [];
    let last = null;
    T.session.forEach((s, t) => {
      if (s !== last) {
        out.push({ at: T.start[t], id: s });
        last = s;
      }
    });
    return out;
  };

  // watched are the sentinel's trials: one fixed workload between the blocks, which
  // feels nothing of the study. Results without a sentinel have none.
  const watched = () => {
    const D = Tare.data,
      w = D.res.sentinel;
    if (!w || !w.points || !w.points.length) return [];
    const middle = {}; // by node
    for (const { node } of w.points) {
      if (node in middle) continue;
      const sorted = w.points
        .filter((p) => p.node === node)
        .map((p) => p.value)
        .sort((a, b) => a - b);
      middle[node] = sorted[sorted.length >> 1];
    }
    return w.points
      .filter((p) => p.value > 0 && middle[p.node] > 0)
      .map((p) => ({ at: timeOf(p.seq), rel: p.value / middle[p.node], p }))
      .filter((p) => p.at !== null);
  };
  const timeOf = (seq) => {
    const T = Tare.data.doc.trials;
    const t = T.seq.findIndex((s) => s >= seq);
    return t < 0 ? null : T.start[t];
  };

  // epochs: where the sentinel says that the machine changed.
  const epochs = () =>
    (Tare.data.res.epochs || [])
      .map((e, i, all) => ({ e, n: 1 + all.slice(0, i).filter((o) => o.node === e.node).length, at: timeOf(e.seq) }))
      .filter((e) => e.n > 1 && e.at !== null);

  const fewest = 11; // analyse.MinSentinels, below which no change can be seen

  const sentinelWords = () => {
    const r = Tare.data.res,
      w = r.sentinel;
    if (!w) return null;
    const changes = epochs();
    const text = w.skipped
      ? `There was no sentinel: ${w.skipped}.`
      : `The sentinel (${w.kind}, ${w.response.name}) ran ${Tare.plural((w.points || []).length, "time")} between the blocks${w.scatter ? `, with a scatter of ${Tare.percent(w.scatter)}` : ""}, and took ${Tare.percent(w.share)} of the time. ` +
        (changes.length
          ? ""
          : (w.points || []).length < fewest
            ? `These are too few to detect a change of the machine, which needs ${fewest}.`
            : "It detected no change of the machine.");
    return [
      Tare.el("p", {}, text),
      changes.length
        ? Tare.el(
            "ul",
            { class: "epochs" },
            changes.map(({ e, n, at }) =>
              Tare.el(
                "li",
                {},
                Tare.el("b", {}, `Epoch ${n}${e.node ? ` of node ${e.node}` : ""}`),
                ` began ${clock(at)} after the first trial, before trial ${e.seq}`,
                `: ${changed(e)}`,
                (e.blocks || []).length
                  ? `; ${Tare.plural(e.blocks.length, "block")} lay across, ${e.blocks.filter((b) => b.again).length} ran again`
                  : "",
                ".",
              ),
            ),
          )
        : null,
    ];
  };

  // changed says what the sentinel saw at the beginning of an epoch.
  const changed = (e) =>
    (e.what || [])
      .map((w) => (w === "time" ? `the sentinel took ${Tare.ratio(e.ratio)} × as long as before` : "threads waited longer or shorter for a processor"))
      .join(" and ") || "a change";

  const clock = (s) => {
    const m = Math.floor(s / 60),
      h = Math.floor(m / 60);
    return h ? `${h} h ${String(m % 60).padStart(2, "0")}` : `${m}:${String(Math.floor(s % 60)).padStart(2, "0")}`;
  };

  const build = (width) => {
    const D = Tare.data,
      T = D.doc.trials,
      all = points();
    const rels = all
      .filter((p) => p.rel > 0)
      .map((p) => p.rel)
      .sort((a, b) => a - b);
    const q = (x) => (rels.length ? rels[Math.round(x * (rels.length - 1))] : 1);
    // A few far off must not flatten all the others: they stand at the edge.
    let lo = Math.min(0.95, q(0.005) / 1.05),
      hi = Math.max(1.05, q(0.995) * 1.05);
    lo = Math.max(lo, 1 / 50);
    hi = Math.min(hi, 50);
    const floor = Math.log(lo) - 0.06 * Math.log(hi / lo);
    const cut = (r) => Math.min(Math.log(hi), Math.max(Math.log(lo), Math.log(r)));
    const end = Math.max(1, ...[T.start[T.start.length - 1] + T.duration[T.duration.length - 1] || 1]);
    const many = all.length > 4000;
    const by = new Map();
    for (const p of all)
      if (p.ok && p.rel > 0) {
        if (!by.has(p.column)) by.set(p.column, []);
        by.get(p.column).push([T.start[p.t], cut(p.rel), p.t, p.rel]);
      }
    const series = [...by]
      .sort((a, b) => a[0] - b[0])
      .map(([column, data]) => {
        const st = Tare.treatmentStyle(Math.max(0, column));
        return {
          type: "scatter",
          name: Tare.plain(column >= 0 ? Tare.treatmentName(D.treatments[column].cell) : "?"),
          data,
          symbol: st.symbol,
          symbolSize: many ? 3 : 7,
          itemStyle: { color: st.colour, opacity: many ? 0.6 : 0.85 },
          large: many,
          largeThreshold: 2000,
          emphasis: { disabled: true },
        };
      });
    const failed = all.filter((p) => !p.ok).map((p) => [T.start[p.t], floor + 0.03 * Math.log(hi / lo), p.t]);
    if (failed.length)
      series.push({
        type: "scatter",
        name: "failed",
        data: failed,
        symbol: failed.length > 500 ? "rect" : "path://M0 2 L2 0 L5 3 L8 0 L10 2 L7 5 L10 8 L8 10 L5 7 L2 10 L0 8 L3 5 Z",
        symbolSize: failed.length > 500 ? 4 : 9,
        large: failed.length > 500,
        largeThreshold: 500,
        itemStyle: { color: Tare.css("--fail") },
        emphasis: { disabled: true },
      });
    const line = watched();
    if (line.length)
      series.push({
        type: "line",
        name: "the sentinel",
        data: line.map((w) => [w.at, cut(w.rel)]),
        symbol: "circle",
        symbolSize: 3,
        z: 5,
        silent: true,
        lineStyle: { color: Tare.css("--ink"), width: 1.2 },
        itemStyle: { color: Tare.css("--ink") },
      });
    const ticks = Tare.ratioTicks(lo, hi, 8).map(Math.log);
    series.push({ type: "line", data: [], silent: true, markLine: Tare.rules("yAxis", ticks) });
    const sessions = sessionStarts().slice(1);
    const marks = [
      ...(sessions.length > 40 ? [] : sessions).map((s) => ({ xAxis: s.at, lineStyle: { type: "dashed", color: Tare.css("--line-2") } })),
      ...epochs().map((e) => ({ xAxis: e.at, lineStyle: { type: "solid", color: Tare.css("--fail"), width: 1.5 } })),
    ];
    if (marks.length)
      series.push({
        type: "line",
        data: [],
        silent: true,
        markLine: { silent: true, symbol: "none", label: { show: false }, data: marks },
      });
    const times = Tare.timeTicks(end, Math.max(3, Math.floor(width / 90)));
    const nFailed = failed.length;
    return {
      height: 290,
      label: `${Tare.plural(all.length, "trial")} in the order in which they ran, ${nFailed} failed; half of the values within ${Tare.percent(Math.max(q(0.75) - 1, 1 - q(0.25)))} of what is typical of their cell.`,
      option: {
        grid: { left: 52, right: 14, top: 10, bottom: 44 },
        xAxis: Tare.axis({
          min: 0,
          max: end,
          ticks: times,
          name: end >= 3600 ? "hours and minutes since the first trial" : "minutes:seconds since the first trial",
          label: clock,
        }),
        yAxis: Tare.axis({ min: floor, max: Math.log(hi), ticks, label: (v) => Tare.tickRatio(Math.exp(v)) }),
        tooltip: {
          trigger: "item",
          formatter: (x) => {
            const t = x.value && x.value[2];
            if (t === undefined) return "";
            const c = D.doc.cells[T.cell[t]],
              p = all.find((y) => y.t === t);
            return (
              `trial ${T.seq[t]}, block ${T.block[t]}${T.attempt[t] > 1 ? `, attempt ${T.attempt[t]}` : ""}\n${Tare.short(Tare.cellName(c), 80)}\n` +
              (p && p.ok ? `${Tare.value(p.v, p.unit)}, ${Tare.ratio(p.rel)} of the typical` : "failed")
            );
          },
        },
        series,
      },
    };
  };

  // timeTicks are round times from 0 to end, in seconds.
  Tare.timeTicks = (end, most) => {
    const step =
      [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].find((s) => end / s <= most) ||
      Math.ceil(end / most / 86400) * 86400;
    const out = [];
    for (let x = 0; x <= end; x += step) out.push(x);
    return out;
  };

  const most = 500;
  const table = () => {
    const D = Tare.data,
      T = D.doc.trials,
      all = points();
    return [
      Tare.table(
        "Trials in the order of execution",
        [
          { head: "trial" },
          { head: "block", num: true },
          { head: "cell" },
          { head: "started", num: true },
          { head: "took", num: true },
          { head: "value", num: true },
          { head: "of typical", num: true },
          { head: "warnings" },
        ],
        all
          .slice(0, most)
          .map((p) => [
            `${T.seq[p.t]}${T.attempt[p.t] > 1 ? `, attempt ${T.attempt[p.t]}` : ""}`,
            { text: T.block[p.t], value: T.block[p.t] },
            Tare.cellName(D.doc.cells[T.cell[p.t]]),
            clock(T.start[p.t]),
            Tare.value(T.duration[p.t], "s"),
            p.ok ? { text: p.v === null || p.v === undefined ? "-" : Tare.value(p.v, p.unit), value: p.v } : "failed",
            p.rel > 0 ? { text: Tare.ratio(p.rel), value: p.rel } : "-",
            ((T.warnings && T.warnings[p.t]) || []).join(", "),
          ]),
      ),
      all.length > most
        ? Tare.el(
            "p",
            { class: "quiet" },
            `The first ${most} of ${Tare.grouped(all.length)}; use a filter to see others; tare export writes all.`,
          )
        : null,
    ];
  };
})();
