// What was sampled during one trial: CPU by role as a stacked area, and every
// other line. A file holds the series that it had room for; a live report
// fetches any.
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
    const t = Tare.data.treatments.find((x) => x.key === cell.treatment);
    return `${row ? row.name : cell.stratum}: ${t ? Tare.treatmentName(t.cell) : cell.treatment}`;
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

  // showSeries draws a trial's series into a node.
  Tare.showSeries = async (node, t, where) => {
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
    const groups = new Map();
    for (const l of s.lines) {
      const k = l.name + "\n" + l.unit;
      if (!groups.has(k)) groups.set(k, { name: l.name, unit: l.unit, lines: [] });
      groups.get(k).lines.push(l);
    }
    const list = [...groups.values()].sort((a, b) => Number(isCPU(b)) - Number(isCPU(a)));
    const figures = list.map((g) => {
      const chart = lineChart(g, Tare.data.doc.trials.duration[t]);
      return Tare.el(
        "figure",
        { class: isCPU(g) ? "wide" : "small" },
        Tare.el(
          "figcaption",
          {},
          isCPU(g) ? "CPU by role" : g.name,
          " ",
          Tare.el("span", { class: "resp" }, g.unit === "1" ? "fraction" : g.unit),
        ),
        chart.node,
        Tare.el(
          "div",
          { class: "keys" },
          g.lines.map((l) =>
            Tare.el(
              "span",
              { class: "key" },
              Tare.el("i", { class: "mark dot-rect", style: { "--c": colourOf(l) }, "aria-hidden": "true" }),
              " ",
              label(l),
            ),
          ),
        ),
        Tare.folded(`series-${where}-${g.name}`, "Figures", () =>
          Tare.table(
            `${g.name}, means over the trial`,
            [{ head: "line" }, { head: "mean", num: true }, { head: "most", num: true }],
            g.lines.map((l) => {
              const m = mean(l);
              const most = Math.max(...l.v);
              return [label(l), { text: Tare.value(m, l.unit), value: m }, { text: Tare.value(most, l.unit), value: most }];
            }),
          ),
        ),
      );
    });
    const wide = figures.filter((_, n) => isCPU(list[n])),
      small = figures.filter((_, n) => !isCPU(list[n]));
    const rest = () => Tare.el("div", { class: "smalls" }, small);
    Tare.fill(
      node,
      wide,
      small.length ? (wide.length ? Tare.folded(`series-${where}-others`, `Other lines (${small.length})`, rest) : rest()) : null,
    );
    if (Tare.printing()) Tare.drawCharts();
  };

  const isCPU = (g) => g.unit === "cores" && /^cpu(_rate)?$/.test(g.name);
  const label = (l) =>
    (l.labels || l.name)
      .replace(/\b(end|role)=/g, "")
      .replace(/,/g, " ")
      .replace(/\\(.)/g, "$1");
  // colourOf gives a line the same colour in all trials: a hue for each role, full
  // for the isolated end, lighter for the client, lighter still for neither.
  const roles = new Map();
  const labelOf = (l, name) => (new RegExp(`(?:^|,)${name}=((?:\\\\.|[^,])*)`).exec(l.labels || "") || [])[1];
  const hueOf = (l) => {
    const role = (x) => labelOf(x, "role") || x.labels || "";
    if (!roles.has(l.name)) {
      const all = new Set();
      for (const s of Tare.data.doc.series || []) for (const x of s.lines) if (x.name === l.name) all.add(role(x));
      roles.set(l.name, [...all].sort().reverse()); // "workload" first
    }
    const list = roles.get(l.name);
    if (!list.includes(role(l))) list.push(role(l));
    return list.indexOf(role(l));
  };
  const colourOf = (l) => {
    const c = Tare.lineColours(),
      n = hueOf(l),
      end = labelOf(l, "end");
    return Tare.tint(c[n % c.length], (end === undefined && labelOf(l, "role") ? 2 : end === "client" ? 1 : 0) + Math.floor(n / c.length));
  };

  // mean over time, by trapezes.
  const mean = (l) => {
    const { t, v } = l;
    if (t.length < 2) return v.length ? v[0] : 0;
    let sum = 0;
    for (let i = 1; i < t.length; i++) sum += ((t[i] - t[i - 1]) * (v[i] + v[i - 1])) / 2;
    const span = t[t.length - 1] - t[0];
    return span > 0 ? sum / span : v[0];
  };

  // at is a line's value at a time, 0 outside of it.
  const at = (l, x, hint) => {
    let i = hint.i;
    while (i < l.t.length && l.t[i] < x) i++;
    hint.i = i;
    if (i >= l.t.length || (i === 0 && l.t[0] > x + 1e-9)) return 0;
    if (i === 0 || l.t[i] === x) return l.v[i];
    const w = (x - l.t[i - 1]) / (l.t[i] - l.t[i - 1]);
    return l.v[i - 1] + w * (l.v[i] - l.v[i - 1]);
  };

  const lineChart = (g, duration) =>
    Tare.chart({
      room: isCPU(g) ? 260 : 190,
      name: `series ${g.name}`,
      build: () => {
        const stacked = isCPU(g);
        let most = 0,
          end = 0;
        for (const l of g.lines) end = Math.max(end, l.t[l.t.length - 1] || 0);
        end = Math.max(end, Number.isFinite(duration) && duration < 2 * end ? duration : 0) || 1;
        let series;
        if (stacked) {
          // Stacking needs the same times in all lines.
          const grid = [...new Set(g.lines.flatMap((l) => l.t))].sort((a, b) => a - b);
          const sum = grid.map(() => 0);
          series = g.lines.map((l) => {
            const hint = { i: 0 };
            const data = grid.map((x, k) => {
              const v = at(l, x, hint);
              sum[k] += v;
              return [x, v];
            });
            return {
              type: "line",
              name: Tare.plain(label(l)),
              stack: "all",
              stackStrategy: "all",
              data,
              symbol: "none",
              lineStyle: { width: 1, color: colourOf(l) },
              areaStyle: { color: colourOf(l), opacity: 0.75 },
              itemStyle: { color: colourOf(l) },
              emphasis: { disabled: true },
            };
          });
          most = Math.max(...sum, 0);
        } else {
          series = g.lines.map((l) => ({
            type: "line",
            name: Tare.plain(label(l)),
            data: l.t.map((x, k) => [x, l.v[k]]),
            symbol: "none",
            lineStyle: { width: 1.5, color: colourOf(l), type: hueOf(l) >= 7 ? "dashed" : "solid" },
            itemStyle: { color: colourOf(l) },
            emphasis: { disabled: true },
          }));
          for (const l of g.lines) most = Math.max(most, ...l.v);
        }
        const max = most > 0 ? most * 1.06 : 1;
        const yt = Tare.niceTicks(0, max, 5);
        if (series.length) series[0].markLine = Tare.rules("yAxis", yt);
        return {
          height: stacked ? 260 : 190,
          label:
            `${stacked ? "CPU by role" : g.name} during the trial: ` +
            g.lines
              .slice(0, 8)
              .map((l) => `${label(l)} ${Tare.value(mean(l), l.unit)} on average`)
              .join(", "),
          option: {
            grid: { left: 62, right: 14, top: 10, bottom: 42 },
            xAxis: Tare.axis({
              min: 0,
              max: end,
              ticks: Tare.niceTicks(0, end, 8),
              name: "seconds since the trial's start",
              label: (v) => String(v),
            }),
            yAxis: Tare.axis({
              min: 0,
              max,
              ticks: yt,
              label: (v) =>
                v === 0
                  ? "0"
                  : Tare.value(v, g.unit)
                      .replace(/(\.\d*?)0+( |$)/, "$1$2")
                      .replace(/\.( |$)/, "$1"),
            }),
            tooltip: {
              trigger: "axis",
              axisPointer: { type: "line", lineStyle: { color: Tare.css("--line-2") } },
              formatter: (list) => {
                const rows = [].concat(list);
                return rows.length
                  ? `${rows[0].value[0].toFixed(2)} s\n` +
                      rows
                        .filter((x) => x.value[1] !== 0)
                        .slice(0, 14)
                        .map((x) => `${x.seriesName}: ${Tare.value(x.value[1], g.unit)}`)
                        .join("\n")
                  : "";
              },
            },
            series,
          },
        };
      },
    });

  Tare.trialId = trialId;
  Tare.seriesTrials = (cell) => can().filter((t) => Tare.data.doc.trials.cell[t] === cell);
})();
