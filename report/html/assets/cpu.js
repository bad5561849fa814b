// CPU of each end's sandbox by the role of its threads: areas on each other, their
// sum, the quota of the cgroup that all of them are in, and below the share of the
// quota's periods in which it was used up.
(() => {
  "use strict";

  const far = 3; // a quota that is so many times the greatest sum is only told

  const plain = ["workload", "harness", "unattributed"]; // roles that every sandbox has

  const isCPU = (l) => l.unit === "cores" && /^cpu(_rate)?$/.test(l.name);
  // cpuLine are the lines that cpuFigures show.
  Tare.cpuLine = (l) => isCPU(l) || l.name === "cpu_quota" || l.name === "cpu_throttled";

  Tare.cpuFigures = (named, trial) => {
    const lines = [...named("cpu"), ...named("cpu_rate")].filter(isCPU);
    // First the ends that are in a sandbox with helpers or limits of its own; what is
    // of no end, the harness, comes last.
    const own = (end) => [...lines.filter((l) => !plain.includes(Tare.labelOf(l, "role"))), ...named("cpu_quota")].some((l) => Tare.labelOf(l, "end") === end);
    const rank = (end) => (end === undefined ? 2 : own(end) ? 0 : 1);
    const ends = [...new Set(lines.map((l) => Tare.labelOf(l, "end")))].sort((a, b) => rank(a) - rank(b));
    return ends.map((end) => {
      const at = (l) => Tare.labelOf(l, "end") === end;
      return figure(end, lines.filter(at), named("cpu_quota").find(at), named("cpu_throttled").find(at), trial, ends.length);
    });
  };

  const figure = (end, lines, quota, throttled, trial, of) => {
    lines = [...lines].sort((a, b) => order(a) - order(b));
    const { sum, parts } = Tare.lineSum(lines);
    const most = Math.max(...sum.v, 0),
      allowed = quota ? Math.max(...quota.v) : 0;
    const near = allowed > 0 && allowed <= far * most;
    const title = end === undefined ? (of > 1 ? "CPU outside the sandboxes by role" : "CPU by role") : `CPU by role: ${end}`;
    const rows = [...lines, ...(lines.length > 1 ? [sum] : []), ...(quota ? [{ ...quota, labels: "quota" }] : [])];
    // As in the table of quotas, tare's own agent does not count as use.
    const own = lines.filter((l) => Tare.labelOf(l, "role") !== "harness");
    const used = quota && own.length ? Tare.lineMean(Tare.lineSum(own).sum, trial.window) : null;
    return Tare.el(
      "figure",
      { class: "wide", "data-end": end === undefined ? "" : end },
      Tare.el("figcaption", {}, title, " ", Tare.el("span", { class: "resp" }, "cores")),
      chart(title, lines, sum, parts, near ? quota : null, near ? Math.max(most, allowed) : most, trial, end === undefined && of > 1 ? 150 : 260).node,
      throttled ? share(throttled, trial).node : null,
      Tare.legendKeys([
        ...lines.map((l) => ({ text: Tare.labelOf(l, "role") || Tare.lineLabel(l), colour: Tare.lineColour(l, true) })),
        ...(lines.length > 1 ? [{ text: "sum", colour: Tare.css("--ink"), mark: "line-solid" }] : []),
        ...(near ? [{ text: `quota of the cgroup: ${Tare.value(allowed, "cores")}`, colour: Tare.css("--fail"), mark: "line-dashed" }] : []),
        ...(trial.window ? [{ text: "outside the measured window", colour: Tare.css("--line") }] : []),
      ]),
      quota || throttled ? Tare.el("p", { class: "quiet quota" }, said(quota, allowed, near, used, throttled, trial)) : null,
      Tare.lineTable(title, rows, trial, `series-${trial.where}-cpu-${end}`),
    );
  };

  const said = (quota, allowed, near, used, throttled, trial) => {
    const parts = [];
    const when = trial.window ? "while measured" : "over the trial";
    if (quota && used !== null) parts.push(`${Tare.value(used, "cores")} of ${Tare.value(allowed, "cores")} allowed ${when}${near ? "" : " (the quota is beyond the picture)"}`);
    if (throttled) {
      const m = Tare.lineMean(throttled, trial.window);
      if (m !== null) parts.push(m === 0 ? `never throttled ${when}` : `throttled in ${Tare.percent(m)} of its periods ${when}, a mean over time of the curve; the table of quotas divides counts of periods`);
    }
    if (quota && used !== null) parts.push("tare's own agent is left out");
    return parts.join("; ") + ".";
  };

  // The workload's own time is at the bottom, what no thread is known for on top.
  const stack = ["workload", "vcpu", "sentry", "gofer", "iothread", "vhost", "virtiofsd", "vmm", "shim", "harness"];
  const order = (l) => {
    const role = Tare.labelOf(l, "role"),
      at = stack.indexOf(role);
    return role === "unattributed" ? 99 : at < 0 ? 50 : at;
  };

  const chart = (title, lines, sum, parts, quota, most, trial, tall) =>
    Tare.chart({
      room: tall,
      name: "series cpu",
      build: () => {
        const max = most > 0 ? most * 1.08 : 1;
        const areas = lines.map((l, k) => ({
          type: "line",
          name: Tare.plain(Tare.labelOf(l, "role") || Tare.lineLabel(l)),
          stack: "all",
          stackStrategy: "all",
          data: sum.t.map((x, i) => [x, parts[k][i]]),
          symbol: "none",
          lineStyle: { width: 1, color: Tare.lineColour(l, true) },
          areaStyle: { color: Tare.lineColour(l, true), opacity: 0.75 },
          itemStyle: { color: Tare.lineColour(l, true) },
          emphasis: { disabled: true },
        }));
        const line = (name, l, colour, type) => ({
          type: "line",
          name,
          data: l.t.map((x, i) => [x, l.v[i]]),
          symbol: "none",
          lineStyle: { width: 1.6, color: colour, type },
          itemStyle: { color: colour },
          emphasis: { disabled: true },
          z: 5,
        });
        if (lines.length > 1) areas.push(line("sum", sum, Tare.css("--ink"), "solid"));
        if (quota) {
          const q = line("quota", quota, Tare.css("--fail"), "dashed"),
            last = quota.v.length - 1;
          q.data = [[trial.begin, quota.v[0]], ...q.data, [trial.end, quota.v[last]]];
          areas.push(q);
        }
        return {
          height: tall,
          label:
            `${title} during the trial: ` +
            lines
              .slice(0, 8)
              .map((l) => `${Tare.labelOf(l, "role") || Tare.lineLabel(l)} ${Tare.value(Tare.lineMean(l), l.unit)} on average`)
              .join(", ") +
            (lines.length > 1 ? `; together ${Tare.value(Tare.lineMean(sum), "cores")}` : "") +
            (quota ? `; the quota is ${Tare.value(Math.max(...quota.v), "cores")}` : ""),
          option: {
            ...Tare.timeAxes(trial, max, "cores"),
            tooltip: Tare.timeTip("cores"),
            series: [...areas, Tare.measured(trial, Tare.niceTicks(0, max, 5))],
          },
        };
      },
    });

  const share = (l, trial) =>
    Tare.chart({
      room: 110,
      name: "series throttled",
      build: () => ({
        height: 110,
        label: `Share of the CPU limit's periods in which it was reached: ${Tare.percent(Tare.lineMean(l))} on average`,
        option: {
          ...Tare.timeAxes(trial, 1, "1", { top: 22, few: true }),
          title: { text: "periods throttled", left: 62, top: 2, textStyle: { fontSize: 11.5, fontWeight: 500, color: Tare.css("--ink-2") } },
          tooltip: Tare.timeTip("1"),
          series: [
            {
              type: "line",
              name: "periods throttled",
              data: l.t.map((x, i) => [x, l.v[i]]),
              symbol: "none",
              lineStyle: { width: 1.3, color: Tare.css("--fail") },
              areaStyle: { color: Tare.css("--fail"), opacity: 0.25 },
              itemStyle: { color: Tare.css("--fail") },
              emphasis: { disabled: true },
            },
            Tare.measured(trial, [0, 0.5, 1]),
          ],
        },
      }),
    });
})();
