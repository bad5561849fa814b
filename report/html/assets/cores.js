// The processors of guests: a lane each, from idle to full, with the softirq share
// at its foot and what the host took away on top.
(() => {
  "use strict";

  const modes = ["softirq", "busy", "steal"]; // from the foot up

  const colours = () => {
    const c = Tare.lineColours();
    return { softirq: c[1], busy: c[0], steal: Tare.css("--line-2") };
  };
  const says = { softirq: "softirq: the kernel's network and timers", busy: "other work", steal: "stolen: the host ran something else" };

  Tare.coreFigures = (lines, trial) => {
    const ends = new Map();
    for (const l of lines) {
      const end = Tare.labelOf(l, "end") || "",
        cpu = Number(Tare.labelOf(l, "cpu"));
      if (!ends.has(end)) ends.set(end, new Map());
      const cores = ends.get(end);
      if (!cores.has(cpu)) cores.set(cpu, {});
      cores.get(cpu)[Tare.labelOf(l, "mode")] = l;
    }
    return [...ends].map(([end, cores]) => figure(end, [...cores].sort((a, b) => a[0] - b[0]), trial));
  };

  // core sums a processor's modes up: at work is what is not idle and not stolen.
  const work = (core) => {
    const parts = ["busy", "softirq"].map((m) => core[m]).filter(Boolean);
    return parts.length ? Tare.lineSum(parts).sum : null;
  };

  const figure = (end, cores, trial) => {
    const title = end ? `Processors in the guest: ${end}` : "Processors in the guest";
    const there = modes.filter((m) => cores.some(([, c]) => c[m]));
    return Tare.el(
      "figure",
      { class: "wide cores", "data-end": end },
      Tare.el("figcaption", {}, title, " ", Tare.el("span", { class: "resp" }, "share of each one's time, as the guest counts it")),
      chart(title, cores, trial).node,
      Tare.legendKeys([
        ...there.map((m) => ({ text: says[m], colour: colours()[m] })),
        ...(trial.window ? [{ text: "outside the measured window", colour: Tare.css("--line") }] : []),
      ]),
      Tare.folded(`series-${trial.where}-cores-${end}`, "Figures", () =>
        Tare.table(
          `${title}, means ${trial.window ? "while measured" : "over the trial"}`,
          [{ head: "processor" }, { head: "at work", num: true }, { head: "softirq", num: true }, ...(there.includes("steal") ? [{ head: "stolen", num: true }] : []), { head: "most at work", num: true }],
          cores.map(([cpu, c]) => {
            const all = work(c);
            const cell = (l) => {
              const v = l ? Tare.lineMean(l, trial.window) : 0;
              return v === null ? "-" : { text: Tare.percent(v), value: v };
            };
            const most = all ? Math.max(...all.v) : 0;
            return [String(cpu), cell(all), cell(c.softirq), ...(there.includes("steal") ? [cell(c.steal)] : []), { text: Tare.percent(most), value: most }];
          }),
        ),
      ),
    );
  };

  const chart = (title, cores, trial) => {
    const tall = cores.length <= 4 ? 54 : cores.length <= 16 ? 32 : 16,
      height = cores.length * tall + 52;
    return Tare.chart({
      room: height,
      name: "series cores",
      build: () => {
        const colour = colours();
        const data = [];
        cores.forEach(([, core], lane) => {
          let under = null; // what is below, at the same times
          for (const m of modes) {
            const l = core[m];
            if (!l) continue;
            const base = under || l.t.map(() => 0),
              top = l.v.map((v, i) => (base[i] || 0) + v);
            data.push({ value: [0, lane], lane, mode: m, t: l.t, base, top });
            under = top;
          }
        });
        return {
          height,
          label:
            `${title} during the trial: ` +
            cores
              .slice(0, 8)
              .map(([cpu, c]) => `processor ${cpu} ${Tare.percent(work(c) ? Tare.lineMean(work(c), trial.window) || 0 : 0)} at work`)
              .join(", ") +
            (cores.length > 8 ? `, and ${cores.length - 8} more in the table` : ""),
          option: {
            grid: { left: 62, right: 14, top: 6, bottom: 42 },
            xAxis: Tare.axis({ min: trial.begin, max: trial.end, ticks: Tare.niceTicks(trial.begin, trial.end, 8), name: "seconds since the trial's start", label: (v) => String(v) }),
            yAxis: {
              type: "category",
              inverse: true,
              data: cores.map(([cpu]) => `CPU ${cpu}`),
              axisTick: { show: false },
              axisLine: { show: false },
              axisLabel: { color: Tare.css("--ink-2"), fontSize: 11.5, hideOverlap: true },
              splitLine: { show: false },
            },
            tooltip: {
              trigger: "axis",
              axisPointer: { type: "line", axis: "x", lineStyle: { color: Tare.css("--line-2") } },
              formatter: (list) => tip([].concat(list)[0], cores),
            },
            series: [
              { type: "line", name: "time", data: (data.length ? data[0].t : []).map((x) => [x, 0]), symbol: "none", lineStyle: { width: 0 } }, // for the tooltip
              {
                type: "custom",
                name: "cores",
                data,
                silent: true,
                clip: true,
                tooltip: { show: false },
                encode: { x: 0, y: 1 },
                renderItem: (params, api) => {
                  const d = data[params.dataIndex],
                    foot = api.coord([0, d.lane])[1] + tall / 2 - 1,
                    y = (share) => foot - Math.min(1, share) * (tall - 4),
                    x = (t) => api.coord([t, d.lane])[0];
                  const points = [...d.t.map((t, i) => [x(t), y(d.top[i])]), ...d.t.map((t, i) => [x(t), y(d.base[i] || 0)]).reverse()];
                  return {
                    type: "group",
                    children: [
                      { type: "polygon", shape: { points }, style: { fill: colour[d.mode], opacity: 0.85 } },
                      { type: "line", shape: { x1: params.coordSys.x, x2: params.coordSys.x + params.coordSys.width, y1: foot, y2: foot }, style: { stroke: Tare.css("--line-2"), lineWidth: 1 } },
                    ],
                  };
                },
              },
              Tare.measured(trial, null),
            ],
          },
        };
      },
    });
  };

  const tip = (first, cores) => {
    if (!first || !first.value) return "";
    const x = first.value[0];
    const rows = cores.map(([cpu, c]) => {
      const v = (m) => (c[m] ? Tare.lineAt(c[m], x, { i: 0 }) : 0);
      return { cpu, work: v("busy") + v("softirq"), soft: v("softirq"), steal: v("steal") };
    });
    if (rows.length > 14) rows.sort((a, b) => b.work - a.work);
    return (
      `${x.toFixed(2)} s\n` +
      rows
        .slice(0, 14)
        .map((r) => `CPU ${r.cpu}: ${Math.round(100 * r.work)} % at work, ${Math.round(100 * r.soft)} % softirq${r.steal > 0 ? `, ${Math.round(100 * r.steal)} % stolen` : ""}`)
        .join("\n")
    );
  };
})();
