// How sandboxes start: a bar for each treatment, of the medians of its steps in their order, and of the time
// in no step. Above it the interval of each step that is wide enough to be seen, in the step's colour; below it that of the
// whole. Hatched is what one poll of the kubelet can explain. The same figures as a table.
(() => {
  "use strict";

  const none = "in no step";
  let part, keyHost, draw, rest;

  Tare.bootsSection = () => {
    part = Tare.section("boots", "Steps of a sandbox's start", []);
    keyHost = Tare.el("div", {});
    const chartHost = Tare.el("div", {});
    draw = Tare.pieces(chartHost, "steps of a start", (n) => n * tall() + 60, build);
    rest = Tare.el("div", {});
    Tare.put(part.body, keyHost, chartHost, rest);
    return part;
  };

  const name = (b) => `${Tare.treatmentOf(b.treatment)} ${Tare.levelsText(b.levels || [])}`.trim();
  const tall = () => (all().some((b) => b.phases.some((p) => p.hi > 0)) ? 40 : 30);
  const seconds = (ns) => Tare.value(ns / 1e9, "s");
  const all = () => Tare.data.res.boots || [];

  // names are those of the steps that take time anywhere, in the order of a start: few enough for a colour each.
  const names = () => {
    const steps = all().flatMap((b) => b.phases);
    return [...new Set(steps.map((p) => p.name))].filter((name) => steps.some((p) => p.name === name && p.median > 0));
  };
  const colour = (step) => {
    if (step === none) return Tare.css("--line");
    const at = names().indexOf(step),
      list = Tare.lineColours();
    return Tare.tint(list[at % list.length], Math.floor(at / list.length));
  };

  // parts are the steps of a bar, and what the whole start has beyond them: medians need not add up.
  const parts = (b) => {
    const sum = b.phases.reduce((s, p) => s + p.median, 0);
    return [...b.phases, { name: none, median: Math.max(0, b.start - sum) }];
  };

  // reach is where a start's bar and its whiskers end.
  const reach = (b) => {
    let sum = 0,
      far = b.hi || 0;
    for (const p of parts(b)) {
      far = Math.max(far, sum + (p.hi || 0));
      sum += p.median;
    }
    return Math.max(far, sum);
  };

  Tare.renderBoots = () => {
    const rows = all();
    part.node.hidden = !rows.length;
    if (!rows.length) return;
    const there = [...names(), none].filter((step) => rows.some((b) => parts(b).some((p) => p.name === step && p.median > 0)));
    const keys = there.map((text) => ({ text, colour: colour(text) }));
    if (rows.some((b) => b.hi > 0)) keys.push({ text: "95 % intervals: of the whole start below its bar, of its steps above", colour: Tare.css("--ink"), mark: "line-solid" });
    if (rows.some((b) => b.phases.some((p) => p.poll > 0))) keys.push({ text: "hatched: within one poll of the kubelet", colour: Tare.css("--ink-2"), mark: "hatched" });
    Tare.fill(keyHost, Tare.legendKeys(keys));
    draw(rows, Tare.printing() ? 10 : 40);
    Tare.fill(rest, Tare.blocks("boots"));
  };

  const build = (width, rows, scale) => {
    const narrow = Tare.narrow(width),
      left = Tare.rowRoom(scale.map(name), width),
      end = 1.03 * Math.max(...scale.map(reach)),
      ticks = Tare.niceTicks(0, end / 1e9, narrow ? 4 : 8);
    const series = [...names(), none].map((step) => ({
      type: "bar",
      stack: "start",
      name: step,
      barWidth: narrow ? 15 : 19,
      data: rows.map((b) => {
        const p = parts(b).find((x) => x.name === step),
          v = p ? p.median : 0;
        return {
          value: v / 1e9,
          b,
          p,
          label: { show: (v * (width - left)) / end > 52, formatter: seconds(v), color: Tare.ink(colour(step)), textBorderColor: colour(step), textBorderWidth: 4, fontSize: 11 },
        };
      }),
      itemStyle: { color: colour(step), borderColor: Tare.css("--paper"), borderWidth: 1 },
      emphasis: { disabled: true },
    }));
    const half = (narrow ? 15 : 19) / 2;
    // drawn are lines over the bars: path makes them of two places on the x axis and the middle of the bar.
    const drawn = (items, stroke, path, z = 5) => ({
      type: "custom",
      silent: true,
      z,
      data: items.map((x) => [x.from / 1e9, x.to / 1e9, x.row]),
      renderItem: (q, api) => {
        const [x1, mid] = api.coord([api.value(0), api.value(2)]),
          x2 = api.coord([api.value(1), api.value(2)])[0];
        return { type: "path", z2: 1, shape: { pathData: path(x1, x2, mid, items[q.dataIndex]) }, style: { stroke: stroke(items[q.dataIndex]), lineWidth: 1.2, fill: "none" } };
      },
    });
    const whisker = (x1, x2, y) => `M${x1} ${y - 3}V${y + 3}M${x1} ${y}H${x2}M${x2} ${y - 3}V${y + 3}`;
    const placed = rows.flatMap((b, row) => {
      let at = 0;
      return b.phases.map((p) => ({ p, row, begin: (at += p.median) - p.median }));
    });
    const seen = (ns) => (ns * (width - left)) / end > 16; // nanoseconds that are wide enough
    const steps = placed.filter((x) => x.p.hi > 0 && (seen(x.p.median) || seen(x.p.hi - x.p.lo))).map((x) => ({ ...x, from: x.begin + x.p.lo, to: x.begin + x.p.hi }));
    laid(steps, (3 * end) / (width - left));
    const polled = placed.filter((x) => x.p.poll > 0 && x.p.median > 0).map((x) => ({ ...x, from: x.begin, to: x.begin + Math.min(x.p.poll, x.p.median) }));
    const lines = [
      drawn(
        rows.map((b, row) => ({ from: b.lo, to: b.hi, row })).filter((x) => x.to > 0),
        () => Tare.css("--ink"),
        (x1, x2, mid) => whisker(x1, x2, mid + half + 5),
      ),
      drawn(
        steps,
        (x) => colour(x.p.name),
        (x1, x2, mid, x) => whisker(x1, x2, mid - half - 4 - 5 * x.lane),
      ),
      drawn(
        polled,
        (x) => Tare.ink(colour(x.p.name)),
        (x1, x2, mid) => slanted(x1 + 1, x2 - 1, mid - half + 1, mid + half - 1),
        2, // below the figures of the bars
      ),
    ];
    return {
      height: rows.length * (narrow ? 42 : tall()) + 60,
      label:
        `Steps of a start, ${rows.length} bars: ` +
        rows
          .slice(0, 4)
          .map((b) => `${name(b)} ${seconds(b.start)}: ${b.phases.map((p) => `${Tare.plain(p.name)} ${seconds(p.median)}`).join(", ")}`)
          .join("; ") +
        (rows.length > 4 ? "; more in the table" : ""),
      option: {
        grid: { left, right: 18, top: 8, bottom: 46 },
        xAxis: Tare.axis({ min: 0, max: end / 1e9, ticks, label: (v) => Tare.value(v, "s"), name: "from the call that makes the sandbox" }),
        yAxis: Tare.rowAxis(rows.map(name), width, left),
        tooltip: { trigger: "item", formatter: (q) => (q.data && q.data.p ? tip(q.data) : "") },
        series: [...series, ...lines, { type: "line", data: [], silent: true, markLine: Tare.rules("xAxis", ticks) }],
      },
    };
  };

  // laid gives the whiskers of a row two lanes, so that neighbours do not lie on each other.
  const laid = (steps, gap) => {
    let row = -1,
      ends = [];
    for (const x of steps) {
      if (x.row !== row) ends = [];
      row = x.row;
      x.lane = ends.length && x.from < ends[0] + gap ? 1 : 0;
      ends[x.lane] = x.to;
    }
  };

  // slanted are lines at 45 degrees within a box, which leave room for a figure in its middle.
  const slanted = (x1, x2, top, bottom) => {
    const tall = bottom - top;
    let out = "";
    for (let x = x1 - tall + 4; x < x2; x += 7) {
      const from = Math.max(x, x1),
        to = Math.min(x + tall, x2);
      if (to > from) out += `M${from} ${bottom - (from - x)}L${to} ${bottom - (to - x)}`;
    }
    return out;
  };

  const within = (x) => (x.hi > 0 ? `, 95 % interval ${seconds(x.lo)} to ${seconds(x.hi)}` : "");
  const tip = ({ b, p }) => `${Tare.short(name(b), 70)}\n${Tare.plain(p.name)}: ${seconds(p.median)}${within(p)}\nthe whole start: ${seconds(b.start)}${within(b)}, ${Tare.plural(b.starts, "start")}`;
})();
