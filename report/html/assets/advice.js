// What to set: one entry for each rule that cures a cause, with its patch.
(() => {
  "use strict";

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
      Tare.el("p", { class: "quiet" }, `The most worthwhile first. A gain is of cells that this study ${past()}, within blocks; where it did not, that is said.`),
      all.map((a, n) => Tare.adviceItem(a, `s${n}`, true)),
    );
  };

  // past says how the figures came about; a patch of a model's says so wherever it is copied to.
  const past = () => (Tare.data.doc.modelled ? "modelled" : "measured");
  const patchText = (p) => (Tare.data.doc.modelled ? `# from a model, not measured\n${p.text}` : p.text);

  const between = (a, b) => {
    const other = (x, y) => (x || []).filter((l) => Tare.levelOf(y || [], l.factor) !== l.value);
    return [other(a, b), other(b, a)].map((c) => Tare.levelsText(c));
  };

  // gain says one ratio. Which levels it is between is said of one target; of several the text says it.
  const gain = (a, g) => {
    const [from, to] = between(g.from, g.to);
    const span = g.lo > 0 ? ` (${Tare.ratio(g.lo)} to ${Tare.ratio(g.hi)})` : "";
    const beside = `, ${to || "with it"} beside ${from || "without it"}`;
    return Tare.el(
      "p",
      { class: "gain" },
      Tare.el("b", {}, a.contradicted ? "Ratio: " : "Gain: "),
      `${Tare.ratio(g.ratio)} × the ${g.response}${span}${g.than ? `, beside ${g.than}` : ""}`,
      Tare.el("span", { class: "quiet" }, `${g.than || a.several ? "" : beside}; ${Tare.plural(g.pairs, "pair")} of blocks${g.cells > 1 ? `, ${g.cells} pairs of cells` : ""}`),
    );
  };

  const gains = (a) => a.gains || (a.gain ? [a.gain] : []);

  const named = (label, text, cls) => (text ? Tare.el("p", { class: cls || null }, Tare.el("b", {}, `${label}: `), text) : null);

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
    const pre = Tare.el("pre", { tabindex: "0", "aria-label": `Patch for ${p.file || p.for}` }, patchText(p));
    const button = Tare.el("button", { type: "button", class: "plain", "data-id": `copy-${id}`, "aria-label": `Copy the patch for ${p.file || p.for}` }, "Copy");
    button.addEventListener("click", () => copy(button, pre, Tare.clean(patchText(p)))); // what is shown, and nothing unseen
    return Tare.el("figure", { class: "patch", "data-for": p.for }, Tare.el("figcaption", {}, Tare.el("span", {}, p.file || p.for, Tare.el("span", { class: "resp" }, ` ${p.for}`)), button), pre);
  };

  // adviceItem shows one entry; id tells it from the same elsewhere in the page.
  Tare.adviceItem = (a, id, cells) =>
    Tare.el(
      "article",
      { class: "advice", "data-rule": a.rule },
      Tare.el("p", { class: "quiet" }, Tare.el("span", {}, a.for), Tare.causes() && a.cause ? `, against ${Tare.causeKind(a.cause).word}` : "", `, ${Tare.plural(a.cells.length, "cell")}`),
      Tare.el("p", { class: "set" }, a.text),
      a.contradicted ? Tare.el("p", { class: "warning" }, `${past() === "modelled" ? "Modelled" : "Measured"} here, and no gain.`) : null,
      gains(a).map((g) => gain(a, g)),
      named("Not proven here", a.unproven, "quiet"),
      named("Price", a.price, "price"),
      named("Warning", a.warning, "warning"),
      a.several && (a.patches || []).length ? Tare.el("p", { class: "quiet" }, "The patches are those of its costliest cells; tare advise --json has the others.") : null,
      (a.patches || []).map((p, n) => patch(p, `${id}-${n}`)),
      a.source ? Tare.el("p", { class: "quiet" }, `Rule ${a.rule}; source: ${a.source}`) : null,
      cells && Tare.causes() ? Tare.folded(`advice-${id}`, `Its cells (${a.cells.length})`, () => cellList(a.cells, id)) : null,
    );

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
