// One cell's cause in the dialogue at the side: the sentence that decided, the readings
// as bars against their limits, the fits over the cell's family, what to set, and the
// trial in time.
(() => {
  "use strict";

  const groups = [
    [1, "Supports it", "✓"],
    [0, "Neither: near the limit, or inconclusive", "~"],
    [-1, "Excludes other causes", "✗"],
  ];

  // causeDetails returns what makes the dialogue's content for a key that Tare.open was
  // given; null for keys of others.
  Tare.causeDetails = (key) => {
    const C = Tare.causes();
    if (!C) return null;
    if (key.startsWith("cause|")) {
      const f = C.byKey.get(key.slice(6));
      return f ? () => content(f) : null;
    }
    const m = /^cause-map\|(\d+)\|(\d+)\|(\d+)$/.exec(key),
      cells = m && Tare.causeCells(Number(m[1]), Number(m[2]), Number(m[3]));
    return cells ? () => listed(cells) : null;
  };

  const cellOf = (f) => Tare.data.doc.cells[f.cell];
  const rowOf = (f) => Tare.data.rows.find((r) => r.stratum === cellOf(f).stratum);
  const workOf = (f) => (rowOf(f) ? rowOf(f).name : cellOf(f).stratum);
  const treatmentOf = (f) => Tare.treatmentOf(cellOf(f).treatment);
  const badge = (f) => {
    const b = Tare.el("span", { class: "causebadge" }, Tare.causeWord(f));
    Tare.dressCause(b, f.cause, f.confidence || 0, f.costs);
    return b;
  };
  const opens = (key, id, ...what) =>
    Tare.el("button", { type: "button", class: "plain", "data-id": id, on: { click: () => Tare.set("open", (s) => (s.open = key)) } }, ...what);

  // causeLine is for the details of a comparison: its cell's cause, and the way there.
  Tare.causeLine = (c) => {
    const f = Tare.causeFinding(c.stratum, c.treatment);
    if (!f || f.cause === "unknown") return null;
    return Tare.el("p", { class: "causeline" }, badge(f), Tare.el("span", {}, f.text), opens(Tare.causeKey(f), "details-cause", "Readings and advice"));
  };

  const cost = (f) => {
    if (Tare.causeBaseline(f)) return "the baseline";
    const ratio = f.ratio > 0 ? `raw ratio of the ${f.response} ${Tare.ratio(f.ratio)}` : "";
    return [ratio, Tare.causeState(f)].filter(Boolean).join(": ");
  };

  // listed is a cell of a map that is over several.
  const listed = ({ title, sub, list }) => {
    const order = [...list].sort((a, b) => Number(b.costs || false) - Number(a.costs || false) || Number(b.undecided || false) - Number(a.undecided || false) || Tare.causeLoss(b) - Tare.causeLoss(a));
    return [
      Tare.dialogHead(title, `${sub}: ${Tare.plural(list.length, "cell")}`),
      Tare.el(
        "ul",
        { class: "causelist" },
        order.map((f) =>
          Tare.el(
            "li",
            {},
            badge(f),
            Tare.el("span", {}, `${workOf(f)}, ${treatmentOf(f)}`, Tare.el("span", { class: "quiet" }, ` ${cost(f)}${Tare.causeConfidence(f) ? `, ${Tare.causeConfidence(f)}` : ""}`)),
            opens(Tare.causeKey(f), `cl-${cellOf(f).key}`, "Readings", Tare.el("span", { class: "hidden" }, ` of ${workOf(f)}, ${treatmentOf(f)}`)),
          ),
        ),
      ),
    ];
  };

  const content = (f) => {
    const item = Tare.data.items.find((i) => i.c.stratum === cellOf(f).stratum && i.c.treatment === cellOf(f).treatment && i.c.response.name === f.response),
      confidence = Tare.causeConfidence(f);
    const about = Tare.causeKind(f.cause).about;
    return [
      Tare.dialogHead(treatmentOf(f), `${workOf(f)}: what bounds it`),
      Tare.el(
        "div",
        { class: "verdict" },
        badge(f),
        Tare.el(
          "span",
          { class: "beside" },
          Tare.el("span", {}, cost(f)),
          confidence ? Tare.el("span", {}, `confidence ${confidence}${f.confidence < Tare.data.doc.causes.doubtful ? ": doubtful" : ""}`) : null,
          Tare.el("span", {}, `${Tare.plural(f.trials, "good trial")} read${f.end ? `, of the ${f.end}` : ""}`),
        ),
      ),
      f.text ? Tare.el("p", { class: "decided" }, f.text.charAt(0).toUpperCase() + f.text.slice(1) + (/[.!?]$/.test(f.text) ? "" : ".")) : null,
      about ? Tare.el("p", { class: "quiet" }, `${Tare.causeWord(f)}: ${about}.`) : null,
      f.among ? Tare.el("p", {}, `Unclear: ${f.among.map((k) => Tare.causeKind(k).word).join(", ")}; the likeliest first.`) : null,
      f.missing ? Tare.el("p", {}, `Not read: ${f.missing}`) : null,
      f.price ? Tare.el("p", {}, Tare.el("b", {}, "Price: "), `${f.price}.`) : null,
      item ? Tare.el("p", {}, opens(item.key, "cause-comparison", "The comparison and its blocks")) : null,
      adviceFor(f),
      readings(f),
      fits(f),
      inTime(f),
    ];
  };

  const adviceFor = (f) => {
    const list = (Tare.data.doc.advice || []).filter((a) => a.cells.includes(f.cell));
    return list.length ? [Tare.el("h3", {}, "What to set"), list.map((a, n) => Tare.adviceItem(a, `d${n}`))] : null;
  };

  const readings = (f) => {
    const all = (f.readings || []).map(([at, says, value, lo, hi]) => ({ ...Tare.data.doc.causes.readings[at], says, value, lo, hi }));
    if (!all.length) return null;
    return [
      Tare.el("h3", {}, "Readings"),
      Tare.el("p", { class: "quiet" }, "Means over the measured time. The horizontal line: from the lowest to the highest trial. The vertical line: the limit above which the reading supports the cause."),
      groups.map(([says, title, mark]) => {
        const list = all.filter((r) => r.says === says);
        return list.length
          ? Tare.el(
              "div",
              { class: `readings says${says}` },
              Tare.el("h4", {}, Tare.el("span", { "aria-hidden": "true" }, `${mark} `), title),
              list.map(bar),
            )
          : null;
      }),
    ];
  };

  const bar = (r) => {
    const ends = [r.value, r.lo, r.hi, r.limit || 0, 0],
      from = Math.min(...ends),
      most = Math.max(...ends),
      to = r.unit === "1" && most <= 1 && most > 0.2 ? 1 : most > from ? most + 0.08 * (most - from) : from + 1;
    const at = (v) => `${Math.min(100, Math.max(0, (100 * (v - from)) / (to - from)))}%`,
      part = (a, b) => `${Math.max(0, Math.min(100, (100 * (b - a)) / (to - from)))}%`;
    const span = r.hi > r.lo ? ` (${Tare.value(r.lo, r.unit)} to ${Tare.value(r.hi, r.unit)})` : "";
    return Tare.el(
      "div",
      { class: "reading", "data-about": r.about, "data-value": r.value },
      Tare.el("span", { class: "name" }, Tare.el("b", {}, Tare.causeKind(r.about).word), ` ${r.name}`),
      Tare.el("span", { class: "value" }, Tare.value(r.value, r.unit), Tare.el("span", { class: "quiet" }, span, r.limit ? `; limit ${Tare.value(r.limit, r.unit)}` : "")),
      Tare.el(
        "span",
        { class: "track", "aria-hidden": "true" },
        Tare.el("i", { class: "fill", style: { left: at(Math.min(0, r.value)), width: part(Math.min(0, r.value), Math.max(0, r.value)) } }),
        r.hi > r.lo ? Tare.el("i", { class: "range", style: { left: at(r.lo), width: part(r.lo, r.hi) } }) : null,
        r.limit ? Tare.el("i", { class: "limit", style: { left: at(r.limit) } }) : null,
      ),
    );
  };

  const fits = (f) =>
    [
      [f.added, "Time that the sandbox adds", "a longer path adds a constant, whatever the size"],
      [f.factor, "Times the baseline's time", "a full queue is a constant factor under load"],
    ].map(([fit, title, says]) => (fit && fit.x.length ? [Tare.el("h3", {}, `${title}, over ${fit.over}`), Tare.el("p", { class: "quiet" }, `${fitted(fit)}: ${says}.`), fitChart(title, fit).node, fitTable(title, fit)] : null));

  const unitOf = (fit) => (fit.unit === "ratio" ? "" : fit.unit);
  const fitted = (fit) => {
    const v = (x) => (unitOf(fit) ? Tare.value(x, unitOf(fit)) : Tare.ratio(x));
    return `Constant ${v(fit.constant)} (${v(fit.lo)} to ${v(fit.hi)}), and ${v(fit.slope)} more for each ${fit.over.includes("size") ? "byte" : `of ${fit.over}`} (${v(fit.slope_lo)} to ${v(fit.slope_hi)})`;
  };
  const xName = (fit) => (x) => (fit.over.includes("size") ? Tare.value(x, "B").replace(/\.0+(?= )/, "") : Tare.digits(x).replace(/\.0+$/, ""));

  const fitTable = (title, fit) =>
    Tare.folded(`d-fit-${fit.over}`, "Figures", () =>
      Tare.table(
        `${title} over ${fit.over}`,
        [{ head: fit.over, num: true }, { head: fit.unit === "ratio" ? "ratio" : "added", num: true }],
        fit.x.map((x, i) => [{ text: xName(fit)(x), value: x }, { text: unitOf(fit) ? Tare.value(fit.y[i], unitOf(fit)) : Tare.ratio(fit.y[i]), value: fit.y[i] }]),
      ),
    );

  const fitChart = (title, fit) =>
    Tare.chart({
      name: `fit ${fit.over}`,
      room: 230,
      build: (width) => {
        const lo = Math.min(...fit.x),
          hi = Math.max(...fit.x),
          log = lo > 0 && hi / lo > 8,
          place = (x) => (log ? Math.log(x) : x),
          y = (x) => fit.constant + fit.slope * x;
        const pad = 0.06 * (place(hi) - place(lo)) || 1,
          steps = Array.from({ length: 61 }, (_, i) => place(lo) - pad + ((place(hi) - place(lo) + 2 * pad) * i) / 60);
        const line = steps.map((p) => [p, y(log ? Math.exp(p) : p)]);
        // The line alone must not make the points small.
        const ends = [0, ...fit.y, fit.constant, Math.max(fit.lo, Math.min(0, ...fit.y)), Math.min(fit.hi, 2 * Math.max(...fit.y, fit.constant, 0))],
          min = Math.min(...ends),
          max = Math.max(...ends) * 1.1 || 1;
        const ticks = Tare.niceTicks(min, max, 5),
          colour = Tare.lineColours()[1],
          unit = unitOf(fit);
        return {
          height: 230,
          label: `${title} over ${fit.over}: ${fit.x.map((x, i) => `${xName(fit)(x)} ${unit ? Tare.value(fit.y[i], unit) : Tare.ratio(fit.y[i])}`).join(", ")}. ${fitted(fit)}`,
          option: {
            grid: { left: 70, right: 18, top: 10, bottom: 44 },
            xAxis: Tare.axis({ min: place(lo) - pad, max: place(hi) + pad, ticks: fit.x.map(place), label: (v) => xName(fit)(log ? Math.exp(v) : v), name: Tare.plain(fit.over) }),
            yAxis: Tare.axis({ min, max, ticks, label: (v) => (v === 0 ? "0" : unit ? Tare.value(v, unit) : Tare.ratio(v)) }),
            tooltip: { trigger: "item", formatter: (q) => (q.seriesType === "scatter" ? `${xName(fit)(fit.x[q.dataIndex])}: ${unit ? Tare.value(fit.y[q.dataIndex], unit) : Tare.ratio(fit.y[q.dataIndex])}` : "") },
            series: [
              { type: "line", data: [], silent: true, markLine: Tare.rules("yAxis", ticks) },
              {
                type: "line",
                data: line,
                symbol: "none",
                silent: true,
                clip: true,
                lineStyle: { color: colour, width: 1.6 },
                markArea: { silent: true, itemStyle: { color: colour, opacity: 0.14 }, data: [[{ yAxis: Math.max(min, fit.lo) }, { yAxis: Math.min(max, fit.hi) }]] },
                markLine: { silent: true, symbol: "none", precision: -1, label: { show: false }, lineStyle: { color: colour, type: "dashed", width: 1.2 }, data: [{ yAxis: fit.constant }] },
              },
              { type: "scatter", data: fit.x.map((x, i) => [place(x), fit.y[i]]), symbolSize: width < 400 ? 8 : 9, itemStyle: { color: Tare.lineColours()[0] } },
            ],
          },
        };
      },
    });

  // Lines are made of series: these are called otherwise. A quota is drawn over the CPU
  // that it is of.
  const lineNames = { guest_cpu: ["guest_core"], guest_softirqs: ["guest_core"], guest_cores: ["guest_core"], cgroup_cpu: ["cpu"] };
  for (const s of ["cpu_quota", "cgroup_periods", "cgroup_throttled_periods", "cgroup_throttled_time"]) lineNames[s] = ["cpu", "cpu_quota", "cpu_throttled"];
  const linesOf = (series) => (Object.hasOwn(lineNames, series) ? lineNames[series] : /^thread_/.test(series) ? ["cpu"] : [series, series.replace(/_time$/, "")]);

  // wanted tells whether a line is of a series that a reading names: one that supports
  // the cause; where none does, one near its limit; else any.
  const wanted = (f) => {
    const named = (f.readings || []).map(([at, says]) => ({ ...Tare.data.doc.causes.readings[at], says })).filter((r) => r.series);
    const most = Math.max(-1, ...named.map((r) => r.says));
    const asks = named.filter((r) => r.says === most).map((r) => ({ names: r.series.flatMap(linesOf), roles: r.roles }));
    return (l) => {
      const end = Tare.labelOf(l, "end"),
        role = Tare.labelOf(l, "role");
      if (f.end && end !== undefined && end !== f.end) return false;
      return asks.some((r) => r.names.includes(l.name) && (!r.roles || role === undefined || r.roles.includes(role)));
    };
  };

  const inTime = (f) => {
    const trials = Tare.seriesTrials(f.cell);
    if (!trials.length) return null;
    const T = Tare.data.doc.trials,
      some = (f.readings || []).some((r) => Tare.data.doc.causes.readings[r[0]].series),
      node = Tare.el("div", {}),
      show = (t) => Tare.showSeries(node, t, "cause", some ? wanted(f) : null);
    const good = trials.filter((t) => T.ok[t]),
      chosen = trials.find((t) => Tare.trialId(t) === Tare.state.trial) ?? good[good.length - 1] ?? trials[trials.length - 1];
    const select = Tare.el(
      "select",
      { id: "cause-trial", "data-id": "cause-trial", on: { change: (ev) => show(Number(ev.target.value)) } },
      trials.map((t) => Tare.el("option", { value: String(t), selected: t === chosen }, `block ${T.block[t]}${T.ok[t] ? "" : ", failed"}`)),
    );
    show(chosen);
    return [
      Tare.el("h3", {}, "One trial in time"),
      Tare.el("div", { class: "controls" }, Tare.el("label", { for: "cause-trial" }, "trial "), select),
      node,
    ];
  };
})();
