// What was sampled during one trial: CPU by role (cpu.js), the processors of guests
// (cores.js), and every other line. A file holds the series that it had room for; a
// live report fetches any.
(() => {
  "use strict";

  let part,
    host,
    asked = 0;
  const answers = new Map();

  Tare.seriesSection = () => {
    part = Tare.section("series", "One trial in time", ["series"]);
    host = Tare.el("div", {});
    Tare.put(part.body, host);
    return part;
  };

  const trialId = (t) => `${Tare.data.doc.trials.seq[t]}-${Tare.data.doc.trials.attempt[t]}`;
  const trialOf = (id) => {
    const T = Tare.data.doc.trials,
      [seq, attempt] = id.split("-").map(Number);
    return T.seq.findIndex((s, t) => s === seq && T.attempt[t] === attempt);
  };
  // Cells of no stratum are the sentinel's, or of another version of the study.
  const cellName = (cell) => {
    if (!cell.stratum) return strayName(cell);
    const row = Tare.data.rows.find((r) => r.stratum === cell.stratum);
    return `${row ? row.name : cell.stratum}: ${Tare.treatmentOf(cell.treatment)}`;
  };
  const strayName = (cell) => {
    const s = Tare.data.res.sentinel;
    if (s && Tare.keyOf(s.cell) === cell.key) return "sentinel";
    return `${Tare.levelsText(cell.levels)} (of another version of the study)`;
  };
  Tare.cellName = cellName;

  // fetched asks the server for a trial's series, once.
  const fetched = async (t) => {
    const id = trialId(t);
    if (!answers.has(id)) answers.set(id, await Tare.get(`series?trial=${encodeURIComponent(id)}`));
    return answers.get(id);
  };

  const compared = (cell) => !!Tare.data.doc.cells[cell].stratum;

  // can lists the trials whose series can be shown.
  const can = () =>
    Tare.live() !== null ? Tare.data.doc.trials.cell.map((_, t) => t) : [...Tare.data.series.keys()].sort((a, b) => a - b);

  Tare.renderSeries = () => {
    const D = Tare.data,
      T = D.doc.trials;
    part.refreshNote();
    let trials = can();
    if (Tare.view.filtered) {
      const shown = Tare.cellsShown();
      const some = trials.filter((t) => shown.has(T.cell[t]));
      if (some.length) trials = some;
    }
    part.node.hidden = !trials.length && !D.doc.omitted;
    if (!trials.length) {
      Tare.fill(host, D.doc.omitted ? Tare.el("p", { class: "quiet" }, D.doc.omitted) : null);
      return;
    }
    let now = Tare.state.trial ? trialOf(Tare.state.trial) : -1;
    if (now < 0 || !(D.series.has(now) || Tare.live() !== null))
      now =
        trials.find((t) => T.ok[t] && compared(T.cell[t]) && !D.doc.cells[T.cell[t]].baseline) ??
        trials.find((t) => compared(T.cell[t])) ??
        trials[0];
    const cells = [...new Set([...trials.map((t) => T.cell[t]), T.cell[now]])].sort(
      (a, b) => Number(compared(b)) - Number(compared(a)) || a - b,
    );
    const mine = can().filter((t) => T.cell[t] === T.cell[now]);
    const cellSelect = Tare.el(
      "select",
      {
        id: "series-cell",
        "data-id": "series-cell",
        on: {
          change: (ev) => {
            const t = can().find((x) => T.cell[x] === Number(ev.target.value));
            if (t !== undefined)
              Tare.set("trial", (s) => {
                s.trial = trialId(t);
              });
          },
        },
      },
      cells.map((c) => Tare.el("option", { value: String(c), selected: c === T.cell[now] }, cellName(D.doc.cells[c]))),
    );
    const trialSelect = Tare.el(
      "select",
      {
        id: "series-trial",
        "data-id": "series-trial",
        on: {
          change: (ev) =>
            Tare.set("trial", (s) => {
              s.trial = ev.target.value;
            }),
        },
      },
      mine.map((t) =>
        Tare.el(
          "option",
          { value: trialId(t), selected: t === now },
          `block ${T.block[t]}${T.attempt[t] > 1 ? `, attempt ${T.attempt[t]}` : ""}${T.ok[t] ? "" : ", failed"}`,
        ),
      ),
    );
    const body = Tare.el("div", { "aria-live": "polite" });
    Tare.fill(
      host,
      Tare.el(
        "div",
        { class: "controls" },
        Tare.el("label", { for: "series-cell" }, "cell "),
        cellSelect,
        Tare.el("label", { for: "series-trial" }, "trial "),
        trialSelect,
      ),
      Tare.el("p", { class: "paper" }, `${cellName(D.doc.cells[T.cell[now]])}, block ${T.block[now]}`),
      body,
      D.doc.omitted ? Tare.el("p", { class: "quiet" }, D.doc.omitted) : null,
    );
    Tare.showSeries(body, now, "main");
  };

  // showSeries draws a trial's series into a node; those that wanted chooses first, where
  // it is given, the others folded.
  Tare.showSeries = async (node, t, where, wanted) => {
    const my = ++asked;
    let s = Tare.data.series.get(t);
    if (!s && Tare.live() !== null) {
      try {
        s = await fetched(t);
      } catch (err) {
        Tare.fill(node, Tare.el("p", { class: "quiet" }, `The series cannot be fetched: ${err.message}`));
        return;
      }
      if (where === "main" && my !== asked) return; // another was chosen meanwhile
    }
    if (!s || !s.lines || !s.lines.length) {
      Tare.fill(node, Tare.el("p", { class: "quiet" }, "Nothing was sampled in this trial, or its series is not in this file."));
      return;
    }
    const end = Math.max(...s.lines.map((l) => l.t[l.t.length - 1] || 0)),
      duration = Tare.data.doc.trials.duration[t];
    const trial = { where, window: s.window || null, end: Math.max(end, Number.isFinite(duration) && duration < 2 * end ? duration : 0) || 1 };
    // A machine that takes long to start leaves nothing to see before the first reading.
    const first = Math.min(...s.lines.map((l) => l.t[0]), trial.window ? trial.window[0] : Infinity);
    trial.begin = first > 0.2 * trial.end ? first - 0.02 * (trial.end - first) : 0;
    const chosen = wanted ? s.lines.filter(wanted) : s.lines;
    Tare.fill(
      node,
      Tare.thinned(chosen),
      wanted && !chosen.length ? Tare.el("p", { class: "quiet" }, "The series of these readings are not in this file.") : null,
      figures(chosen, trial),
      chosen.length < s.lines.length ? Tare.folded(`series-${where}-whole`, "All of this trial", () => figures(s.lines, { ...trial, where: `${where}-whole` })) : null,
    );
    if (Tare.printing()) Tare.drawCharts();
  };

  // figures draws lines: those of CPU and processors large, the others small and folded.
  const figures = (lines, trial) => {
    const named = (name) => lines.filter((l) => l.name === name);
    const wide = [...Tare.cpuFigures(named, trial), ...Tare.coreFigures(named("guest_core"), trial)];
    const groups = new Map();
    for (const l of lines) {
      if (Tare.cpuLine(l) || l.name === "guest_core") continue;
      const k = l.name + "\n" + l.unit;
      if (!groups.has(k)) groups.set(k, { name: l.name, unit: l.unit, lines: [] });
      groups.get(k).lines.push(l);
    }
    const small = [...groups.values()].map((g) =>
      Tare.el(
        "figure",
        { class: "small" },
        Tare.el("figcaption", {}, g.name, " ", Tare.el("span", { class: "resp" }, g.unit === "1" ? "fraction" : g.unit)),
        lineChart(g, trial).node,
        Tare.legendKeys(g.lines.map((l) => ({ text: Tare.lineLabel(l), colour: Tare.lineColour(l) }))),
        Tare.lineTable(`${g.name}`, g.lines, trial, `series-${trial.where}-${g.name}`),
      ),
    );
    const rest = () => Tare.el("div", { class: "smalls" }, small);
    return [wide, small.length ? (wide.length ? Tare.folded(`series-${trial.where}-others`, `Other lines (${small.length})`, rest) : rest()) : null];
  };

  const lineChart = (g, trial) =>
    Tare.chart({
      room: 190,
      name: `series ${g.name}`,
      build: () => {
        let most = 0;
        for (const l of g.lines) most = Math.max(most, ...l.v);
        const max = most > 0 ? most * 1.06 : 1;
        return {
          height: 190,
          label:
            `${g.name} during the trial: ` +
            g.lines
              .slice(0, 8)
              .map((l) => `${Tare.lineLabel(l)} ${Tare.value(Tare.lineMean(l), l.unit)} on average`)
              .join(", "),
          option: {
            ...Tare.timeAxes(trial, max, g.unit),
            tooltip: Tare.timeTip(g.unit),
            series: [
              ...g.lines.map((l) => ({
                type: "line",
                name: Tare.plain(Tare.lineLabel(l)),
                data: l.t.map((x, k) => [x, l.v[k]]),
                symbol: "none",
                lineStyle: { width: 1.5, color: Tare.lineColour(l), type: Tare.lineDash(l) },
                itemStyle: { color: Tare.lineColour(l) },
                emphasis: { disabled: true },
              })),
              Tare.measured(trial, Tare.niceTicks(0, max, 5, g.unit)),
            ],
          },
        };
      },
    });

  Tare.trialId = trialId;
  Tare.seriesTrials = (cell) => can().filter((t) => Tare.data.doc.trials.cell[t] === cell);
})();
