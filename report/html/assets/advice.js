// What to set: an entry for each rule that cures a cause, with its patch and its cells.
(() => {
  "use strict";

  const first = 3; // shown at once
  let part, host;

  Tare.adviceSection = () => {
    part = Tare.section("advice", "What to set", ["advice"]);
    host = Tare.el("div", {});
    Tare.put(part.body, host);
    return part;
  };

  Tare.renderAdvice = () => {
    const all = Tare.data.doc.advice || [];
    part.node.hidden = !all.length;
    if (!all.length) return;
    part.refreshNote();
    Tare.fill(
      host,
      Tare.el("p", { class: "quiet" }, `The most worthwhile first. A gain is of cells that this study ${Tare.data.doc.modelled ? "modelled" : "measured"}, within blocks; where it did not, that is said.`),
      all.slice(0, first).map((a, n) => Tare.adviceItem(a, `s${n}`, true)),
      all.length > first
        ? Tare.folded("advice-more", `${Tare.plural(all.length - first, "more setting")}`, () => all.slice(first).map((a, n) => Tare.adviceItem(a, `s${first + n}`, true)))
        : null,
    );
  };

  // adviceItem shows one entry; id tells it from the same elsewhere in the page.
  Tare.adviceItem = (a, id, cells) =>
    Tare.entry(a, id, cells && Tare.causes() ? Tare.folded(`advice-${id}`, `Affected cells (${a.cells.length})`, () => cellList(a.cells, id)) : null);

  const most = 100;
  const cellList = (list, id) =>
    Tare.el(
      "ul",
      { class: "causelist" },
      list.slice(0, most).map((c, n) => {
        const cell = Tare.data.doc.cells[c],
          button = Tare.el("button", { type: "button", class: "plain", "data-id": `ac-${id}-${n}` }, "Readings", Tare.el("span", { class: "hidden" }, ` of ${Tare.cellName(cell)}`));
        button.addEventListener("click", () => Tare.open(`cause|${cell.key}`, button));
        return Tare.el("li", {}, Tare.el("span", {}, Tare.cellName(cell)), button);
      }),
      list.length > most ? Tare.el("li", { class: "quiet" }, `and ${Tare.grouped(list.length - most)} more; tare report --json has all`) : null,
    );
})();
