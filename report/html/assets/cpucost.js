// CPU time a unit of work costs in each sandbox, with its helpers on the host, as multiples
// of what the baseline takes for the same: bars by role, or dots on a logarithmic axis where
// the multiples span decades, and the same figures as a table.
(() => {
  "use strict";

  const size = 40; // bars on one page
  let part, keyHost, draw, pagerHost, rest;

  Tare.cpuCostSection = () => {
    part = Tare.section("cpucost", "CPU per unit of work", ["cpucost", "interval"]);
    const lead = Tare.el("p", { class: "quiet" }, "Processor time on the host for each byte, request or call, including all helpers of the sandbox, compared with the baseline.");
    keyHost = Tare.el("div", {});
    const chartHost = Tare.el("div", {});
    draw = Tare.pieces(chartHost, "cpu per unit of work", (n) => n * 26 + 60, build);
    pagerHost = Tare.el("div", {});
    rest = Tare.el("div", {});
    Tare.put(part.body, lead, keyHost, chartHost, pagerHost, rest);
    return part;
  };

  const stratum = (c) => `${c.workload} ${Tare.levelsText(c.shared.filter((l) => l.factor !== "workload" && !Tare.data.fixed.some((f) => f.factor === l.factor)))}`.trim();
  const treatment = (c) => Tare.treatmentOf(c.treatment);
  const name = (r) => `${stratum(r.c)}  ${treatment(r.c)}`;
  const a = (v, c) => `${Tare.value(v, "s")} a ${c.unit}`;
  const roles = (c) => (c.roles && c.roles.length ? c.roles.map((x) => ({ ...x, cores: x.part * c.cores, value: x.part * c.value })) : [{ role: "all", part: 1, cores: c.cores, value: c.value }]);
  const colour = (role) => (role === "all" ? Tare.lineColours()[0] : Tare.lineColour({ name: "cpu", labels: `role=${role}` }, true));

  const times = (r) => r.c.value / r.base.value;
  const far = (rows) => rows.length > 0 && Math.max(...rows.map(times)) > 20 * Math.min(...rows.map(times));

  Tare.renderCPUCost = () => {
    const all = Tare.data.res.cpu_costs || [];
    part.node.hidden = !all.length;
    if (!all.length) return;
    part.refreshNote();
    const base = new Map(all.filter((c) => c.baseline && c.value > 0).map((c) => [`${c.stratum}\n${c.response.name}`, c]));
    const rows = all.filter((c) => c.value > 0 && base.has(`${c.stratum}\n${c.response.name}`)).map((c) => ({ c, base: base.get(`${c.stratum}\n${c.response.name}`) }));
    const there = [...new Set(rows.flatMap((r) => roles(r.c).map((x) => x.role)))];
    Tare.fill(keyHost, rows.length && !far(rows) ? Tare.legendKeys(there.map((role) => ({ text: role, colour: colour(role) }))) : null);
    const p = Tare.pageOf("cpucost", rows, size);
    draw(rows.slice(p.from, p.to), Tare.printing() ? 10 : size);
    Tare.fill(pagerHost, Tare.pager(p, "bars"));
    Tare.fill(rest, Tare.blocks("cpucost"));
  };

  const baseline = () => Tare.short(Tare.data.res.baseline || "the baseline", 30);

  const build = (width, rows, scale) => {
    const narrow = Tare.narrow(width),
      left = Tare.rowRoom(scale.map(name), width);
    const end = 1.03 * Math.max(1, ...scale.map((r) => r.c.value / r.base.value)),
      ticks = Tare.niceTicks(0, end, 8),
      log = far(scale);
    const lo = 0.8 * Math.min(1, ...scale.map(times)),
      lnTicks = Tare.ratioTicks(lo, 1.3 * end, Math.max(3, Math.floor((width - left) / 70))).map(Math.log);
    const dots = {
      type: "scatter",
      symbolSize: 9,
      data: rows.map((r, n) => {
        const st = Tare.treatmentStyle(Math.max(0, Tare.data.treatments.findIndex((t) => t.key === r.c.treatment)));
        return { value: [Math.log(times(r)), n], symbol: st.symbol, itemStyle: { color: st.colour }, r, x: { role: "all roles", part: 1, value: r.c.value } };
      }),
    };
    const there = [...new Set(scale.flatMap((r) => roles(r.c).map((x) => x.role)))];
    const series = there.map((role) => ({
      type: "bar",
      stack: "cpu",
      name: role,
      barWidth: narrow ? 15 : 17,
      data: rows.map((r) => {
        const x = roles(r.c).find((y) => y.role === role);
        return { value: x ? x.value / r.base.value : 0, r, x };
      }),
      itemStyle: { color: colour(role), borderColor: Tare.css("--paper"), borderWidth: 1 },
      emphasis: { disabled: true },
    }));
    return {
      height: rows.length * (narrow ? 42 : 26) + 60,
      label:
        `CPU per unit of work, ${rows.length} bars: ` +
        rows
          .slice(0, 4)
          .map((r) => `${name(r)} ${a(r.c.value, r.c)}`)
          .join("; ") +
        (rows.length > 4 ? "; more in the table" : ""),
      option: {
        grid: { left, right: 18, top: 8, bottom: 46 },
        xAxis: log
          ? Tare.axis({ min: Math.log(lo), max: Math.log(1.3 * end), ticks: lnTicks, label: (v) => `${Tare.tickRatio(Math.exp(v))}×`, name: `times ${baseline()}'s CPU time (logarithmic)` })
          : Tare.axis({ min: 0, max: end, ticks, label: (v) => `${v}×`, name: `times ${baseline()}'s CPU time` }),
        yAxis: Tare.rowAxis(rows.map(name), width, left),
        tooltip: { trigger: "item", formatter: (q) => (q.data && q.data.x ? tip(q.data) : "") },
        series: [
          ...(log ? [dots] : series),
          { type: "line", data: [], silent: true, markLine: Tare.rules("xAxis", log ? lnTicks : ticks) },
          { type: "line", data: [], silent: true, markLine: { ...Tare.rules("xAxis", [log ? 0 : 1]), lineStyle: { color: Tare.css("--ink-2"), type: "solid", width: 1.5 }, z: 4 } },
        ],
      },
    };
  };

  const tip = ({ r, x }) => `${Tare.short(name(r), 70)}\n${Tare.plain(x.role)}: ${a(x.value, r.c)}, ${Math.round(100 * x.part)} %\nall: ${a(r.c.value, r.c)}, the baseline ${a(r.base.value, r.c)}`;
})();
