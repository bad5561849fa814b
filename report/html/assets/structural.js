// What system calls explain of each cost: a bar for each treatment of each workload,
// all of it the time of one operation there. From left: what it takes natively, what
// calls x cost explains, the rest. What calls x cost would take beyond the measured
// time is hatched, to the right of the end. The same figures as a table.
(() => {
  "use strict";

  const most = 2; // a bar ends here, as a multiple of the measured time
  const none = "no extra time"; // structural.NoExtra
  let part, keyHost, draw, rest;

  Tare.structuralSection = () => {
    part = Tare.section("structural", "Structural cost", ["structural"]);
    keyHost = Tare.el("div", { class: "keys treatments" });
    const chartHost = Tare.el("div", {});
    draw = Tare.pieces(chartHost, "structural cost", (n) => n * 26 + 60, build);
    rest = Tare.el("div", {});
    Tare.put(part.body, keyHost, chartHost, rest);
    return part;
  };

  const parts = () => {
    const [blue, orange] = Tare.lineColours();
    return [
      { id: "native", text: "native", colour: Tare.treatmentStyle(Math.max(0, Tare.data.treatments.findIndex((t) => t.baseline))).colour },
      { id: "explained", text: "calls × cost: interception", colour: orange },
      { id: "ofCalls", text: "the calls' own work", colour: blue },
      { id: "rest", text: "the rest", colour: Tare.tint(blue, 2) },
      { id: "over", text: "calls × cost beyond the measured time", colour: orange, hatched: true },
    ];
  };

  // sizes are the parts of a bar as shares of the measured time.
  const sizes = (s) => {
    const whole = s.native + s.extra.value,
      extra = Math.max(0, s.extra.value),
      explained = Math.min(s.explained.value, extra),
      left = extra - explained,
      own = Math.min(Math.max(0, s.of_calls), left);
    const out = { native: Math.min(s.native, whole), explained, ofCalls: own, rest: left - own, over: Math.max(0, s.explained.value - extra) };
    for (const k of Object.keys(out)) out[k] /= whole;
    out.over = Math.min(out.over, most - 1);
    return out;
  };

  const treatment = (s) => Tare.treatmentOf(s.treatment);
  const app = (s) => {
    const i = Tare.data.items.find((x) => x.c.stratum === s.stratum);
    return `${s.workload} ${Tare.levelsText(i ? i.row.rest : [])}`.trim();
  };
  const name = (s) => `${app(s)}  ${treatment(s)}`;
  const seconds = (v) => Tare.value(v, "s");

  Tare.renderStructural = () => {
    const all = Tare.data.res.structural || [];
    part.node.hidden = !all.length;
    if (!all.length) return;
    part.refreshNote();
    const rows = all.filter((s) => !s.missing);
    Tare.fill(
      keyHost,
      rows.length ? parts().map((p) => Tare.legendKey({ text: p.text, colour: p.colour, mark: p.hatched ? "dot-rect hatched" : null })) : null,
    );
    // A bar says nothing where no extra time is told; the table has those too.
    const told = rows.filter((s) => s.finding !== none);
    draw(told, Tare.printing() ? 20 : 60);
    Tare.fill(rest, Tare.blocks("structural"));
  };

  const build = (width, rows, scale) => {
    const narrow = Tare.narrow(width),
      rowHeight = narrow ? 42 : 26;
    const left = Tare.rowRoom(scale.map(name), width);
    const end = Math.max(1, ...scale.map((s) => 1 + sizes(s).over)) * 1.02;
    const ticks = [0, 0.25, 0.5, 0.75, 1, 1.5, 2].filter((t) => t <= end);
    const series = parts().map((p) => ({
      type: "bar",
      stack: "time",
      name: p.text,
      barWidth: narrow ? 15 : 17,
      data: rows.map((s) => {
        const v = sizes(s)[p.id];
        return {
          value: p.hatched && v === 0 ? null : v, // else its frame would be seen
          share: s,
          part: p,
          label: {
            show: !p.hatched && v * (width - left) / end > 40,
            formatter: `${Math.round(100 * v)} %`,
            color: Tare.ink(p.colour),
            fontSize: 11,
          },
        };
      }),
      itemStyle: { color: p.hatched ? Tare.hatch(p.colour) : p.colour, borderColor: p.hatched ? p.colour : Tare.css("--paper"), borderWidth: 1 },
      emphasis: { disabled: true },
    }));
    return {
      height: rows.length * rowHeight + 60,
      label:
        `Parts of an operation's time, ${rows.length} rows: ` +
        rows
          .slice(0, 3)
          .map((s) => `${name(s)}: ${parts().map((p) => `${p.text} ${Math.round(100 * sizes(s)[p.id])} %`).join(", ")}`)
          .join("; ") +
        (rows.length > 3 ? "; more in the table" : ""),
      option: {
        grid: { left, right: 14, top: 8, bottom: 46 },
        xAxis: Tare.axis({ min: 0, max: end, ticks, label: (v) => `${Math.round(100 * v)} %`, name: "of the measured time of an operation" }),
        yAxis: Tare.rowAxis(rows.map(name), width, left),
        tooltip: { trigger: "item", formatter: (q) => (q.data && q.data.share ? tip(q.data.share, q.data.part) : "") },
        series: [...series, { type: "line", data: [], silent: true, markLine: Tare.rules("xAxis", ticks) }],
      },
    };
  };

  const tip = (s, p) => {
    const own = { native: s.native, explained: s.explained.value, ofCalls: s.of_calls, rest: s.rest, over: s.explained.value - s.extra.value }[p.id];
    return (
      `${Tare.short(name(s), 70)}\n${p.text}: ${seconds(own)} a ${Tare.plain(s.operation)}\n` +
      `extra ${seconds(s.extra.value)}; ${Tare.digits(s.calls)} calls × ${seconds(s.cost.value)}${s.parallelism > 1.05 ? ` / ${Tare.digits(s.parallelism)}` : ""} = ${seconds(s.explained.value)}\n${s.finding}`
    );
  };
})();
