// Bars of single cells under a summary table: what its means are made of. Two
// styles: a group for each level of two factors, such as message size and CPU
// limit, coloured by treatment; or a group for each level of one, with the other
// as hatching. Further factors are chosen, and the caption names what is. Rows of
// the table are levels like any other: each has its bars, or can be chosen.
(() => {
  "use strict";

  const chosen = new Map(); // by table: style and levels

  // mostGroups is how many groups two factors may make where the table has no column factor. One
  // more, and the second factor is chosen.
  const mostGroups = 24;

  // at is a comparison's level of a factor, "" where it has none; word is how that is written.
  const at = (i, f) => Tare.levelOf(i.c.cell, f.name) ?? "";
  const word = (f, v) => (v === "" ? Tare.none : Tare.levelName({ factor: f.name, value: v }));

  // least is the sign before a value that is a lower bound.
  const least = (i) => (i.c.level.at_least ? "> " : "");

  // about are the comparisons that a table is about, its baselines among them.
  const about = (t) =>
    Tare.data.items.filter(
      (i) =>
        i.c.response.name === t.response.name &&
        (t.fixed || []).every((l) => l.factor !== "workload" || i.c.workload === l.value) &&
        (t.where || []).every((f) => f.factor !== "workload" || f.levels.includes(i.c.workload)) &&
        (i.hasRatio || i.kind === "baseline"),
    );

  Tare.barsOf = (t) => {
    const items = about(t);
    const varies = (f) => {
      const seen = new Set(items.map((i) => Tare.levelOf(i.c.cell, f.name)).filter((v) => v !== undefined));
      return f.levels.filter((v) => seen.has(v));
    };
    // Row factors that tell treatments apart are in the colours. The others tell strata apart.
    const nested = new Set(t.row_factors.filter((name) => Tare.data.treatments.some((tr) => Tare.levelOf(tr.cell, name) !== undefined)));
    const factors = Tare.data.factors.map((f) => ({ name: f.name, levels: varies(f) })).filter((f) => f.levels.length > 1 && f.name !== t.column_factor && !nested.has(f.name));
    // Groups are of the factor that the table has one level of, such as the message
    // size, else of the first that it is averaged over.
    const asked = new Set([...(t.where || []).map((f) => f.factor), ...(t.fixed || []).map((l) => l.factor)]);
    const second = t.columns.length > 1 ? Tare.data.factors.find((f) => f.name === t.column_factor) : null;
    const x = factors.find((f) => asked.has(f.name) && f.name !== "workload") || factors.find((f) => f.name !== "workload") || second;
    if (!x || items.length < 2) return null;
    const row = (f) => t.row_factors.includes(f.name) && f.levels.length * x.levels.length <= mostGroups;
    const column = (x === second ? null : second) || factors.find((f) => f !== x && row(f)) || null;
    const rest = factors.filter((f) => f !== x && f !== column);
    if (!chosen.has(t.name)) chosen.set(t.name, { style: "groups", levels: {} });
    const want = chosen.get(t.name);
    const set = { t, items, x, column, want, rest };
    for (const f of rest) if (!f.levels.includes(want.levels[f.name])) want.levels[f.name] = f.levels[0];
    const chart = Tare.chart({ room: 320, name: `bars ${t.name}`, build: () => build(set) });
    const keys = Tare.el("div", {});
    const caption = Tare.el("figcaption", {});
    const show = () => {
      Tare.fill(caption, captionOf(set));
      Tare.fill(keys, [legend(set), late(set)]);
      chart.update();
    };
    const select = (id, name, options, now, use) => [
      Tare.el("label", { for: id }, `${name} `),
      Tare.el(
        "select",
        {
          id,
          "data-id": id,
          on: {
            change: (ev) => {
              use(ev.target.value);
              show();
            },
          },
        },
        options.map(([v, text]) => Tare.el("option", { value: v, selected: v === now }, text)),
      ),
    ];
    show();
    const id = `bars-${t.name}`;
    return Tare.el(
      "figure",
      { class: "wide bars", "data-bars": t.name },
      caption,
      Tare.el(
        "div",
        { class: "controls" },
        set.column
          ? select(`${id}-style`, "style", [["groups", `groups by ${x.name} and ${column.name}`], ["hatching", `groups by ${x.name}, ${column.name} hatched`]], want.style, (v) => {
              want.style = v;
            })
          : null,
        rest.map((f, n) =>
          select(`${id}-${n}`, f.name, f.levels.map((v) => [v, Tare.levelName({ factor: f.name, value: v })]), want.levels[f.name], (v) => {
            want.levels[f.name] = v;
          }),
        ),
      ),
      chart.node,
      keys,
    );
  };

  // shown are the bars that are drawn.
  const shown = ({ items, rest, want }) =>
    items.filter((i) => rest.every((f) => ["", want.levels[f.name]].includes(at(i, f))));

  // captionOf says what the bars are of. What is chosen is told here too: paper has no controls.
  const captionOf = (set) => {
    const bars = shown(set);
    const levels = set.rest.filter((f) => bars.some((i) => at(i, f) !== "")).map((f) => `${f.name} ${word(f, set.want.levels[f.name])}`);
    return `${set.t.response.name} by ${set.x.name}${set.column ? ` and ${set.column.name}` : ""}${levels.length ? `, with ${levels.join(", ")}` : ""}`;
  };

  const legend = (set) => {
    const columns = [...new Set(shown(set).map((i) => i.column))].sort((a, b) => a - b);
    return Tare.legendKeys([
      ...columns.filter((c) => c >= 0).map((c) => ({ text: Tare.treatmentName(Tare.data.treatments[c].cell), colour: Tare.treatmentStyle(c).colour })),
      ...(set.column && set.want.style === "hatching"
        ? levelsOf(set, set.column).map((v, n) => ({ text: `${set.column.name} ${word(set.column, v)}`, colour: Tare.css("--ink-2"), image: n ? Tare.hatch(Tare.css("--ink-2"), n - 1).image.toDataURL() : null }))
        : []),
      { text: "whisker: the interval of the ratio to the baseline", colour: Tare.css("--ink"), mark: "line-solid" },
    ]);
  };

  // late explains the sign above bars that are lower bounds.
  const late = (set) =>
    shown(set).some((i) => i.c.level.at_least)
      ? Tare.el("div", { class: "keys" }, Tare.el("span", { class: "key" }, Tare.el("b", {}, ">"), " pods or claims did not get there before the step ended: the time is a lower bound"))
      : null;

  // levelsOf are the levels of a factor that have bars, at the end "" where some have none of it.
  const levelsOf = (set, f) => {
    const bars = shown(set);
    return [...f.levels, ""].filter((v) => bars.some((i) => at(i, f) === v));
  };

  const build = (set) => {
    const { t, x, column, want } = set,
      bars = shown(set),
      hatched = column && want.style === "hatching";
    const treatments = [...new Set(bars.map((i) => i.column))].sort((a, b) => a - b);
    const firsts = levelsOf(set, x);
    const seconds = column ? levelsOf(set, column) : [null];
    const groups = hatched || !column ? firsts.map((v) => [v, null]) : firsts.flatMap((v) => seconds.map((c) => [v, c]));
    const slots = hatched ? treatments.flatMap((tr) => seconds.map((c) => [tr, c])) : treatments.map((tr) => [tr, null]);
    // Two cells may share a place, where one lacks a factor that the other has. Then they
    // stand side by side: none hides another.
    const of = new Map();
    for (const i of bars) {
      const k = JSON.stringify([at(i, x), column ? at(i, column) : null, i.column]);
      of.set(k, [...(of.get(k) || []), i]);
    }
    const copies = Math.max(1, ...[...of.values()].map((l) => l.length));
    const wide = slots.length * copies;
    const unit = Tare.unitOf(t.response);
    const value = (i) => (i.hasRatio ? i.c.estimate.value : i.c.level.typical);
    const ends = (i) => (i.hasRatio && i.c.estimate.lo > 0 ? [i.c.estimate.base * i.c.estimate.lo, i.c.estimate.base * i.c.estimate.hi] : null);
    let most = 0;
    for (const i of bars) most = Math.max(most, value(i), Math.min((ends(i) || [0, 0])[1], 1.5 * value(i)));
    const max = most * 1.05 || 1;
    const data = [];
    groups.forEach(([v, c], g) =>
      slots.forEach(([tr, h], s) => {
        (of.get(JSON.stringify([v, hatched ? h : c, tr])) || []).forEach((i, n) => data.push({ g, i, s: s * copies + n, h }));
      }),
    );
    const colour = (tr) => Tare.treatmentStyle(tr).colour;
    const fills = new Map();
    const fill = (tr, h) => {
      const n = h === null ? 0 : seconds.indexOf(h);
      if (n <= 0) return colour(tr); // the first is plain
      const k = `${tr} ${n}`;
      if (!fills.has(k)) fills.set(k, Tare.hatch(colour(tr), n - 1, Tare.css("--paper")));
      return fills.get(k);
    };
    const height = 320,
      words = ([v, c]) => (c === null ? [word(x, v)] : [word(x, v), word(column, c)]);
    return {
      height,
      label:
        `Bars of ${captionOf(set)}: ` +
        data
          .slice(0, 6)
          .map((d) => `${words(groups[d.g]).join(" ")}${d.h === null ? "" : ` ${word(column, d.h)}`} ${Tare.treatmentName(Tare.data.treatments[d.i.column].cell)} ${least(d.i)}${Tare.value(value(d.i), unit)}`)
          .join(", ") +
        (data.length > 6 ? ", and more in All figures" : ""),
      option: {
        grid: { left: 66, right: 12, top: 10, bottom: hatched || !column ? 44 : 58 },
        xAxis: {
          type: "category",
          data: groups.map((g) => Tare.plain(words(g).join("\n"))),
          name: Tare.plain(hatched || !column ? x.name : `${x.name}, ${column.name} below`),
          nameLocation: "middle",
          nameGap: hatched || !column ? 26 : 40,
          nameTextStyle: { color: Tare.css("--ink-2"), fontSize: 12 },
          axisTick: { show: false },
          axisLine: { lineStyle: { color: Tare.css("--line-2") } },
          axisLabel: { color: Tare.css("--ink-2"), fontSize: 11, lineHeight: 15, hideOverlap: true },
        },
        yAxis: Tare.axis({ min: 0, max, ticks: Tare.niceTicks(0, max, 5, unit), label: (v) => (v === 0 ? "0" : Tare.value(v, unit)) }),
        tooltip: { trigger: "item", formatter: (q) => (q.seriesType === "custom" ? tip(data[q.dataIndex].i, unit) : "") },
        series: [
          {
            type: "custom",
            name: Tare.plain(t.response.name),
            data: data.map((d) => [d.g, value(d.i)]),
            encode: { x: 0, y: 1 },
            clip: true,
            renderItem: (params, api) => {
              const d = data[params.dataIndex],
                band = api.size([1, 0])[0] * 0.86,
                w = Math.min(34, band / wide),
                foot = api.coord([d.g, 0]),
                left = foot[0] - (w * wide) / 2 + w * d.s,
                top = api.coord([d.g, value(d.i)])[1],
                c = colour(d.i.column),
                span = ends(d.i);
              const gap = Math.min(1, w * 0.08);
              const children = [{ type: "rect", shape: { x: left + gap, y: top, width: Math.max(0.8, w - 2 * gap), height: foot[1] - top }, style: { fill: fill(d.i.column, d.h), stroke: c, lineWidth: d.h === null ? 0 : 1 } }];
              if (span && w > 3) {
                const [a, b] = span.map((v) => api.coord([d.g, Math.min(v, max)])[1]),
                  x1 = left + w / 2,
                  style = { stroke: Tare.css("--ink"), lineWidth: 1.2 };
                children.push({ type: "line", shape: { x1, x2: x1, y1: a, y2: b }, style });
              }
              if (d.i.c.level.at_least) {
                children.push({ type: "text", style: { text: ">", x: left + w / 2, y: top - 2, align: "center", verticalAlign: "bottom", fontSize: 11, fontWeight: "bold", fill: Tare.css("--ink") } });
              }
              return { type: "group", children };
            },
          },
          { type: "line", data: [], silent: true, markLine: Tare.rules("yAxis", Tare.niceTicks(0, max, 5, unit)) },
        ],
      },
    };
  };

  const tip = (i, unit) => {
    const e = i.c.estimate,
      own = `${Tare.short(i.row.name, 70)}\n${Tare.short(Tare.treatmentName(Tare.data.treatments[i.column].cell), 60)}: ${least(i)}${Tare.value(i.hasRatio ? e.value : i.c.level.typical, unit)}`;
    return i.hasRatio ? `${own}\n${Tare.late(i.c)}${Tare.times(i.cost.x)}${e.lo > 0 ? `  (${Tare.ratio(i.cost.lo)}–${Tare.ratio(i.cost.hi)})` : ""} the baseline's cost, ${Tare.kinds[i.kind].word}` : own;
  };
})();
