// Dots and intervals: each treatment's ratio on a logarithmic axis, the baseline
// as a line at 1, the margin as a band around it.
(() => {
  "use strict";

  const size = 24; // rows on one page
  const step = 13; // px between the treatments of one row
  let part, chartHost, pagerHost, keyHost;
  let charts = [];

  Tare.dotsSection = () => {
    part = Tare.section("ratios", "Costs with intervals", ["interval", "verdict"]);
    keyHost = Tare.el("div", { class: "keys treatments" });
    pagerHost = Tare.el("div", {});
    chartHost = Tare.el("div", {});
    Tare.put(part.body, keyHost, chartHost, pagerHost);
    return part;
  };

  Tare.renderDots = () => {
    part.node.hidden = !Tare.view.compared;
    if (part.node.hidden) return;
    part.refreshNote();
    const rows = usable();
    Tare.treatmentKeys(
      keyHost,
      Tare.view.columns.filter(({ t }) => !t.baseline).map(({ at }) => at),
      "dot",
    );
    Tare.fill(
      pagerHost,
      Tare.pager(Tare.pageOf("dots", rows, size), "rows"),
      Tare.el(
        "p",
        { class: "quiet" },
        `The band is the margin of ${Tare.percent(Tare.data.res.margin || 0)}; an open mark is not decided.`,
        Tare.el("span", { class: "hint" }, " The figures are in the table below."),
      ),
    );
    // In print in pieces, since a chart cannot go on over the edge of a page.
    const p = Tare.pageOf("dots", rows, size),
      shown = rows.slice(p.from, p.to),
      pieces = [];
    const piece = Tare.printing() ? 7 : size;
    for (let i = 0; i < shown.length; i += piece) pieces.push(shown.slice(i, i + piece));
    while (charts.length > pieces.length) {
      const c = charts.pop();
      c.dispose();
      c.node.remove();
    }
    while (charts.length < pieces.length) {
      const c = Tare.chart({
        room: pieces[charts.length].length * heightOf(chartHost.clientWidth, shown) + 54,
        name: "ratios",
        build: (width) => build(width, c.rows, c.scale),
        click: (q) => {
          if (q.data && q.data.key) Tare.open(q.data.key);
        },
      });
      charts.push(c);
      chartHost.append(c.node);
    }
    charts.forEach((c, i) => {
      c.rows = pieces[i];
      c.scale = shown;
      c.update();
    });
  };

  // treatmentKeys is a legend of marks in the page's own text.
  Tare.treatmentKeys = (host, columns, shape) =>
    Tare.fill(
      host,
      columns.map((at) => {
        const st = Tare.treatmentStyle(at);
        return Tare.el(
          "span",
          { class: "key" },
          Tare.el("i", {
            class: `mark ${shape}-${shape === "dot" ? st.symbol : st.dash}`,
            style: { "--c": st.colour },
            "aria-hidden": "true",
          }),
          " ",
          Tare.treatmentName(Tare.data.treatments[at].cell),
        );
      }),
    );

  const usable = () =>
    Tare.view.rows.map(({ row, shown }) => ({ row, items: [...shown].filter((i) => i.hasRatio) })).filter((r) => r.items.length);

  // textWidth is the width of a row's name in px, about: the response's letters
  // are a little smaller.
  let pen = null;
  const textWidth = (s) => {
    pen = pen || document.createElement("canvas").getContext("2d");
    pen.font = `12.5px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(s).width;
  };
  // cutTo leaves out whole levels in the middle: workloads differ at the start, levels at
  // the end. It cuts within one only where not even the last fits.
  const cutTo = (s, room) => {
    if (textWidth(s) <= room) return s;
    const words = s.split(" ");
    for (let left = words.length - 1; left > 1; left--) {
      const some = [words[0], "…", ...words.slice(words.length - left + 1)].join(" ");
      if (textWidth(some) <= room) return some;
    }
    let n = s.length;
    const cut = () => `${s.slice(0, Math.floor(n / 3))}…${s.slice(s.length - Math.ceil((2 * n) / 3))}`;
    while (n > 4 && textWidth(cut()) > room) n--;
    return cut();
  };

  Tare.textWidth = textWidth;
  Tare.cutTo = cutTo;

  const isNarrow = (width) => width < 620;
  // headOf is the height of a row's name where it stands above the row: two lines
  // when name and response do not fit into one.
  const headOf = (width, shown) => {
    if (!isNarrow(width)) return 0;
    return shown.some((r) => textWidth(`${Tare.rowName(r.row)}  ${r.row.response.name}`) > width - 32) ? 37 : 20;
  };
  // heightOf is the height of a row, by the width of the chart.
  const heightOf = (width, shown) => {
    const n = Tare.view.columns.filter(({ t }) => !t.baseline).length;
    return isNarrow(width) ? n * step + 9 + headOf(width, shown) : Math.max(20, n * step + 9);
  };

  const build = (width, rows, scale) => {
    const D = Tare.data;
    const columns = Tare.view.columns.filter(({ t }) => !t.baseline).map(({ at }) => at);
    const narrow = isNarrow(width);
    const head = headOf(width, scale);
    const rowHeight = heightOf(width, scale);
    let lo = 1 / (1 + D.res.margin),
      hi = 1 + D.res.margin;
    for (const r of scale)
      for (const i of r.items) {
        const e = i.cost;
        lo = Math.min(lo, e.lo > 0 ? Math.max(e.lo, e.x / 30) : e.x);
        hi = Math.max(hi, e.hi > 0 ? Math.min(e.hi, e.x * 30) : e.x);
      }
    const pad = Math.max(1.01, (hi / lo) ** 0.04);
    lo /= pad;
    hi *= pad;
    const left = narrow
      ? 6
      : Math.min(0.42 * width, Math.max(140, 28 + Math.max(...scale.map((r) => textWidth(`${Tare.rowName(r.row)}  ${r.row.response.name}`)))));
    const ticks = Tare.ratioTicks(lo, hi, Math.max(3, Math.floor((width - left) / 58)));
    const lnTicks = ticks.map(Math.log);
    const y = (n, column) => n * rowHeight + head + (rowHeight - head) / 2 + (columns.indexOf(column) - (columns.length - 1) / 2) * step;
    const series = columns.map((column) => {
      const st = Tare.treatmentStyle(column);
      const data = [];
      rows.forEach((r, n) => {
        for (const i of r.items) {
          if (i.column !== column) continue;
          const e = i.cost;
          data.push({
            value: [
              Math.log(e.x),
              y(n, column),
              e.lo > 0 ? Math.log(e.lo) : Math.log(e.x),
              e.lo > 0 ? Math.log(e.hi) : Math.log(e.x),
            ],
            key: i.key,
            item: i.at,
          });
        }
      });
      return {
        type: "custom",
        name: Tare.plain(Tare.treatmentName(D.treatments[column].cell)),
        data,
        encode: { x: [0, 2, 3], y: 1 },
        clip: true,
        z: 3,
        renderItem: (params, api) => {
          const i = D.items[data[params.dataIndex].item],
            open = i.kind === "undecided" || i.kind === "bounded" || Tare.tooFew(i.kind);
          return Tare.drawInterval(api, st, open);
        },
      };
    });
    const names = {
      type: "custom",
      silent: true,
      z: 4,
      data: rows.map((r, n) => [0, n * rowHeight]),
      encode: { x: -1, y: 1 },
      tooltip: { show: false },
      renderItem: (params, api) => {
        const r = rows[params.dataIndex],
          box = params.coordSys,
          top = api.coord([0, api.value(1)])[1];
        const style = { fill: Tare.css("--ink"), fontSize: 12.5, fontFamily: getComputedStyle(document.body).fontFamily };
        const sub = Tare.css("--ink-2");
        const line = {
          type: "line",
          shape: { x1: narrow ? box.x : 0, y1: top, x2: box.x + box.width, y2: top },
          style: { stroke: Tare.css("--line"), lineWidth: params.dataIndex ? 1 : 0 },
        };
        // The response is never cut: where both do not fit, the name is, or has a line of its own.
        const room = narrow ? box.width - 12 : left - 24,
          response = Tare.plain(r.row.response.name),
          full = Tare.plain(Tare.rowName(r.row)),
          fits = textWidth(`${full}  ${response}`) <= room,
          two = narrow ? head > 20 : !fits && rowHeight >= 34;
        const name = fits ? full : cutTo(full, two ? room : room - textWidth(`  ${response}`));
        const text = `{a|${name}}${two ? "\n" : "  "}{b|${response}}`;
        const rich = {
          a: { fill: style.fill, fontSize: 12.5, fontFamily: style.fontFamily, lineHeight: 16 },
          b: { fill: sub, fontSize: 12, fontFamily: style.fontFamily, lineHeight: 16 },
        };
        return {
          type: "group",
          children: [
            line,
            {
              type: "text",
              style: narrow
                ? {
                    text,
                    rich,
                    x: box.x + 2,
                    y: top + 4,
                    textVerticalAlign: "top",
                    verticalAlign: "top",
                    overflow: "truncate",
                    width: box.width - 4,
                    backgroundColor: Tare.css("--paper"),
                    padding: [1, 4, 1, 0],
                  }
                : {
                    text,
                    rich,
                    x: box.x - 12,
                    y: top + rowHeight / 2,
                    align: "right",
                    verticalAlign: "middle",
                    overflow: "truncate",
                    width: left - 16,
                  },
            },
          ],
        };
      },
      clip: false,
    };
    const bottom = 46;
    series.push(
      names,
      { type: "line", data: [], silent: true, markLine: Tare.rules("xAxis", lnTicks) },
      Tare.equality(D.res.margin),
    );
    return {
      height: rows.length * rowHeight + bottom + 8,
      label:
        `Costs compared with ${D.res.baseline}, with intervals, ${rows.length} rows: ` +
        rows
          .slice(0, 3)
          .map(
            (r) =>
              `${r.row.name} ${r.row.response.name}: ` +
              r.items.map((i) => `${Tare.treatmentName(D.treatments[i.column].cell)} ${Tare.times(i.cost.x)}`).join(", "),
          )
          .join("; ") +
        (rows.length > 3 ? "; more in the table" : ""),
      option: {
        grid: { left, right: 14, top: 8, bottom },
        xAxis: Tare.axis({
          min: Math.log(lo),
          max: Math.log(hi),
          ticks: lnTicks,
          label: (v) => Tare.tickRatio(Math.exp(v)),
          name: `times ${Tare.short(D.res.baseline, 30)}'s cost (logarithmic), more is worse`,
        }),
        yAxis: { type: "value", inverse: true, min: 0, max: Math.max(1, rows.length * rowHeight), show: false },
        tooltip: {
          trigger: "item",
          formatter: (q) => {
            const i = q.data && q.data.item !== undefined ? D.items[q.data.item] : null;
            return i ? Tare.tip(i) : "";
          },
        },
        series,
      },
    };
  };

  Tare.tickRatio = (v) => String(Number(v.toPrecision(6))).replace(/^(\d+)000$/, "$1k");

  // tip is a comparison in a few lines.
  Tare.tip = (i) => {
    const e = i.c.estimate,
      [, second] = Tare.cellText(i.c);
    return (
      `${Tare.short(i.row.name, 70)}  ${Tare.plain(i.c.response.name)}\n${Tare.short(Tare.treatmentName(Tare.data.treatments[i.column].cell), 60)}: ${Tare.times(i.cost.x)}  (${second})  n=${e.n}\n` +
      `${Tare.value(e.value, Tare.unitOf(i.c.response))} against ${Tare.value(e.base, Tare.unitOf(i.c.response))}\n${Tare.kinds[i.kind].mark} ${Tare.kinds[i.kind].word}`
    );
  };

  // drawInterval draws the mark of a style at a row's value 0, and the interval from value 2 to
  // value 3; value 1 is the row.
  Tare.drawInterval = (api, st, open) => {
    const [c, a, b] = [0, 2, 3].map((i) => api.coord([api.value(i), api.value(1)]));
    const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: st.colour, lineWidth: 1.8 } });
    return {
      type: "group",
      children: [
        line(a[0], a[1], b[0], b[1]),
        line(a[0], a[1] - 3, a[0], a[1] + 3),
        line(b[0], b[1] - 3, b[0], b[1] + 3),
        Tare.drawMark(st.symbol, c, 4.4, st.colour, open),
      ],
    };
  };

  // drawMark draws one symbol; open ones are undecided.
  Tare.drawMark = (symbol, [x, y], r, colour, open) => {
    const style = { fill: open ? Tare.css("--paper") : colour, stroke: colour, lineWidth: 1.8 };
    switch (symbol) {
      case "rect":
      case "roundRect":
        return { type: "rect", shape: { x: x - r, y: y - r, width: 2 * r, height: 2 * r, r: symbol === "rect" ? 0 : 2 }, style };
      case "triangle":
        return {
          type: "polygon",
          shape: {
            points: [
              [x, y - r - 1],
              [x + r + 1, y + r],
              [x - r - 1, y + r],
            ],
          },
          style,
        };
      case "diamond":
        return {
          type: "polygon",
          shape: {
            points: [
              [x, y - r - 1.5],
              [x + r + 1.5, y],
              [x, y + r + 1.5],
              [x - r - 1.5, y],
            ],
          },
          style,
        };
    }
    return { type: "circle", shape: { cx: x, cy: y, r }, style };
  };
})();
