// Blocks: what package section builds of every section, shown as it is. A section that has
// charts too shows its blocks beside them.
(() => {
  "use strict";

  const bound = 40; // rows of a table that is not folded
  const few = 20; // entries of a list that are not folded

  const table = (t, title, id) => {
    const columns = t.columns.map((c, i) => ({ head: c.head, num: !t.words && i >= t.keys }));
    const cell = (c) => Tare.el(c.mean ? "b" : "span", { class: c.tone ? "said" : null }, c.a, c.b ? Tare.el("span", { class: "quiet" }, `${c.a ? " " : ""}${c.b}`) : null);
    const make = () => Tare.table(t.wide || title, columns, (t.rows || []).map((row) => row.map(cell)));
    const n = (t.rows || []).length;
    return t.wide || n > bound ? Tare.folded(id, `${t.wide || "All figures"} (${n})`, make) : make();
  };

  const list = (items, id, kind) => {
    const more = (i, n) => (i.more ? Tare.folded(`${id}-${n}`, "More", () => Tare.el("pre", { tabindex: "0", "aria-label": i.lead }, i.more)) : null);
    const entries = (part, from) => part.map((i, n) => Tare.el("li", {}, i.lead ? [Tare.el("b", {}, i.lead), ": "] : null, i.text, more(i, from + n)));
    return [
      Tare.el("ul", { class: kind }, entries(items.slice(0, few), 0)),
      items.length > few ? Tare.folded(id, `${Tare.grouped(items.length - few)} more`, () => Tare.el("ul", {}, entries(items.slice(few, 50 * few), few))) : null,
    ];
  };

  const block = (b, s, n) => {
    if (b.head) return Tare.el("h3", {}, b.head.charAt(0).toUpperCase() + b.head.slice(1));
    if (b.text) return Tare.el("p", {}, b.text);
    if (b.note) return Tare.el("p", { class: "quiet" }, b.note);
    if (b.signs) return Tare.el("p", {}, b.signs.map((x) => `${x.mark} ${x.text}  `));
    if (b.list) return list(b.list, `${s.id}-${n}`, s.id);
    if (b.table) return table(b.table, s.title, `${s.id}-${n}`);
    return b.entry ? Tare.entry(b.entry, `${s.id}-${n}`) : null;
  };

  const content = (s) => [s.about ? Tare.el("p", { class: "quiet" }, s.about) : null, s.blocks.map((b, n) => block(b, s, n))].flat(2);

  // blocks are what a part of the page shows: the section of that name, then those that
  // say that they belong in it. null: there are none.
  Tare.blocks = (part) => {
    const all = (Tare.data.doc.sections || []).filter((s) => (s.blocks || []).length && (s.in || s.id) === part).sort((a, b) => (b.id === part) - (a.id === part));
    if (!all.length) return null;
    return all.flatMap((s) => {
      if (s.id === part) return content(s);
      return s.folded ? Tare.folded(s.id, s.title, () => content(s)) : [Tare.el("h3", {}, s.title), ...content(s)];
    });
  };

  const copy = async (button, pre, text) => {
    let said = "Copied";
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      getSelection().selectAllChildren(pre); // where a page may not write: one key is left
      said = "Selected: copy it";
    }
    button.textContent = said;
    Tare.say(said);
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2500);
  };

  const patch = (p, id) => {
    const pre = Tare.el("pre", { tabindex: "0", "aria-label": `Patch for ${p.file || p.for}` }, p.text);
    const button = Tare.el("button", { type: "button", class: "plain", "data-id": `copy-${id}`, "aria-label": `Copy the patch for ${p.file || p.for}` }, "Copy");
    button.addEventListener("click", () => copy(button, pre, Tare.clean(p.text))); // what is shown, and nothing unseen
    return Tare.el("figure", { class: "patch", "data-for": p.for }, Tare.el("figcaption", {}, Tare.el("span", {}, p.file || p.for, Tare.el("span", { class: "resp" }, ` ${p.for}`)), button), pre);
  };

  // entry shows one setting; id tells it from the same elsewhere in the page, and more
  // stands below it.
  Tare.entry = (e, id, more) =>
    Tare.el(
      "article",
      { class: "advice", "data-rule": e.rule },
      Tare.el("p", { class: "set" }, e.head),
      (e.facts || []).map((f) => Tare.el("p", { class: { gain: "gain", price: "price", "take care": "warning" }[f.lead] || "quiet" }, f.lead ? [Tare.el("b", {}, f.lead), ": "] : null, f.text)),
      (e.patches || []).map((p, n) => patch(p, `${id}-${n}`)),
      more,
    );
})();
