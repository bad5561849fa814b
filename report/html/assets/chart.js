// What all charts share: they are drawn when they come into view, again when
// width, theme or data change, and whole before printing. A chart is a picture
// with a label; the same figures stand in a table beside it.
(() => {
  "use strict";

  const all = new Set();
  const paper = [700, 340]; // px: the width of a chart in print, and of one of two side by side

  const visible = new IntersectionObserver(
    (entries) => {
      for (const e of entries) {
        const ch = e.target.tareChart;
        ch.inView = e.isIntersecting;
        if (ch.inView && ch.stale) ch.draw();
      }
    },
    { rootMargin: "300px" },
  );

  const sized = new ResizeObserver((entries) => {
    for (const e of entries) {
      const ch = e.target.tareChart;
      if (Math.abs(e.contentRect.width - ch.width) > 1 && !Tare.printing()) {
        ch.stale = true;
        if (ch.inView) ch.draw();
      }
    }
  });

  // chart makes one. build(width) returns {option, height, label}; click(params)
  // is called for what carries data. room is the height until it is
  // drawn, so that the page does not jump then. update() draws it anew.
  Tare.chart = ({ name, build, click, room }) => {
    const canvas = Tare.el("div", { class: "chart-canvas", style: { height: `${room}px` } });
    const node = Tare.el("div", { class: "chart", role: "img", "data-chart": name, "aria-label": `Chart: ${name}` }, canvas);
    const ch = { node, name, inView: false, stale: true, width: 0, instance: null };
    ch.draw = () => {
      if (!node.isConnected) return;
      const width = Tare.printing() ? paper[node.closest(".smalls") ? 1 : 0] : node.clientWidth;
      if (width < 50) return;
      ch.stale = false;
      ch.width = node.clientWidth;
      Tare.guard(`The chart “${name}”`, () => {
        const { option, height, label } = build(width);
        node.setAttribute("aria-label", Tare.clean(Tare.data && Tare.data.doc.modelled ? `Modelled, not measured. ${label}` : label));
        canvas.style.height = `${height}px`;
        if (!ch.instance) {
          ch.instance = echarts.init(canvas, null, {
            renderer: "canvas",
            width,
            height,
            devicePixelRatio: Math.max(devicePixelRatio || 1, Tare.printing() ? 2 : 1),
          });
          if (click) ch.instance.on("click", click);
        } else ch.instance.resize({ width, height });
        ch.instance.setOption(common(option), { notMerge: true, lazyUpdate: false });
        node.dataset.drawn = String(Number(node.dataset.drawn || 0) + 1);
      });
    };
    ch.update = () => {
      ch.stale = true;
      if (ch.inView || Tare.printing()) ch.draw();
    };
    ch.dispose = () => {
      visible.unobserve(node);
      sized.unobserve(node);
      all.delete(ch);
      if (ch.instance) ch.instance.dispose();
      ch.instance = null;
    };
    node.tareChart = ch;
    visible.observe(node);
    sized.observe(node);
    all.add(ch);
    return ch;
  };

  // pieces draws many rows as several charts below each other: no canvas is endless,
  // and print breaks pages between them. It returns what draws rows, so many a
  // chart; build(width, piece, all, more) makes one.
  Tare.pieces = (host, name, room, build) => {
    const charts = [];
    return (all, size, more) => {
      const parts = [];
      for (let i = 0; i < all.length; i += size) parts.push(all.slice(i, i + size));
      while (charts.length > parts.length) {
        const c = charts.pop();
        c.dispose();
        c.node.remove();
      }
      while (charts.length < parts.length) {
        const c = Tare.chart({ room: room(parts[charts.length].length), name, build: (width) => build(width, c.rows, c.all, c.more) });
        charts.push(c);
        host.append(c.node);
      }
      charts.forEach((c, i) => {
        Object.assign(c, { rows: parts[i], all, more });
        c.update();
      });
    };
  };

  // rowRoom is the room that the names of rows get at the left, rowAxis the axis of
  // them; on a narrow screen they stand above their bars.
  Tare.narrow = (width) => width < 620;
  Tare.rowRoom = (names, width) => (Tare.narrow(width) ? 6 : Math.min(0.42 * width, Math.max(140, 28 + Math.max(...names.map(Tare.textWidth)))));
  Tare.rowAxis = (names, width, left) => {
    const narrow = Tare.narrow(width);
    return {
      type: "category",
      inverse: true,
      data: names.map(Tare.plain),
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: {
        inside: narrow,
        color: Tare.css("--ink"),
        fontSize: 12.5,
        margin: narrow ? 2 : 12,
        verticalAlign: narrow ? "bottom" : "middle",
        padding: narrow ? [0, 0, 11, 0] : 0,
        interval: 0,
        formatter: (v) => Tare.cutTo(v, narrow ? width - 30 : left - 20),
      },
      z: 5,
    };
  };

  // drawCharts draws what is in view, in print everything.
  Tare.drawCharts = () => {
    for (const ch of all) {
      if (!ch.node.isConnected) continue;
      ch.stale = true;
      if (ch.inView || Tare.printing()) ch.draw();
    }
  };
  Tare.onChange((what) => {
    if (what === "theme") Tare.drawCharts();
  });

  // drop disposes of the charts that are no longer in the page.
  Tare.dropCharts = () => {
    for (const ch of [...all]) if (!ch.node.isConnected) ch.dispose();
  };

  const font = () => getComputedStyle(document.body).fontFamily;

  // common adds what all charts have. Tooltips are drawn, not made of markup.
  const common = (option) => ({
    animation: false,
    aria: { enabled: false },
    textStyle: { fontFamily: font(), fontSize: 12, color: Tare.css("--ink-2") },
    ...option,
    tooltip:
      option.tooltip === null
        ? undefined
        : {
            renderMode: "richText",
            confine: true,
            transitionDuration: 0,
            backgroundColor: Tare.css("--raised"),
            borderColor: Tare.css("--line-2"),
            borderWidth: 1,
            padding: [6, 9],
            textStyle: { color: Tare.css("--ink"), fontSize: 12, fontFamily: font() },
            ...option.tooltip,
          },
  });

  // plain is text for ECharts: braces would begin one of its styles.
  Tare.plain = (s) =>
    Tare.clean(s)
      .replace(/[{}|]/g, (c) => ({ "{": "(", "}": ")", "|": "¦" })[c])
      .slice(0, 300);
  Tare.short = (s, n) => {
    const t = Tare.plain(s);
    return t.length > n ? t.slice(0, n - 1) + "…" : t;
  };

  // axis is a value axis with ticks of our choice; several scales are logarithms
  // already, since ECharts' own log axis has ticks at powers of ten only.
  Tare.axis = (o) => ({
    type: "value",
    min: o.min,
    max: o.max,
    name: o.name,
    nameLocation: "middle",
    nameGap: o.gap || 28,
    nameTextStyle: { color: Tare.css("--ink-2"), fontSize: 12 },
    position: o.position,
    inverse: o.inverse,
    axisLine: { show: o.line !== false, onZero: false, lineStyle: { color: Tare.css("--line-2") } },
    axisTick: { show: false, customValues: o.ticks },
    axisLabel: {
      color: Tare.css("--ink-2"),
      fontSize: 11.5,
      customValues: o.ticks,
      formatter: o.label,
      hideOverlap: true,
      showMinLabel: true,
      showMaxLabel: true,
    },
    splitLine: { show: false },
    minorTick: { show: false },
    z: 0,
  });

  // grid lines at ticks, as mark lines: splitLine does not know custom ticks everywhere.
  Tare.rules = (axis, ticks) => ({
    silent: true,
    symbol: "none",
    animation: false,
    precision: -1, // else ECharts rounds ticks to two decimals
    label: { show: false },
    lineStyle: { color: Tare.css("--line"), type: "solid", width: 1 },
    data: ticks.map((t) => ({ [axis]: t })),
    z: 0,
  });

  // equality is the line of the baseline and the margin's band, on an axis of the
  // logarithms of ratios, as a series of its own.
  Tare.equality = (margin) => ({
    type: "line",
    data: [],
    silent: true,
    markLine: {
      silent: true,
      symbol: "none",
      label: { show: false },
      lineStyle: { color: Tare.css("--ink-2"), type: "solid", width: 1.5 },
      data: [{ xAxis: 0 }],
    },
    markArea: {
      silent: true,
      itemStyle: { color: Tare.css("--margin") },
      data: [[{ xAxis: -Math.log(1 + margin) }, { xAxis: Math.log(1 + margin) }]],
    },
  });

  // ratioTicks are round ratios from lo to hi.
  Tare.ratioTicks = (lo, hi, most) => {
    const span = Math.log(hi / lo);
    const out = [];
    if (span < Math.log(2.6)) {
      for (const step of [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]) {
        if ((hi - lo) / step > most) continue;
        for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi * (1 + 1e-9); k++) out.push(Number((k * step).toFixed(4)));
        return out;
      }
    }
    for (const set of [[1, 1.5, 2, 3, 4, 5, 7], [1, 2, 5], [1, 3], [1]]) {
      out.length = 0;
      for (let e = Math.floor(Math.log10(lo)) - 1; e <= Math.ceil(Math.log10(hi)); e++)
        for (const m of set) {
          const v = Number((m * 10 ** e).toPrecision(6));
          if (v >= lo * (1 - 1e-9) && v <= hi * (1 + 1e-9)) out.push(v);
        }
      if (out.length <= most) break;
    }
    return out;
  };

  // niceTicks are round numbers from lo to hi; of bytes, multiples of a power of two, which are round in KiB and in GiB.
  Tare.niceTicks = (lo, hi, most, unit) => {
    const raw = (hi - lo) / Math.max(1, most);
    if (!(raw > 0)) return [lo];
    const p = 10 ** Math.floor(Math.log10(raw));
    const step = unit === "B" ? 2 ** Math.ceil(Math.log2(raw) - 1e-9) : [1, 2, 5, 10].map((m) => m * p).find((s) => s >= raw * (1 - 1e-9));
    const out = [];
    for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi + step * 1e-9; k++) out.push(Number((k * step).toPrecision(12)));
    return out;
  };
})();
