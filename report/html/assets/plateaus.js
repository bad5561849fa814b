// The plateaus of loads that grow within a trial: for each stratum a small chart of each figure over the objects
// that there are, with a line for each treatment. The figures are those of the tables below; `tare plot` draws the
// same. A lower bound has a hollow mark.
(() => {
  "use strict";

  let charts = [];

  // strata gathers the steps by stratum, and in it by treatment.
  const strata = () => {
    const cells = new Map(Tare.data.doc.cells.map((c) => [c.key, c])),
      out = new Map();
    for (const step of Tare.data.res.load_steps || []) {
      const cell = cells.get(Tare.keyOf(step.cell));
      const column = cell ? Tare.data.treatments.findIndex((t) => t.key === cell.treatment) : -1;
      if (column < 0) continue;
      if (!out.has(cell.stratum)) out.set(cell.stratum, { cell, lines: new Map() });
      const lines = out.get(cell.stratum).lines;
      if (!lines.has(column)) lines.set(column, []);
      lines.get(column).push(step);
    }
    // A line of one point shows no growth: its figures are in the tables.
    const grow = [...out.values()].filter((s) => [...s.lines.values()].some((steps) => steps.length > 1));
    return grow.map((s) => ({ ...s, lines: new Map([...s.lines].sort((a, b) => a[0] - b[0])) }));
  };

  const valueOf = (step, name) => step.values.find((v) => v.name === name);
  const written = (p) => `${p.v.at_least ? "> " : ""}${Tare.value(p.v.median, p.v.unit)}`;
  const treatment = (column) => Tare.treatmentName(Tare.data.treatments[column].cell);

  // pointsOf are the lines of one figure, each of the places that have it.
  const pointsOf = (stratum, name) =>
    [...stratum.lines]
      .map(([column, steps]) => ({ column, points: steps.map((s) => ({ at: valueOf(s, "objects"), v: valueOf(s, name) })).filter((p) => p.at && p.v) }))
      .filter((l) => l.points.length);

  // plateaus draws them anew. null: no load grew.
  Tare.plateaus = () => {
    for (const c of charts) c.dispose();
    charts = [];
    const boxes = strata().map((s, n) => {
      const figures = () => {
        const smalls = (Tare.data.doc.plateaus || []).map((name) => ({ name, lines: pointsOf(s, name) })).filter((g) => g.lines.length).map((g) => small(s, g));
        const keys = Tare.el("div", { class: "keys treatments" });
        Tare.treatmentKeys(keys, [...s.lines.keys()], "line");
        return [keys, Tare.el("div", { class: "smalls" }, smalls)];
      };
      return n ? Tare.folded(`plateaus-${s.cell.stratum}`, title(s), figures) : [Tare.el("h3", {}, title(s)), ...figures()];
    });
    return boxes.length ? boxes.flat() : null;
  };

  const title = (s) => {
    const row = Tare.data.rows.find((r) => r.stratum === s.cell.stratum);
    return `${row ? row.name : s.cell.stratum}: figures at each plateau`;
  };

  const small = (s, g) => {
    const chart = Tare.chart({ room: 210, name: `plateaus ${g.name}`, build: () => build(s, g) });
    charts.push(chart);
    return Tare.el("figure", { class: "small" }, Tare.el("figcaption", {}, g.name), chart.node);
  };

  // range is the value axis: with 0.
  const range = (values, unit) => {
    let min = Math.min(0, ...values),
      max = Math.max(0, ...values);
    if (!(max > min)) max = 1;
    const room = 0.06 * (max - min);
    if (min < 0) min -= room;
    if (max > 0) max += room;
    return { min, max, ticks: Tare.niceTicks(min, max, 6, unit).filter((t) => t <= max) };
  };

  const build = (s, g) => {
    const points = g.lines.flatMap((l) => l.points),
      unit = points[0].v.unit,
      places = [...new Set(points.map((p) => p.at.median))].sort((a, b) => a - b),
      { min, max, ticks } = range(points.map((p) => p.v.median), unit);
    const series = g.lines.map(({ column, points }) => {
      const st = Tare.treatmentStyle(column);
      return {
        type: "line",
        name: Tare.plain(treatment(column)),
        data: points.map((p) => ({
          value: [places.indexOf(p.at.median), p.v.median],
          p,
          itemStyle: p.v.at_least ? { color: Tare.css("--paper"), borderColor: st.colour, borderWidth: 1.5 } : { color: st.colour },
        })),
        symbol: st.symbol,
        symbolSize: 7,
        z: 3,
        lineStyle: { color: st.colour, width: 1.8, type: st.dash },
        itemStyle: { color: st.colour },
        emphasis: { disabled: true },
      };
    });
    series.push({ type: "line", data: [], silent: true, markLine: Tare.rules("yAxis", ticks) });
    const last = g.lines.map((l) => `${treatment(l.column)} ${l.points.map(written).join(", ")}`);
    return {
      height: 210,
      label: `${g.name} at ${places.join(", ")} objects: ${last.join("; ")}`,
      option: {
        grid: { left: 68, right: 16, top: 10, bottom: 42 },
        xAxis: Tare.axis({ min: -0.4, max: places.length - 0.6, ticks: places.map((_, i) => i), name: "objects", label: (i) => Tare.value(places[i], "count") }),
        yAxis: Tare.axis({
          min,
          max,
          ticks,
          label: (v) =>
            Tare.value(v, unit)
              .replace(/(\.\d*?)0+( |$)/, "$1$2")
              .replace(/\.( |$)/, "$1"),
        }),
        tooltip: {
          trigger: "axis",
          axisPointer: { type: "line", lineStyle: { color: Tare.css("--line-2") } },
          formatter: (list) => {
            const rows = [].concat(list).filter((x) => x.data && x.data.p);
            return rows.length ? `${Tare.plural(rows[0].data.p.at.median, "object")}\n${rows.map((x) => `${x.seriesName}: ${written(x.data.p)}`).join("\n")}` : "";
          },
        },
        series,
      },
    };
  };
})();
