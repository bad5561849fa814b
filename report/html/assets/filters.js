// The controls that choose and order the comparisons: one for each factor, for
// response and verdict, a text, and the order.
(() => {
  "use strict";

  const bar = () => document.getElementById("bar");
  let built = "";
  let picks = [];

  // picker is a list of boxes to tick, folded away. get returns the chosen set.
  const picker = (id, name, options, get, label) => {
    const chosen = Tare.el("b", {});
    const boxes = options.map((o, n) => Tare.el("input", { type: "checkbox", id: `pick-${id}-${n}`, value: o }));
    const list = Tare.el(
      "fieldset",
      {},
      Tare.el("legend", { class: "hidden" }, name),
      options.map((o, n) => Tare.el("label", { for: `pick-${id}-${n}` }, boxes[n], " ", label ? label(o) : o)),
    );
    const node = Tare.el(
      "details",
      { class: "pick", "data-pick": id },
      Tare.el("summary", {}, Tare.el("span", { class: "pick-name" }, name), " ", chosen),
      list,
    );
    list.addEventListener("change", () =>
      Tare.set("filter", (s) => {
        const set = new Set(boxes.filter((b) => b.checked).map((b) => b.value));
        get(s, set);
      }),
    );
    node.addEventListener("toggle", () => {
      if (node.open) for (const p of picks) if (p.node !== node) p.node.open = false;
    });
    node.addEventListener("keydown", (ev) => {
      if (ev.key !== "Escape" || !node.open) return;
      node.open = false;
      node.querySelector("summary").focus();
      ev.stopPropagation();
    });
    return {
      node,
      show: (set) => {
        boxes.forEach((b) => {
          b.checked = set.has(b.value);
        });
        const known = options.filter((o) => set.has(o));
        chosen.textContent =
          set.size === 0
            ? "all"
            : known.length === 1
              ? Tare.short(label ? label(known[0]) : known[0], 24)
              : `${known.length} of ${options.length}`;
        node.classList.toggle("on", set.size > 0);
      },
    };
  };

  document.addEventListener("pointerdown", (ev) => {
    for (const p of picks) if (p.node.open && !p.node.contains(ev.target)) p.node.open = false;
  });

  const sorts = () => [
    ["study", "the study"],
    ["harm", "how much worse"],
    ["ratio", "cost"],
    ["width", "interval's width"],
    ["n", "n"],
    ["verdict", "verdict"],
    ["response", "response"],
    ["base", "baseline's value"],
    ["value", "value"],
    ...Tare.data.factors.map((f) => ["f." + f.name, f.name]),
  ];

  const build = () => {
    const D = Tare.data;
    picks = [];
    const add = (p, now) => {
      picks.push(p);
      p.now = now;
      return p.node;
    };
    const factors = D.factors.filter((f) => f.levels.length + (f.lacking ? 1 : 0) > 1);
    const text = Tare.el("input", {
      type: "search",
      id: "q",
      placeholder: "Find…",
      "aria-label": "Find text in levels, responses and verdicts",
      autocomplete: "off",
      spellcheck: "false",
    });
    text.addEventListener(
      "input",
      Tare.later(120, () =>
        Tare.set("filter", (s) => {
          s.text = text.value.trim();
        }),
      ),
    );
    const first = Tare.el("input", { type: "checkbox", id: "first" });
    first.addEventListener("change", () =>
      Tare.set("filter", (s) => {
        s.first = first.checked;
      }),
    );
    const sort = Tare.el(
      "select",
      { id: "sort", "aria-label": "Order by" },
      sorts().map(([v, name]) => Tare.el("option", { value: v }, name)),
    );
    sort.addEventListener("change", () =>
      Tare.set("sort", (s) => {
        s.sort = sort.value;
        s.desc = !s.sort.startsWith("f.") && !["response", "verdict"].includes(s.sort);
      }),
    );
    const turn = Tare.el("button", {
      type: "button",
      class: "plain",
      id: "turn",
      on: {
        click: () =>
          Tare.set("sort", (s) => {
            s.desc = !s.desc;
          }),
      },
    });
    const clear = Tare.el(
      "button",
      {
        type: "button",
        class: "plain",
        id: "clear",
        on: {
          click: () => {
            Tare.set("filter", (s) => {
              s.pick = new Map();
              s.response = new Set();
              s.verdict = new Set();
              s.first = false;
              s.text = "";
            });
            text.focus();
          },
        },
      },
      "Clear",
    );
    const count = Tare.el("span", { class: "count", id: "count" });
    const controls = Tare.el(
      "div",
      { class: "controls" },
      text,
      factors.map((f, n) =>
        add(
          picker(`f${n}`, f.name, f.lacking ? [...f.levels, Tare.none] : f.levels, (s, set) => {
            if (set.size) s.pick.set(f.name, set);
            else s.pick.delete(f.name);
          }, (v) => Tare.levelName({ factor: f.name, value: v })),
          (s) => s.pick.get(f.name) || new Set(),
        ),
      ),
      D.responses.length > 1
        ? add(
            picker("response", "response", D.responses, (s, set) => {
              s.response = set;
            }),
            (s) => s.response,
          )
        : null,
      D.kinds.length > 1
        ? add(
            picker(
              "verdict",
              "verdict",
              D.kinds,
              (s, set) => {
                s.verdict = set;
              },
              (k) => `${Tare.kinds[k].mark} ${Tare.kinds[k].word}`.trim(),
            ),
            (s) => s.verdict,
          )
        : null,
      D.items.some((i) => !i.c.first)
        ? Tare.el(
            "label",
            { class: "tick", for: "first", title: "The first response of each workload decides when measuring stops" },
            first,
            " first responses only",
          )
        : null,
      Tare.el("span", { class: "order" }, Tare.el("label", { for: "sort" }, "order "), sort, turn),
    );
    // Folded on a narrow screen, where it would fill the first page.
    const fold = Tare.el("details", { class: "filters", open: innerWidth > 700 }, Tare.el("summary", {}, "Filter and order"), controls);
    // On a narrow screen the unfolded controls do not stay on top: they are gone to.
    fold.addEventListener("toggle", () => {
      const loose = bar().classList.contains("loose");
      measure();
      if (fold.open && !loose && bar().classList.contains("loose")) bar().scrollIntoView({ behavior: "instant", block: "start" });
    });
    Tare.fill(bar(), fold, Tare.el("div", { class: "counts" }, count, clear));
    return () => {
      const s = Tare.state,
        v = Tare.view;
      for (const p of picks) p.show(p.now(s));
      if (document.activeElement !== text) text.value = s.text;
      first.checked = s.first;
      sort.value = s.sort;
      if (sort.selectedIndex < 0) sort.value = "study";
      turn.hidden = s.sort === "study";
      turn.textContent = s.desc ? "↓" : "↑";
      turn.setAttribute("aria-label", s.desc ? "Descending; turn round" : "Ascending; turn round");
      clear.hidden = !(v.filtered || s.text || s.first || s.response.size || s.verdict.size || s.pick.size);
      count.textContent = v.filtered
        ? `${Tare.grouped(v.items.length)} of ${Tare.plural(v.total, "comparison")}`
        : Tare.plural(v.total, "comparison");
      Tare.say(count.textContent + " shown");
    };
  };

  // What is scrolled to, or gets the focus, must not lie under the bar. A bar that
  // would take much of a low screen, or has its controls unfolded on a narrow one,
  // does not stay on top.
  const measure = () => {
    const b = bar(),
      fold = b.querySelector(".filters");
    b.classList.toggle("loose", b.offsetHeight > innerHeight / 4 || (innerWidth <= 700 && !!fold && fold.open));
    const covers = getComputedStyle(b).position === "sticky" ? b.offsetHeight : 0;
    document.documentElement.style.setProperty("--bar", `${covers}px`);
  };
  new ResizeObserver(measure).observe(bar());
  addEventListener("resize", measure);

  let show = null;
  Tare.renderFilters = () => {
    const D = Tare.data;
    const shape = JSON.stringify([D.factors.map((f) => [f.name, f.levels, f.lacking]), D.responses, D.kinds, D.res.accelerators]);
    if (shape !== built || !show) {
      built = shape;
      show = build();
    }
    show();
  };
})();
