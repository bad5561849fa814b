// What all time series share: a line's name, colour, mean and value at a time; time
// axes with the measured window; a table of the figures.
(() => {
  "use strict";

  Tare.labelOf = (l, name) => {
    const m = new RegExp(`(?:^|,)${name}=((?:\\\\.|[^,])*)`).exec(l.labels || "");
    return m ? m[1].replace(/\\(.)/g, "$1") : undefined;
  };
  Tare.lineLabel = (l) =>
    (l.labels || l.name)
      .replace(/\b(end|role)=/g, "")
      .replace(/,/g, " ")
      .replace(/\\(.)/g, "$1");

  // A role has its colour in all trials; those that share one are of different kinds
  // of sandbox. Others take what follows, lighter each time round.
  const hues = { workload: 0, vcpu: 1, sentry: 1, vhost: 2, gofer: 2, virtiofsd: 3, shim: 3, vmm: 4, iothread: 5, harness: 6 };
  const others = new Map();
  const hueOf = (l) => {
    const role = Tare.labelOf(l, "role");
    if (role !== undefined && Object.hasOwn(hues, role)) return hues[role];
    const of = (x) => Tare.labelOf(x, "role") || x.labels || "";
    if (!others.has(l.name)) {
      const all = new Set();
      for (const s of Tare.data.doc.series || []) for (const x of s.lines) if (x.name === l.name && !Object.hasOwn(hues, of(x))) all.add(of(x));
      others.set(l.name, [...all].sort());
    }
    const list = others.get(l.name);
    if (!list.includes(of(l))) list.push(of(l));
    return (role === undefined ? 0 : 7) + list.indexOf(of(l));
  };
  Tare.lineColour = (l, alone) => {
    if (Tare.labelOf(l, "role") === "unattributed") return Tare.css("--line-2");
    const c = Tare.lineColours(),
      n = hueOf(l),
      end = Tare.labelOf(l, "end");
    const lighter = alone ? 0 : end === undefined && Tare.labelOf(l, "role") ? 2 : end === "client" ? 1 : 0;
    return Tare.tint(c[n % c.length], lighter + Math.floor(n / c.length));
  };
  Tare.lineDash = (l) => (hueOf(l) >= 7 ? "dashed" : "solid");

  // lineAt is a line's value at a time, 0 outside of it. hint.i is where to look from.
  Tare.lineAt = (l, x, hint) => {
    let i = hint.i;
    while (i < l.t.length && l.t[i] < x) i++;
    hint.i = i;
    if (i >= l.t.length || (i === 0 && l.t[0] > x + 1e-9)) return 0;
    if (i === 0 || l.t[i] === x) return l.v[i];
    const w = (x - l.t[i - 1]) / (l.t[i] - l.t[i - 1]);
    return l.v[i - 1] + w * (l.v[i] - l.v[i - 1]);
  };

  // lineMean is the mean over time, by trapezes; of a window, of what lies in it.
  Tare.lineMean = (l, window) => {
    let { t, v } = l;
    if (window) {
      const from = Math.max(window[0], t[0]),
        to = Math.min(window[1], t[t.length - 1]);
      if (!(to > from)) return null;
      const inner = t.filter((x) => x > from && x < to),
        hint = { i: 0 };
      t = [from, ...inner, to];
      v = t.map((x) => Tare.lineAt(l, x, hint));
    }
    if (t.length < 2) return v.length ? v[0] : 0;
    let sum = 0;
    for (let i = 1; i < t.length; i++) sum += ((t[i] - t[i - 1]) * (v[i] + v[i - 1])) / 2;
    const span = t[t.length - 1] - t[0];
    return span > 0 ? sum / span : v[0];
  };

  // lineSum adds lines up, at all times that one of them has.
  Tare.lineSum = (lines) => {
    const t = [...new Set(lines.flatMap((l) => l.t))].sort((a, b) => a - b),
      hints = lines.map(() => ({ i: 0 }));
    const parts = lines.map((l, k) => t.map((x) => Tare.lineAt(l, x, hints[k])));
    return { sum: { name: "sum", labels: "", unit: lines[0].unit, t, v: t.map((_, i) => parts.reduce((n, p) => n + p[i], 0)) }, parts };
  };

  // thinned says what is shown of lines that have more readings than there is room for.
  Tare.thinned = (lines) => {
    const by = new Map();
    for (const l of lines) if (l.by) by.set(l.by, Math.max(by.get(l.by) || 0, l.of));
    if (!by.size) return null;
    const says = { mean: "CPU and processors: the mean of each stretch of time", extremes: "other lines: the minimum and maximum of each stretch" };
    return Tare.el(
      "p",
      { class: "quiet thinned" },
      `Of ${Tare.grouped(Math.max(...by.values()))} readings a line, fewer are shown; ${[...by.keys()]
        .sort()
        .reverse()
        .map((k) => says[k] || k)
        .join("; ")}.`,
    );
  };

  Tare.timeAxes = (trial, max, unit, o) => ({
    grid: { left: 62, right: 14, top: 10, bottom: 42, ...o },
    xAxis: Tare.axis({
      min: trial.begin,
      max: trial.end,
      ticks: Tare.niceTicks(trial.begin, trial.end, 8),
      name: "seconds since the trial's start",
      label: (v) => String(v),
    }),
    yAxis: Tare.axis({
      min: 0,
      max,
      ticks: Tare.niceTicks(0, max, o && o.few ? 2 : 5, unit),
      label: (v) =>
        v === 0
          ? "0"
          : Tare.value(v, unit)
              .replace(/(\.\d*?)0+( |$)/, "$1$2")
              .replace(/\.( |$)/, "$1"),
    }),
  });

  // measured is a series that draws the rules and greys what is outside of the
  // measured window.
  Tare.measured = (trial, ticks) => {
    const [from, to] = trial.window || [trial.begin, trial.end],
      grey = (a, b) => [{ xAxis: a }, { xAxis: b }];
    return {
      type: "line",
      data: [],
      silent: true,
      markLine: ticks ? Tare.rules("yAxis", ticks) : undefined,
      markArea: trial.window
        ? {
            silent: true,
            itemStyle: { color: Tare.css("--line"), opacity: 0.55 },
            data: [grey(trial.begin, Math.max(from, trial.begin)), grey(Math.min(to, trial.end), trial.end)],
          }
        : undefined,
    };
  };

  // timeTip lists what is not zero at a time.
  Tare.timeTip = (unit) => ({
    trigger: "axis",
    axisPointer: { type: "line", lineStyle: { color: Tare.css("--line-2") } },
    formatter: (list) => {
      const rows = [].concat(list).filter((x) => x.value);
      return rows.length
        ? `${rows[0].value[0].toFixed(2)} s\n` +
            rows
              .filter((x) => x.value[1] !== 0)
              .slice(0, 14)
              .map((x) => `${x.seriesName}: ${Tare.value(x.value[1], unit)}`)
              .join("\n")
        : "";
    },
  });

  // lineTable has each line's mean over the trial and over the measured window, and
  // the most that is shown of it.
  Tare.lineTable = (what, lines, trial, fold) =>
    Tare.folded(fold, "Figures", () =>
      Tare.table(
        `${what}, means over the trial`,
        [{ head: "line" }, { head: "mean", num: true }, { head: "most", num: true }, ...(trial.window ? [{ head: "mean while measured", num: true }] : [])],
        lines.map((l) => {
          const cell = (v) => (v === null ? "-" : { text: Tare.value(v, l.unit), value: v });
          return [l.name === "sum" ? "sum" : Tare.lineLabel(l), cell(Tare.lineMean(l)), cell(Math.max(...l.v)), ...(trial.window ? [cell(Tare.lineMean(l, trial.window))] : [])];
        }),
      ),
    );
})();
