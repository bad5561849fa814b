// Latency distributions: one small chart for each stratum and histogram, one line
// for each treatment. The axis of percentiles is stretched towards the tail:
// each step to the right is ten times rarer.
(() => {
  "use strict";

  const size = 4;
  let part,
    host,
    charts = [];

  Tare.curvesSection = () => {
    part = Tare.section("latency", "Distributions", ["curve"]);
    host = Tare.el("div", {});
    Tare.put(part.body, host);
    return part;
  };

  const columnOf = (cell) => Tare.data.treatments.findIndex((t) => t.key === cell.treatment);

  // groups gathers the curves that belong on one chart.
  const groups = (cells) => {
    const D = Tare.data,
      out = new Map();
    for (const c of D.doc.curves || []) {
      if (cells && !cells.has(c.cell)) continue;
      const cell = D.doc.cells[c.cell];
      if (!cell.stratum) continue; // the sentinel's: compared with nothing
      const key = [cell.stratum, c.name, c.labels || ""].join("\n");
      if (!out.has(key)) out.set(key, { key, cell, name: c.name, labels: c.labels || "", unit: c.unit, curves: [] });
      out.get(key).curves.push({ curve: c, column: columnOf(cell) });
    }
    const list = [...out.values()];
    for (const g of list) g.curves.sort((a, b) => a.column - b.column);
    return list;
  };

  const stratumName = (cell) => {
    const row = Tare.data.rows.find((r) => r.stratum === cell.stratum);
    return row ? row.name : cell.stratum;
  };

  Tare.renderCurves = () => {
    part.refreshNote();
    const every = groups(null);
    part.node.hidden = !every.length;
    if (part.node.hidden) return;
    const all = Tare.view.filtered ? groups(Tare.cellsShown()) : every;
    const p = Tare.pageOf("curves", all, size);
    const shown = Tare.printing() ? all.slice(0, 12) : all.slice(p.from, p.to);
    for (const c of charts) c.dispose();
    charts = [];
    const boxes = shown.map((g) => {
      const title = `${stratumName(g.cell)}  ${g.name}${g.labels ? ` (${g.labels})` : ""}`;
      const chart = Tare.curveChart(title, g);
      charts.push(chart);
      const keys = Tare.el("div", { class: "keys treatments" });
      Tare.treatmentKeys(
        keys,
        g.curves.map((c) => c.column).filter((c) => c >= 0),
        "line",
      );
      return Tare.el(
        "figure",
        { class: "small" },
        Tare.el("figcaption", {}, stratumName(g.cell), " ", Tare.el("span", { class: "resp" }, g.name, g.labels ? ` (${g.labels})` : "")),
        chart.node,
        keys,
        Tare.folded(`curve-${g.key}`, "Figures", () => curveTable(title, g)),
      );
    });
    Tare.fill(
      host,
      boxes.length ? Tare.el("div", { class: "smalls" }, boxes) : Tare.el("p", { class: "quiet" }, "No distribution for the selected cells."),
      Tare.printing() ? null : Tare.pager(p, "charts"),
    );
  };

  const names = { 0: "0", 0.5: "50", 0.9: "90", 0.99: "99", 0.999: "99.9", 0.9999: "99.99", 0.99999: "99.999", 0.999999: "99.9999" };

  const curveTable = (title, g) => {
    const wanted = [0.5, 0.9, 0.99, 0.999, 0.9999];
    const at = (c, q) => {
      const i = c.quantiles.findIndex((x) => x >= q - 1e-12);
      return i >= 0 && (1 - q) * c.count >= 1 ? { text: Tare.value(c.values[i], c.unit), value: c.values[i] } : { text: "too few" };
    };
    return Tare.table(
      title,
      [
        { head: Tare.data.res.compare || "treatment" },
        { head: "events", num: true },
        ...wanted.map((q) => ({ head: names[q] + " %", num: true })),
      ],
      g.curves.map(({ curve, column }) => [
        column >= 0 ? Tare.treatmentName(Tare.data.treatments[column].cell) : Tare.data.doc.cells[curve.cell].treatment,
        { text: Tare.grouped(curve.count), value: curve.count },
        ...wanted.map((q) => at(curve, q)),
      ]),
    );
  };

  // curveChart draws a group of curves.
  Tare.curveChart = (title, g) =>
    Tare.chart({
      room: 250,
      name: `distribution ${title}`,
      build: (width) => {
        const end = Math.min(7, Math.max(1, ...g.curves.map(({ curve }) => Math.log10(Math.max(10, curve.count)))));
        let lo = Infinity,
          hi = 0;
        const series = g.curves.map(({ curve, column }) => {
          const st = Tare.treatmentStyle(Math.max(0, column));
          const last = Math.min(end, Math.log10(Math.max(10, curve.count)));
          const data = [];
          curve.quantiles.forEach((q, i) => {
            const v = curve.values[i],
              x = q >= 1 ? last : -Math.log10(1 - q);
            if (!(v > 0) || x > last + 1e-9) return;
            lo = Math.min(lo, v);
            hi = Math.max(hi, v);
            data.push({ value: [x, Math.log10(v)], q, v });
          });
          return {
            type: "line",
            name: Tare.plain(column >= 0 ? Tare.treatmentName(Tare.data.treatments[column].cell) : "?"),
            data,
            symbol: "none",
            z: column === 0 ? 2 : 3,
            lineStyle: { color: st.colour, width: 2, type: st.dash },
            itemStyle: { color: st.colour },
            emphasis: { disabled: true },
            unit: curve.unit,
          };
        });
        if (!(hi > 0)) {
          lo = 1e-6;
          hi = 1;
        }
        const min = Math.log10(lo) - 0.05,
          max = Math.log10(hi) + 0.08;
        const yt = Tare.ratioTicks(10 ** min, 10 ** max, 7).map(Math.log10);
        const xt = [0, Math.log10(2), 1, 2, 3, 4, 5, 6].filter((x) => x <= end + 1e-9);
        if (series.length) {
          series[0].markLine = Tare.rules("yAxis", yt);
          series.push({ type: "line", data: [], markLine: Tare.rules("xAxis", xt) });
        }
        const unit = g.unit;
        return {
          height: 250,
          label:
            `Distribution of ${title}: ` +
            g.curves
              .map(({ curve, column }) => {
                const i = curve.quantiles.findIndex((q) => q >= 0.99);
                return `${column >= 0 ? Tare.treatmentName(Tare.data.treatments[column].cell) : "?"} 99 % below ${i >= 0 ? Tare.value(curve.values[i], unit) : "-"}`;
              })
              .join(", "),
          option: {
            grid: { left: 64, right: 16, top: 10, bottom: 44 },
            xAxis: Tare.axis({
              min: 0,
              max: end,
              ticks: xt,
              name: width > 300 ? "per cent of events below" : "",
              label: (x) => names[Number((1 - 10 ** -x).toFixed(7))] || "",
            }),
            yAxis: Tare.axis({
              min,
              max,
              ticks: yt,
              label: (y) =>
                Tare.value(Number((10 ** y).toPrecision(6)), unit)
                  .replace(/(\.\d*?)0+ /, "$1 ")
                  .replace(". ", " "),
            }),
            tooltip: {
              trigger: "axis",
              axisPointer: { type: "line", lineStyle: { color: Tare.css("--line-2") } },
              formatter: (list) => {
                const rows = [].concat(list).filter((x) => x.data && x.data.v !== undefined);
                if (!rows.length) return "";
                const q = rows[0].data.q,
                  places = q < 1 ? Math.min(6, Math.max(0, Math.ceil(-Math.log10(1 - q)) - 1)) : 0;
                return (
                  `${(100 * q).toFixed(places)} % are below\n` +
                  rows.map((x) => `${x.seriesName}: ${Tare.value(x.data.v, unit)}`).join("\n")
                );
              },
            },
            series,
          },
        };
      },
    });

  // curvesOfStratum are the groups that a comparison's cell belongs to.
  Tare.curvesOfStratum = (stratum, columns) =>
    groups(null)
      .filter((g) => g.cell.stratum === stratum)
      .map((g) => ({ ...g, curves: g.curves.filter((c) => columns.has(c.column)) }))
      .filter((g) => g.curves.length);
  Tare.curveTable = curveTable;
})();
