// The details of one comparison, in a dialogue at the side: what was compared,
// the verdict and why, each block's values, the distribution, the trials in time.
(() => {
  "use strict";

  let dialog = null,
    body = null,
    from = null,
    pairChart = null;

  const ensure = () => {
    if (dialog) return;
    body = Tare.el("div", { class: "dialog-body" });
    dialog = Tare.el("dialog", { class: "details", "aria-labelledby": "details-title" }, body);
    dialog.addEventListener("close", () => {
      Tare.set("open", (s) => {
        s.open = null;
      });
      // The page may have been drawn anew since: the same place has a new element.
      const id = from && from.getAttribute("data-id");
      const back = from && from.isConnected ? from : id ? document.querySelector(`[data-id="${CSS.escape(id)}"]`) : null;
      if (back) back.focus({ preventScroll: true });
      Tare.dropCharts();
    });
    dialog.addEventListener("click", (ev) => {
      if (ev.target === dialog) dialog.close();
    });
    document.body.append(dialog);
  };

  // open shows a comparison; origin gets the focus back.
  Tare.open = (key, origin) => {
    from = origin || document.activeElement;
    Tare.set("open", (s) => {
      s.open = key;
    });
  };

  Tare.renderDetails = () => {
    const key = Tare.state.open;
    if (!key) {
      if (dialog && dialog.open) dialog.close();
      return;
    }
    const item = Tare.data.byKey.get(key),
      cause = item ? null : Tare.causeDetails(key);
    if (!item && !cause) {
      Tare.state.open = null;
      return;
    }
    ensure();
    const top = dialog.open && dialog.dataset.open === key ? body.scrollTop : 0;
    dialog.dataset.open = key;
    Tare.guard("The details", () => Tare.fill(body, item ? content(item) : cause()));
    if (!dialog.open) dialog.showModal();
    body.scrollTop = top;
    if (!body.contains(document.activeElement)) body.querySelector("#details-title")?.focus({ preventScroll: true });
  };

  // dialogHead is the top of a dialogue: its title, what it is about, and the way out.
  Tare.dialogHead = (title, sub) =>
    Tare.el(
      "div",
      { class: "dialog-head" },
      Tare.el("div", {}, Tare.el("h2", { id: "details-title", tabindex: "-1", autofocus: true, "data-id": "details-title" }, title), Tare.el("p", { class: "sub" }, sub)),
      Tare.el("button", { type: "button", class: "close", "aria-label": "Close the details", "data-id": "details-close", on: { click: () => dialog.close() } }, "✕"),
    );

  const term = (name, value) => [Tare.el("dt", {}, name), Tare.el("dd", {}, value)];
  const levelLine = (l, unit) =>
    l.n
      ? `${Tare.value(l.typical, unit)}, from ${Tare.value(l.min, unit)} to ${Tare.value(l.max, unit)} in ${Tare.plural(l.n, "trial")}`
      : "no value";

  const content = (item) => {
    const D = Tare.data,
      c = item.c,
      e = c.estimate,
      unit = Tare.unitOf(c.response);
    const name = item.column >= 0 ? Tare.treatmentName(D.treatments[item.column].cell) : c.treatment;
    const better = { higher: "higher is better", lower: "lower is better" }[c.response.better] || "no side is better";
    const [first, second] = Tare.cellText(c);
    const out = [Tare.dialogHead([name, c.baseline ? "" : ` beside ${D.res.baseline}`], `${item.row.name}, ${c.response.name} (${better})`)];
    if (!c.baseline)
      out.push(
        Tare.el(
          "div",
          { class: `verdict v-${item.kind}` },
          item.hasRatio ? Tare.el("span", { class: "big" }, Tare.times(item.cost.x)) : Tare.el("span", { class: "big" }, first),
          Tare.el(
            "span",
            { class: "beside" },
            Tare.badge(item.kind, Tare.doubtful(c)),
            second ? Tare.el("span", {}, item.hasRatio && e.lo > 0 ? `interval ${second}` : second) : null,
            Tare.el("span", {}, `n = ${e.n} blocks`),
          ),
        ),
      );
    const why = c.skipped
      ? `Skipped: ${c.skipped}`
      : c.gave_up
        ? `Given up: ${c.gave_up}`
        : e.undefined
          ? `No ratio: ${e.undefined}`
          : c.why;
    if (why) out.push(Tare.el("p", {}, why.charAt(0).toUpperCase() + why.slice(1) + (/[.!?]$/.test(why) ? "" : ".")));
    out.push(Tare.causeLine(c));
    const list = [];
    if (item.hasRatio) list.push(term("raw ratio to the baseline", `${Tare.ratio(e.ratio)}${e.lo > 0 ? `, interval ${Tare.ratio(e.lo)} to ${Tare.ratio(e.hi)}` : ""}`));
    if (item.hasRatio) list.push(term("in the paired blocks", `${Tare.value(e.value, unit)} against ${Tare.value(e.base, unit)}`));
    list.push(term(name, levelLine(c.level, unit)));
    if (!c.baseline) list.push(term(D.res.baseline || "baseline", levelLine(c.base, unit)));
    if (e.missing) list.push(term("blocks without both values", String(e.missing)));
    if (c.level.missing)
      list.push(
        term(
          "good trials without a usable value",
          String(c.level.missing) + (c.level.below_noise ? `, ${c.level.below_noise} below noise` : ""),
        ),
      );
    if (e.se > 0)
      list.push(
        term(
          "standard error of ln(ratio)",
          `${Tare.digits(e.se)} with ${Tare.digits(e.df)} degrees of freedom, interval made at ${Number((100 * e.confidence).toPrecision(4))} %`,
        ),
      );
    if (typeof c.p === "number") list.push(term("p against a ratio of 1", Tare.digits(c.p)));
    if (typeof c.q === "number")
      list.push(
        term(
          "q",
          `${Tare.digits(c.q)}: the share of false differences (false discovery rate) at which it is just called one among all rows` +
            (Tare.doubtful(c) ? `, more than the ${Tare.percent(D.res.discoveries.rate)} wanted: it may be chance among so many` : ""),
        ),
      );
    if (c.ending) list.push(term("measuring stopped", c.ending.text));
    if (c.response.help) list.push(term("the response", c.response.help));
    out.push(Tare.el("dl", { class: "facts" }, list));
    out.push(
      Tare.el("h3", {}, "Levels"),
      Tare.el(
        "dl",
        { class: "facts levels" },
        c.cell.map((l) => term(l.factor, Tare.levelName(l))),
      ),
    );
    for (const f of c.failures || [])
      out.push(
        Tare.el(
          "p",
          { class: "failure" },
          `${Tare.plural(f.count, "trial")} failed: ${f.kind}${f.phase ? ` in ${f.phase}` : ""}: ${f.text}`,
        ),
      );
    out.push(...pairsPart(item, name));
    const columns = new Set([item.column, item.row.base ? item.row.base.column : -1]);
    for (const g of Tare.curvesOfStratum(c.stratum, columns)) {
      const title = `${g.name}${g.labels ? ` (${g.labels})` : ""}`;
      const keys = Tare.el("div", { class: "keys treatments" });
      Tare.treatmentKeys(
        keys,
        g.curves.map((x) => x.column),
        "line",
      );
      out.push(
        Tare.el("h3", {}, "Distribution of ", title),
        Tare.curveChart(`${title} of ${name}`, g).node,
        keys,
        Tare.folded(`d-curve-${title}`, "Figures", () => Tare.curveTable(title, g)),
      );
    }
    out.push(...seriesPart(item));
    return out;
  };

  const pairsPart = (item, name) => {
    const D = Tare.data,
      unit = Tare.unitOf(item.c.response),
      pairs = Tare.pairs(item);
    if (!pairs.length) return [];
    const side = (x) =>
      !x
        ? "-"
        : !x.ok
          ? "failed"
          : x.value === null || x.value === undefined
            ? "no value"
            : x.noisy
              ? { text: `${Tare.value(x.value, unit)}, below noise`, value: x.value }
              : { text: Tare.value(x.value, unit), value: x.value };
    if (item.c.baseline)
      return [
        Tare.el("h3", {}, "Each block"),
        Tare.table(
          "Each block's value",
          [{ head: "block" }, { head: name, num: true }],
          pairs.map((p) => [String(p.block), side(p.mine)]),
        ),
      ];
    pairChart = Tare.chart({
      name: "pairs",
      room: 74 + 13 * pairs.filter((p) => p.ratio > 0).length,
      build: (width) => pairsOption(item, pairs, width),
    });
    return [
      Tare.el("h3", {}, "Each block"),
      pairs.some((p) => p.ratio > 0) ? pairChart.node : null,
      Tare.table(
        "Each block's values and their quotient",
        [{ head: "block" }, { head: D.res.baseline || "baseline", num: true }, { head: name, num: true }, { head: "ratio", num: true }],
        pairs.map((p) => [String(p.block), side(p.base), side(p.mine), p.ratio > 0 ? { text: Tare.ratio(p.ratio), value: p.ratio } : "-"]),
      ),
    ];
  };

  const pairsOption = (item, pairs, width) => {
    const e = item.c.estimate,
      st = Tare.treatmentStyle(item.column),
      margin = Tare.data.res.margin || 0;
    const list = pairs.filter((p) => p.ratio > 0).map((p) => ({ ...p, ln: Math.log(p.ratio) }));
    const all = [
      0,
      ...list.map((p) => p.ln),
      ...(e.lo > 0 ? [Math.log(e.lo), Math.log(e.hi)] : []),
      Math.log(1 + margin),
      -Math.log(1 + margin),
    ];
    let lo = Math.min(...all),
      hi = Math.max(...all);
    const pad = 0.06 * (hi - lo) + 0.01;
    lo -= pad;
    hi += pad;
    const ticks = Tare.ratioTicks(Math.exp(lo), Math.exp(hi), Math.max(3, Math.floor(width / 70))).map(Math.log);
    const blocks = list.map((p) => p.block);
    const series = [
      {
        type: "scatter",
        data: list.map((p) => [p.ln, p.block]),
        symbol: st.symbol,
        symbolSize: 8,
        itemStyle: { color: st.colour, opacity: 0.9 },
        markLine: Tare.rules("xAxis", ticks),
      },
      Tare.equality(margin),
    ];
    if (e.lo > 0 && item.hasRatio)
      series.push({
        type: "line",
        data: [],
        markArea: {
          silent: true,
          itemStyle: { color: st.colour, opacity: 0.13 },
          data: [[{ xAxis: Math.log(e.lo) }, { xAxis: Math.log(e.hi) }]],
        },
        markLine: {
          silent: true,
          symbol: "none",
          label: { show: false },
          lineStyle: { color: st.colour, type: "solid", width: 2 },
          data: [{ xAxis: Math.log(e.ratio) }],
        },
      });
    return {
      height: 74 + 13 * blocks.length,
      label: `The quotient of each block: ${list.map((p) => Tare.ratio(p.ratio)).join(", ")}; their geometric mean and its interval as a band`,
      option: {
        grid: { left: 44, right: 12, top: 8, bottom: 42 },
        xAxis: Tare.axis({
          min: lo,
          max: hi,
          ticks,
          label: (v) => Tare.tickRatio(Math.exp(v)),
          name: "ratio in the block; line and band: the estimate",
        }),
        yAxis: Tare.axis({
          min: Math.min(...blocks) - 0.7,
          max: Math.max(...blocks) + 0.7,
          inverse: true,
          ticks: blocks.length > 12 ? [blocks[0], blocks[blocks.length - 1]] : blocks,
          label: (v) => String(v),
          name: "block",
          gap: 24,
          line: false,
        }),
        tooltip: { trigger: "item", formatter: (q) => (q.value ? `block ${q.value[1]}: ${Tare.ratio(Math.exp(q.value[0]))}` : "") },
        series,
      },
    };
  };

  const seriesPart = (item) => {
    const cell = Tare.data.cellOf.get(Tare.keyOf(item.c.cell));
    const trials = cell === undefined ? [] : Tare.seriesTrials(cell);
    if (!trials.length) return [];
    const T = Tare.data.doc.trials;
    const node = Tare.el("div", {});
    const chosen = trials.find((t) => Tare.trialId(t) === Tare.state.trial) ?? trials[trials.length - 1];
    const select = Tare.el(
      "select",
      {
        id: "details-trial",
        "data-id": "details-trial",
        on: { change: (ev) => Tare.showSeries(node, Number(ev.target.value), "details") },
      },
      trials.map((t) => Tare.el("option", { value: String(t), selected: t === chosen }, `block ${T.block[t]}${T.ok[t] ? "" : ", failed"}`)),
    );
    Tare.showSeries(node, chosen, "details");
    return [
      Tare.el("h3", {}, "One trial in time"),
      Tare.el("div", { class: "controls" }, Tare.el("label", { for: "details-trial" }, "trial "), select),
      node,
    ];
  };
})();
