// Measured ratios beside published ones: a cross for what was published, marks with
// intervals for what is measured here, and the same figures as a table.
(() => {
  "use strict";

  const step = 13; // px between the marks of one row
  let part, keyHost, draw, rest;

  Tare.publishedSection = () => {
    part = Tare.section("published", "Beside published figures", ["published"]);
    keyHost = Tare.el("div", { class: "keys treatments" });
    const chartHost = Tare.el("div", {});
    draw = Tare.pieces(chartHost, "published ratios", (n) => n * 40 + 54, build);
    rest = Tare.el("div", {});
    Tare.put(part.body, keyHost, chartHost, rest);
    return part;
  };

  const name = (r) => `${r.benchmark} ${r.case}`;
  const has = (m) => m.estimate.ratio > 0 && !m.estimate.undefined;
  const measured = (r) => (r.measured || []).filter(has);

  Tare.renderPublished = () => {
    const t = Tare.data.res.published;
    part.node.hidden = !t;
    if (!t) return;
    part.refreshNote();
    const rows = (t.rows || []).filter((r) => measured(r).length),
      names = [...new Set(rows.flatMap((r) => (r.measured || []).map((m) => m.name)))];
    Tare.fill(
      keyHost,
      rows.length
        ? [Tare.legendKey({ mark: "dot-cross", colour: Tare.css("--ink"), text: "published" }), ...names.map((n) => Tare.legendKey({ mark: `dot-${style(n).symbol}`, colour: style(n).colour, text: `${n} here` }))]
        : null,
    );
    draw(rows, Tare.printing() ? 10 : 40, { names });
    Tare.fill(rest, Tare.blocks("published"));
  };

  // style is a level's own, as in all other charts.
  const style = (level) => {
    const at = Tare.data.treatments.findIndex((t) => Tare.treatmentName(t.cell) === level);
    return Tare.treatmentStyle(at < 0 ? 1 : at);
  };

  const build = (width, rows, scale, { names }) => {
    const narrow = width < 620,
      head = narrow ? 20 : 0;
    const lanes = names.length + 1; // the first is the published ratio's
    const rowHeight = lanes * step + 9 + head;
    let lo = 0.97,
      hi = 1.03;
    for (const r of scale) {
      lo = Math.min(lo, r.published_ratio);
      hi = Math.max(hi, r.published_ratio);
      for (const m of measured(r)) {
        const e = m.estimate;
        lo = Math.min(lo, e.lo > 0 ? Math.max(e.lo, e.ratio / 30) : e.ratio);
        hi = Math.max(hi, e.hi > 0 ? Math.min(e.hi, e.ratio * 30) : e.ratio);
      }
    }
    const pad = Math.max(1.01, (hi / lo) ** 0.04);
    lo /= pad;
    hi *= pad;
    const left = narrow ? 6 : Math.min(0.42 * width, Math.max(120, 28 + Math.max(...scale.map((r) => Tare.textWidth(name(r))))));
    const ticks = Tare.ratioTicks(lo, hi, Math.max(3, Math.floor((width - left) / 58)));
    const lnTicks = ticks.map(Math.log);
    const middle = (n) => n * rowHeight + head + (rowHeight - head) / 2;
    const y = (n, i) => middle(n) + (i - (lanes - 1) / 2) * step;
    const series = names.map((level, at) => {
      const st = style(level);
      const data = [];
      rows.forEach((r, n) => {
        for (const m of measured(r)) {
          if (m.name !== level) continue;
          const e = m.estimate;
          const [a, b] = e.lo > 0 ? [e.lo, e.hi] : [e.ratio, e.ratio];
          data.push({ value: [Math.log(e.ratio), y(n, at + 1), Math.log(a), Math.log(b)], row: n, m });
        }
      });
      return {
        type: "custom",
        name: Tare.plain(level),
        data,
        encode: { x: [0, 2, 3], y: 1 },
        clip: true,
        z: 3,
        renderItem: (params, api) => Tare.drawInterval(api, st, !(data[params.dataIndex].m.estimate.lo > 0)),
      };
    });
    // Published ratios: a cross, and a line from it down through the marks of the row.
    const crosses = {
      type: "custom",
      name: "published",
      data: rows.map((r, n) => ({ value: [Math.log(r.published_ratio), y(n, 0)], row: n, m: null })),
      encode: { x: 0, y: 1 },
      clip: true,
      z: 4,
      renderItem: (params, api) => {
        const [x, yy] = api.coord([api.value(0), api.value(1)]),
          r = 4.6,
          ink = Tare.css("--ink");
        const line = (x1, y1, x2, y2, w) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: ink, lineWidth: w } });
        return {
          type: "group",
          children: [line(x, yy, x, yy + (lanes - 0.5) * step, 1), line(x - r, yy - r, x + r, yy + r, 2.2), line(x - r, yy + r, x + r, yy - r, 2.2)],
        };
      },
    };
    const labels = {
      type: "custom",
      silent: true,
      z: 4,
      data: rows.map((r, n) => [0, n * rowHeight]),
      encode: { x: -1, y: 1 },
      tooltip: { show: false },
      clip: false,
      renderItem: (params, api) => {
        const box = params.coordSys,
          top = api.coord([0, api.value(1)])[1],
          text = Tare.plain(name(rows[params.dataIndex]));
        return {
          type: "group",
          children: [
            {
              type: "line",
              shape: { x1: narrow ? box.x : 0, y1: top, x2: box.x + box.width, y2: top },
              style: { stroke: Tare.css("--line"), lineWidth: params.dataIndex ? 1 : 0 },
            },
            {
              type: "text",
              style: {
                text: Tare.cutTo(text, narrow ? box.width - 12 : left - 20),
                fill: Tare.css("--ink"),
                fontSize: 12.5,
                fontFamily: getComputedStyle(document.body).fontFamily,
                x: narrow ? box.x + 2 : box.x - 12,
                y: narrow ? top + 4 : top + rowHeight / 2,
                align: narrow ? "left" : "right",
                verticalAlign: narrow ? "top" : "middle",
                backgroundColor: narrow ? Tare.css("--paper") : null,
              },
            },
          ],
        };
      },
    };
    return {
      height: rows.length * rowHeight + 54,
      label:
        `Published ratios and those measured here, ${rows.length} rows: ` +
        rows
          .slice(0, 3)
          .map(
            (r) =>
              `${name(r)}: published ${Tare.ratio(r.published_ratio)}, ` +
              measured(r)
                .map((m) => `${m.name} ${Tare.ratio(m.estimate.ratio)}`)
                .join(", "),
          )
          .join("; ") +
        (rows.length > 3 ? "; more in the table" : ""),
      option: {
        grid: { left, right: 14, top: 8, bottom: 46 },
        xAxis: Tare.axis({
          min: Math.log(lo),
          max: Math.log(hi),
          ticks: lnTicks,
          label: (v) => Tare.tickRatio(Math.exp(v)),
          name: `ratio ${Tare.short(Tare.data.res.published.ratio, 30)} (logarithmic)`,
        }),
        yAxis: { type: "value", inverse: true, min: 0, max: Math.max(1, rows.length * rowHeight), show: false },
        tooltip: { trigger: "item", formatter: (q) => (q.data && q.data.row !== undefined ? tip(rows[q.data.row], q.data.m) : "") },
        series: [
          ...series,
          crosses,
          labels,
          { type: "line", data: [], silent: true, markLine: Tare.rules("xAxis", lnTicks) },
          Tare.equality(Tare.data.res.margin),
        ],
      },
    };
  };

  const tip = (r, m) => {
    const first = `${Tare.short(name(r), 60)}\npublished ${Tare.ratio(r.published_ratio)}: ${Tare.digits(r.published_other)} against ${Tare.digits(r.published_base)} ${Tare.plain(r.unit)}`;
    if (!m) return `${first}\n${Tare.plain(r.agreement)}`;
    const e = m.estimate;
    return `${first}\n${Tare.short(m.name, 60)} here ${Tare.ratio(e.ratio)}${e.lo > 0 ? `  (${Tare.ratio(e.lo)}–${Tare.ratio(e.hi)})` : ""}  n=${e.n}\n${Tare.plain(m.agreement)}`;
  };
})();
