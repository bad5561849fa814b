// Parts that several sections use: a section with its note, a pager, a table.
(() => {
  "use strict";

  // noteOf finds a note by the first of some ids that the document has.
  const noteOf = (ids) => {
    for (const id of ids || []) {
      const n = (Tare.data.doc.notes || []).find((x) => x.id === id);
      if (n) return n;
    }
    return null;
  };

  // section makes a part of the page: a heading, a "?" that opens the note on how
  // its figures are computed, and a body.
  Tare.section = (id, title, notes) => {
    const body = Tare.el("div", { class: "body" });
    const note = Tare.el("div", { class: "note", id: `${id}-note`, hidden: true });
    const button = Tare.el(
      "button",
      {
        class: "ask",
        type: "button",
        "aria-expanded": "false",
        "aria-controls": `${id}-note`,
        "aria-label": `How “${title}” is computed`,
        title: "How it is computed",
        "data-id": `ask-${id}`,
        on: {
          click: () => {
            note.hidden = !note.hidden;
            button.setAttribute("aria-expanded", String(!note.hidden));
          },
        },
      },
      "?",
    );
    const head = Tare.el("div", { class: "head" }, Tare.el("h2", { id: `${id}-title`, tabindex: "-1" }, title), button);
    const node = Tare.el("section", { class: "part", id, "aria-labelledby": `${id}-title` }, head, note, body);
    return {
      id,
      title,
      node,
      body,
      head,
      refreshNote: () => {
        const all = (notes || []).map((ids) => noteOf([].concat(ids))).filter(Boolean);
        button.hidden = !all.length;
        note.replaceChildren();
        for (const n of all) Tare.put(note, Tare.el("h3", {}, n.title), ...Tare.paragraphs(n.text));
      },
    };
  };

  Tare.paragraphs = (text) =>
    String(text)
      .split(/\n\s*\n/)
      .filter((p) => p.trim())
      .map((p) => Tare.el("p", {}, p.trim()));

  // pager shows which part of a long list is shown. In print the whole list is,
  // up to a bound.
  Tare.pageOf = (name, list, size) => {
    if (Tare.printing())
      return { from: 0, to: Math.min(list.length, 400), page: 0, pages: 1, name, n: list.length, cut: list.length > 400 };
    const pages = Math.max(1, Math.ceil(list.length / size));
    const page = Math.min(Tare.state.page[name] || 0, pages - 1);
    return { from: page * size, to: Math.min(list.length, (page + 1) * size), page, pages, name, n: list.length, cut: false };
  };
  Tare.pager = (p, what) => {
    if (p.cut)
      return Tare.el("p", { class: "quiet" }, `The first ${p.to} of ${Tare.grouped(p.n)} ${what} are printed; use a filter for others.`);
    if (p.pages < 2) return null;
    const go = (n) =>
      Tare.set(`page:${p.name}`, (s) => {
        s.page[p.name] = n;
      });
    const button = (label, n, text, off) =>
      Tare.el(
        "button",
        {
          type: "button",
          class: "plain",
          "aria-label": label,
          disabled: off,
          "data-id": `pg-${p.name}-${text}`,
          on: { click: () => go(n) },
        },
        text,
      );
    return Tare.el(
      "nav",
      { class: "pager", "aria-label": `Pages of ${what}` },
      button("First page", 0, "«", p.page === 0),
      button("Previous page", p.page - 1, "‹", p.page === 0),
      Tare.el("span", {}, `${Tare.grouped(p.from + 1)}–${Tare.grouped(p.to)} of ${Tare.grouped(p.n)} ${what}`),
      button("Next page", p.page + 1, "›", p.page === p.pages - 1),
      button("Last page", p.pages - 1, "»", p.page === p.pages - 1),
    );
  };

  // rover makes one element of many reachable by Tab and the others by arrows.
  // Elements are matched by selector within node.
  Tare.rover = (node, selector, columns) => {
    const list = () => [...node.querySelectorAll(selector)];
    const focus = (e) => {
      for (const x of list()) x.tabIndex = -1;
      e.tabIndex = 0;
      e.focus();
    };
    node.addEventListener("keydown", (ev) => {
      const from = ev.target.closest(selector);
      if (!from) return;
      const at = list(),
        i = at.indexOf(from),
        n = columns ? columns() : 1;
      const step = {
        ArrowDown: n,
        ArrowUp: -n,
        ArrowRight: columns ? 1 : 0,
        ArrowLeft: columns ? -1 : 0,
        Home: -i,
        End: at.length - 1 - i,
      }[ev.key];
      if (step === undefined || step === 0 || !at[i + step]) return;
      ev.preventDefault();
      focus(at[i + step]);
    });
    node.addEventListener("focusin", (ev) => {
      const e = ev.target.closest(selector);
      if (e) for (const x of list()) x.tabIndex = x === e ? 0 : -1;
    });
  };

  // table makes a plain one: columns are {head, num}, rows arrays of cells; a
  // cell is a text, a node, or {text, value} with the number behind it.
  Tare.table = (caption, columns, rows) =>
    Tare.el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": `${caption}, a table` },
      Tare.el(
        "table",
        {},
        Tare.el("caption", { class: "hidden" }, caption),
        Tare.el(
          "thead",
          {},
          Tare.el(
            "tr",
            {},
            columns.map((c) => Tare.el("th", { scope: "col", class: c.num ? "num" : null, title: c.head }, c.head)),
          ),
        ),
        Tare.el(
          "tbody",
          {},
          rows.map((r) =>
            Tare.el(
              "tr",
              {},
              r.map((x, i) => {
                const value = x && typeof x === "object" && !(x instanceof Node) && !Array.isArray(x) ? x : { text: x };
                return Tare.el(
                  i === 0 ? "th" : "td",
                  { scope: i === 0 ? "row" : null, class: columns[i].num ? "num" : null, "data-value": value.value },
                  value.text,
                );
              }),
            ),
          ),
        ),
      ),
    );

  // legendKey explains a mark in words; legendKeys are several in a row.
  Tare.legendKey = ({ text, colour, mark, image }) =>
    Tare.el(
      "span",
      { class: "key" },
      Tare.el("i", { class: `mark ${mark || "dot-rect"}`, style: image ? { background: `url(${image})`, border: `1px solid ${colour}` } : { "--c": colour }, "aria-hidden": "true" }),
      " ",
      text,
    );
  Tare.legendKeys = (list) => Tare.el("div", { class: "keys" }, list.map(Tare.legendKey));

  // folded is a <details> whose content is made when it is opened.
  const opened = new Set();
  Tare.folded = (id, title, make, open) => {
    const body = Tare.el("div", { class: "fold" });
    let made = false;
    const d = Tare.el(
      "details",
      { class: "more", open: opened.has(id) || (open && !opened.has("-" + id)), "data-fold": id },
      Tare.el("summary", { "data-id": `fold-${id}` }, title),
      body,
    );
    const fill = () => {
      if (!made) {
        made = true;
        Tare.put(body, make());
      }
    };
    d.addEventListener("toggle", () => {
      if (d.open) {
        fill();
        opened.add(id);
        opened.delete("-" + id);
      } else {
        opened.delete(id);
        opened.add("-" + id);
      }
    });
    d.tareFill = fill;
    if (d.open) fill();
    return d;
  };

  Tare.badge = (kind, doubtful) =>
    Tare.el(
      "span",
      { class: `badge k-${kind}`, title: doubtful ? "fails correction for many comparisons" : null },
      Tare.kinds[kind].mark
        ? Tare.el("span", { "aria-hidden": "true" }, `${Tare.kinds[kind].mark}${doubtful ? Tare.doubt : ""} `)
        : null,
      Tare.kinds[kind].word,
      doubtful ? Tare.el("span", { class: "hidden" }, ", fails correction for many comparisons") : null,
    );
})();
