// The heat map: a table whose cells are coloured by the logarithm of the ratio.
// A row for each workload, levels and response, a column for each treatment.
// When there are many rows a strip above shows all of them at once.
(() => {
  "use strict";

  const size = 60; // rows on one page
  let part, host, strip, legendHost;

  Tare.heatSection = () => {
    part = Tare.section("summary", "What each costs", ["ratio", "interval", "verdict"]);
    legendHost = Tare.el("div", { class: "legend" });
    host = Tare.el("div", {});
    strip = Tare.chart({ name: "overview", room: 100, build: overview });
    strip.node.addEventListener("click", (ev) => {
      const at = strip.instance && strip.instance.convertFromPixel({ xAxisIndex: 0 }, ev.clientX - strip.node.getBoundingClientRect().left);
      if (at >= 0 && at < Tare.view.rows.length)
        Tare.set("page:heat", (s) => {
          s.page.heat = Math.floor(at / size);
        });
    });
    strip.node.hidden = true;
    Tare.put(part.body, legendHost, strip.node, host);
    return part;
  };

  const cellNode = (i, cap, faded, tab) => {
    const [first, second] = Tare.cellText(i.c);
    const bg = Tare.heat(i, cap);
    const td = Tare.el(
      "td",
      {
        class: `heat k-${i.kind}${faded ? " faded" : ""}`,
        tabindex: tab ? "0" : "-1",
        "data-key": i.key,
        "data-id": "h-" + i.key,
        "data-ratio": i.hasRatio ? i.c.estimate.ratio : null,
        "data-cost": i.hasRatio ? i.cost.x : null,
        "data-lo": i.c.estimate.lo,
        "data-hi": i.c.estimate.hi,
        "data-kind": i.kind,
        title: i.c.why || i.c.skipped || i.c.gave_up || null,
      },
      Tare.el("span", { class: "r" }, first),
      i.hasRatio
        ? Tare.el("span", { class: "hidden" }, ` ${Tare.kinds[i.kind].word}${Tare.doubtful(i.c) ? ", fails correction for many comparisons" : ""} `)
        : null,
      second ? Tare.el("span", { class: "iv" }, second) : null,
    );
    if (bg) {
      td.style.setProperty("background-color", bg);
      td.style.setProperty("color", Tare.ink(bg));
    }
    return td;
  };

  Tare.rowHead = (r, again) =>
    Tare.el(
      "th",
      { scope: "row", class: "rowhead" },
      Tare.el(
        "span",
        { class: again ? "stratum again" : "stratum", title: r.name },
        Tare.el("span", { class: "level-name" }, r.workload),
        Tare.levelsOf(r).map((l) => [" ", Tare.el("span", { class: "level-name" }, `${l.factor}=`, Tare.el("wbr", {}), Tare.levelName(l))]),
      ),
      " ",
      Tare.el(
        "span",
        { class: "resp", title: r.response.help || null },
        r.response.name.split(/(?<=_)/).map((w, n) => [n ? Tare.el("wbr", {}) : null, w]), // a long name breaks between its words
        r.first ? null : Tare.el("span", { class: "hidden" }, " (a further response)"),
      ),
    );

  // inOrder are the columns; on a phone with room for few the costliest come first.
  const inOrder = (V) => {
    if (innerWidth > 700 || V.columns.length < 6) return V.columns;
    const worst = new Map();
    for (const { row } of V.rows) for (const i of row.items) if (i.hasRatio) worst.set(i.column, Math.max(worst.get(i.column) ?? -Infinity, Tare.harm(i) || 0));
    return [...V.columns].sort((a, b) => Number(b.t.baseline) - Number(a.t.baseline) || (worst.get(b.at) ?? -Infinity) - (worst.get(a.at) ?? -Infinity));
  };

  Tare.renderHeat = () => {
    const D = Tare.data,
      V = Tare.view,
      cap = Tare.heatCap();
    part.refreshNote();
    renderLegend(cap);
    strip.node.hidden = V.rows.length <= size;
    if (!strip.node.hidden) strip.update();
    if (!V.rows.length) {
      Tare.fill(
        host,
        Tare.el("p", { class: "quiet" }, D.items.length ? "No comparison matches the filter." : "Nothing has been measured yet."),
      );
      return;
    }
    const p = Tare.pageOf("heat", V.rows, size),
      columns = inOrder(V);
    let last = null,
      any = false;
    const body = V.rows.slice(p.from, p.to).map(({ row, shown }) => {
      const again = row.stratum === last;
      last = row.stratum;
      const at = new Map(row.items.map((i) => [i.column, i]));
      const cells = columns.map(({ at: c, t }) => {
        const i = at.get(c);
        if (!i) return Tare.el("td", { class: "nothing" }, Tare.el("span", { class: "hidden" }, "not in this stratum"));
        const tab = !any && !t.baseline;
        any = any || tab;
        return cellNode(i, cap, !i.c.baseline && !shown.has(i), tab);
      });
      const n = [...row.items].filter((i) => i.c.baseline !== V.compared && !i.c.skipped).map((i) => (V.compared ? i.c.estimate.n : i.c.level.n));
      const lo = Math.min(...n),
        hi = Math.max(...n);
      return Tare.el(
        "tr",
        { class: again ? null : "begins" },
        Tare.rowHead(row, again),
        Tare.el("td", { class: "num n" }, n.length ? (lo === hi ? String(lo) : `${lo}–${hi}`) : "-"),
        cells,
      );
    });
    const table = Tare.el(
      "table",
      { class: V.columns.length > 6 ? "heatmap tight" : V.columns.length > 5 ? "heatmap many" : "heatmap", role: "grid", "aria-label": "Costs compared with the baseline" },
      Tare.el(
        "thead",
        {},
        Tare.el(
          "tr",
          {},
          Tare.el("th", { scope: "col", class: "rowhead" }, "workload, response"),
          Tare.el("th", { scope: "col", class: "num", title: "blocks" }, "n"),
          columns.map(({ t }) =>
            Tare.el(
              "th",
              { scope: "col", class: t.baseline ? "col base" : "col", title: Tare.treatmentName(t.cell) },
              Tare.treatmentName(t.cell),
            ),
          ),
        ),
      ),
      Tare.el("tbody", {}, body),
    );
    Tare.rover(table, "td.heat", () => V.columns.length);
    table.addEventListener("click", (ev) => {
      const td = ev.target.closest("td[data-key]");
      if (td) Tare.open(td.dataset.key, td);
    });
    table.addEventListener("keydown", (ev) => {
      const td = ev.target.closest("td[data-key]");
      if (td && (ev.key === "Enter" || ev.key === " ")) {
        ev.preventDefault();
        Tare.open(td.dataset.key, td);
      }
    });
    const scroll = Tare.el("div", { class: "scroll heatscroll" }, table);
    Tare.fill(
      host,
      scroll,
      Tare.pager(p, "rows"),
      Tare.el(
        "p",
        { class: "quiet hint" },
        "Choose a cell for its details. Arrow keys move, Enter opens, Escape closes. ",
        Tare.el("span", { class: "sideways" }, "The table continues to the right: scroll it sideways."),
      ),
    );
    const look = () => host.classList.toggle("cut", scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft > 1);
    scroll.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(scroll); // ends with the node
  };

  // found says how many of the differences survive among all rows.
  const found = () => {
    const d = Tare.data.res.discoveries;
    if (!d || !d.called) return null;
    return Tare.el(
      "p",
      { class: "found" },
      `${Tare.grouped(d.hold)} of the ${Tare.grouped(d.called)} differences ${d.hold === 1 ? "survives" : "survive"} correction for multiple comparisons.`,
    );
  };

  // heatScale explains the colours that occur.
  Tare.heatScale = (has, cap) => {
    const bar = (side) =>
      Tare.el(
        "span",
        { class: "swatches", "aria-hidden": "true" },
        Array.from({ length: 7 }, (_, i) => {
          const t = side === "better" ? 1 - i / 6 : i / 6;
          return Tare.el("i", { style: { "background-color": Tare.scaleAt(side, 0.12 + 0.88 * t) } });
        }),
      );
    const scale = [];
    if (has("better") || has("worse"))
      scale.push(
        Tare.el(
          "span",
          { class: "scale" },
          Tare.el("b", {}, "▲ costs less"),
          ` ${Tare.tickRatio(cap)}×`,
          bar("better"),
          bar("worse"),
          `${Tare.tickRatio(cap)}× `,
          Tare.el("b", {}, "▼ costs more"),
        ),
      );
    if (has("higher") || has("lower"))
      scale.push(Tare.el("span", { class: "scale" }, Tare.el("b", {}, "↑ higher, ↓ lower"), " of what has no better side ", bar("other")));
    return scale;
  };

  // machineNote says what the names of virtual machines mean.
  Tare.machineNote = () => (Tare.data.doc.machines ? Tare.el("p", { class: "machines" }, Tare.data.doc.machines) : null);

  const renderLegend = (cap) => {
    const D = Tare.data,
      pct = Tare.percent(D.res.margin || 0);
    const has = (k) => D.kinds.includes(k);
    const key = (k, text) =>
      has(k) ? Tare.el("span", { class: "key" }, Tare.el("i", { class: `heat k-${k}` }, Tare.kinds[k].mark || " "), " ", text) : null;
    Tare.fill(
      legendHost,
      Tare.el(
        "p",
        {},
        Tare.el("b", {}, D.res.baseline || "baseline"),
        ": the value. Others: times its cost, of which more is worse, and the ",
        `${Number(((D.res.confidence || 0) * 100).toPrecision(4))} % interval.`,
        Tare.el("span", { class: "hint" }, " Choose a cell for the raw ratio."),
        Tare.withText([...D.fixed, ...Tare.view.same]),
      ),
      Tare.el(
        "div",
        { class: "keys" },
        Tare.heatScale(has, cap),
        key("equivalent", `free (within ${pct})`),
        key("bounded", "no cost above this"),
        Object.keys(Tare.kinds).filter(Tare.tooFew).map((k) => key(k, Tare.kinds[k].word)),
        key("undecided", Tare.kinds.undecided.word),
        key("failed", "failed"),
        key("gave-up", "given up"),
        key("skipped", "skipped: this host cannot run it"),
        key("below-noise", "below noise"),
        key("no-ratio", "no ratio"),
        D.items.some((i) => i.c.level.at_least)
          ? Tare.el("span", { class: "key" }, Tare.el("b", {}, ">"), " pods or claims did not get there before the step ended: the time is a lower bound")
          : null,
        D.items.some((i) => Tare.doubtful(i.c))
          ? Tare.el("span", { class: "key" }, Tare.el("b", {}, Tare.doubt), " a difference that fails correction for many comparisons")
          : null,
      ),
      found(),
      Tare.machineNote(),
    );
  };

  // overview draws every row as a thin column: as one picture for each treatment,
  // since thousands of shapes would take a second. Where several rows fall on one
  // pixel, the one that differs most is seen.
  const overview = (width) => {
    const V = Tare.view,
      cap = Tare.heatCap(),
      columns = V.columns.filter(({ t }) => !t.baseline),
      n = V.rows.length;
    const flat = {
      undecided: Tare.css("--hatch"),
      equivalent: Tare.css("--equal"),
      failed: Tare.tint(Tare.css("--fail"), 1),
      "gave-up": Tare.tint(Tare.css("--fail"), 1),
    };
    const other = Tare.css("--line");
    const left = Math.min(150, width * 0.3),
      rowHeight = 20,
      across = Math.max(1, Math.round(width - left - 8));
    const rank = (i) => (i.hasRatio ? (i.kind === "undecided" || Tare.tooFew(i.kind) ? 1 : i.kind === "equivalent" ? 2 : 3 + Math.abs(i.ln)) : 0.5);
    const pictures = columns.map(({ at }) => {
      const canvas = document.createElement("canvas");
      canvas.width = across;
      canvas.height = 1;
      const g = canvas.getContext("2d");
      for (let x = 0; x < across; x++) {
        const from = Math.floor((x * n) / across),
          to = Math.max(from + 1, Math.floor(((x + 1) * n) / across));
        let best = null;
        for (let r = from; r < to; r++) {
          const i = V.rows[r].row.items.find((y) => y.column === at);
          if (i && V.rows[r].shown.has(i) && (!best || rank(i) > rank(best))) best = i;
        }
        if (!best) continue;
        g.fillStyle = Tare.heat(best, cap) || flat[Tare.tooFew(best.kind) ? "undecided" : best.kind] || other;
        g.fillRect(x, 0, 1, 1);
      }
      return canvas;
    });
    const on = Tare.pageOf("heat", V.rows, size);
    return {
      height: columns.length * rowHeight + 34,
      label: `All ${n} rows at a glance, one column each; the table below has the figures.`,
      option: {
        grid: { left, right: 8, top: 4, bottom: 26 },
        xAxis: {
          type: "category",
          data: V.rows.map((_, k) => String(k + 1)),
          axisTick: { show: false },
          axisLine: { show: false },
          axisLabel: { color: Tare.css("--ink-2"), fontSize: 11, interval: Math.max(1, Math.ceil(n / Math.max(2, Math.min(12, Math.floor(across / 52))))) - 1 },
        },
        yAxis: {
          type: "category",
          inverse: true,
          data: columns.map(({ t }) => Tare.short(Tare.treatmentName(t.cell), 22)),
          axisTick: { show: false },
          axisLine: { show: false },
          axisLabel: { color: Tare.css("--ink-2"), fontSize: 11.5 },
        },
        tooltip: {
          trigger: "axis",
          axisPointer: { type: "line", lineStyle: { color: Tare.css("--ink"), type: "solid" } },
          formatter: (list) => {
            const first = [].concat(list)[0],
              r = first && V.rows[first.dataIndex];
            if (!r) return "";
            return (
              `row ${first.dataIndex + 1}: ${Tare.short(r.row.name, 80)}  ${Tare.plain(r.row.response.name)}\n` +
              columns
                .map(({ t, at }) => {
                  const i = r.row.items.find((y) => y.column === at);
                  return i ? `${Tare.short(Tare.treatmentName(t.cell), 40)}: ${Tare.plain(Tare.cellText(i.c).join("  "))}` : "";
                })
                .filter(Boolean)
                .join("\n")
            );
          },
        },
        series: [
          { type: "line", data: V.rows.map(() => null), symbol: "none" }, // for the tooltip: a value each
          {
            type: "custom",
            data: columns.map((_, y) => [0, y]),
            silent: true,
            tooltip: { show: false },
            clip: true,
            renderItem: (params) => {
              const box = params.coordSys,
                h = box.height / columns.length;
              return {
                type: "image",
                style: { image: pictures[params.dataIndex], x: box.x, y: box.y + params.dataIndex * h, width: box.width, height: h - 1 },
              };
            },
            markArea:
              on.pages > 1
                ? {
                    silent: true,
                    itemStyle: { color: "transparent", borderColor: Tare.css("--ink"), borderWidth: 1.5 },
                    data: [[{ xAxis: on.from }, { xAxis: on.to - 1 }]],
                  }
                : undefined,
          },
        ],
      },
    };
  };
})();
