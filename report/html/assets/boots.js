// How sandboxes start: a bar for each treatment, of the medians of its steps in their order, and of the time
// in no step. The whisker is the interval of the whole. The same figures as a table.
(() => {
  "use strict";

  const none = "in no step";
  let part, keyHost, draw, rest;

  Tare.bootsSection = () => {
    part = Tare.section("boots", "Steps of a sandbox's start", []);
    keyHost = Tare.el("div", {});
    const chartHost = Tare.el("div", {});
    draw = Tare.pieces(chartHost, "steps of a start", (n) => n * 30 + 60, build);
    rest = Tare.el("div", {});
    Tare.put(part.body, keyHost, chartHost, rest);
    return part;
  };

  const name = (b) => Tare.treatmentOf(b.treatment);
  const seconds = (ns) => Tare.value(ns / 1e9, "s");
  const all = () => Tare.data.res.boots || [];

  // names are those of all steps, in the order in which they first come.
  const names = () => [...new Set(all().flatMap((b) => b.phases.map((p) => p.name)))];
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

  Tare.renderBoots = () => {
    const rows = all();
    part.node.hidden = !rows.length;
    if (!rows.length) return;
    const there = [...names(), none].filter((step) => rows.some((b) => parts(b).some((p) => p.name === step && p.median > 0)));
    Tare.fill(keyHost, Tare.legendKeys([...there.map((text) => ({ text, colour: colour(text) })), { text: "whisker: the 95 % interval of the whole start", colour: Tare.css("--ink"), mark: "line-solid" }]));
    draw(rows, Tare.printing() ? 10 : 40);
    Tare.fill(rest, Tare.blocks("boots"));
  };

  const build = (width, rows, scale) => {
    const narrow = Tare.narrow(width),
      left = Tare.rowRoom(scale.map(name), width),
      end = 1.03 * Math.max(...scale.map((b) => Math.max(b.start, b.hi || 0, ...[parts(b).reduce((s, p) => s + p.median, 0)]))),
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
          label: { show: (v * (width - left)) / end > 52, formatter: seconds(v), color: Tare.ink(colour(step)), fontSize: 11 },
        };
      }),
      itemStyle: { color: colour(step), borderColor: Tare.css("--paper"), borderWidth: 1 },
      emphasis: { disabled: true },
    }));
    const whiskers = {
      type: "custom",
      silent: true,
      z: 5,
      data: rows.map((b, n) => [b.lo / 1e9, b.hi / 1e9, n]).filter((x) => x[1] > 0),
      renderItem: (_, api) => {
        const [x1, mid] = api.coord([api.value(0), api.value(2)]),
          y = mid + 13, // below the bar and its figures
          x2 = api.coord([api.value(1), api.value(2)])[0],
          style = { stroke: Tare.css("--ink"), lineWidth: 1.2, fill: "none" };
        return {
          type: "path",
          shape: { pathData: `M${x1} ${y - 3}V${y + 3}M${x1} ${y}H${x2}M${x2} ${y - 3}V${y + 3}` },
          style,
        };
      },
    };
    return {
      height: rows.length * (narrow ? 42 : 30) + 60,
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
        series: [...series, whiskers, { type: "line", data: [], silent: true, markLine: Tare.rules("xAxis", ticks) }],
      },
    };
  };

  const within = (x) => (x.hi > 0 ? `, 95 % interval ${seconds(x.lo)} to ${seconds(x.hi)}` : "");
  const tip = ({ b, p }) => `${Tare.short(name(b), 70)}\n${Tare.plain(p.name)}: ${seconds(p.median)}${within(p)}\nthe whole start: ${seconds(b.start)}${within(b)}, ${Tare.plural(b.starts, "start")}`;
})();
