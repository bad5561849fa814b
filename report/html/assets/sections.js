// The parts that are words and plain tables: the head, the answer, what was
// asked, hosts, warnings, failures, skips, costs, and how figures are computed.
(() => {
  "use strict";

  // hostsOf describes the nodes of a session.
  const hostsOf = (s) => (s.nodes ? s.nodes.map((n) => n.host) : [s.host]);

  Tare.renderHead = () => {
    const D = Tare.data,
      doc = D.doc,
      r = D.res;
    document.title = Tare.clean(`${doc.study.name || "tare"} – tare`);
    Tare.fill(document.querySelector("h1"), Tare.clean(doc.study.name || "tare"), doc.study.about ? Tare.el("span", { class: "about" }, ` ${doc.study.about}`) : null);
    modelled(doc.modelled);
    const hosts = [...new Set(doc.sessions.flatMap(hostsOf).map((h) => h.hostname).filter(Boolean))];
    const when = [doc.sessions[0] && doc.sessions[0].started, doc.generated].map((t) => (t ? day(t) : "")).filter(Boolean);
    Tare.fill(
      document.getElementById("meta"),
      Tare.el(
        "p",
        {},
        [
          `${r.compare} compared with ${r.baseline}`,
          `${Tare.plural(r.trials, "trial")}${r.failed ? `, ${r.failed} failed` : ""}`,
          hosts.length ? `host ${hosts.join(", ")}` : null,
          r.nodes ? `nodes ${r.nodes.map((n) => `${n.name || "one without a name"} (${Tare.plural(n.blocks, "block")})`).join(", ")}` : null,
          when.length > 1 && when[0] !== when[1] ? `${when[0]} to ${when[1]}` : when[0],
          doc.tare ? `tare ${doc.tare}` : null,
          r.finished ? doc.state : null,
        ]
          .filter(Boolean)
          .flatMap((t, n) => [n ? Tare.el("i", { class: "between" }, " · ") : null, Tare.el("span", {}, t)]),
      ),
      r.finished ? null : Tare.el("p", { class: "state" }, doc.state),
      doc.busy ? Tare.el("p", { class: "busy", role: "note" }, `The host was busy: ${doc.busy}`) : null,
    );
  };

  // modelled says that no machine measured this: here, and by the style below every table
  // and chart. A live page learns it with its data.
  const modelled = (text) => {
    document.documentElement.toggleAttribute("data-modelled", !!text);
    let p = document.querySelector("header .modelled");
    if (!text) {
      if (p) p.remove();
      return;
    }
    document.title = `modelled: ${document.title}`;
    if (!p) {
      p = Tare.el("p", { class: "modelled", role: "note" });
      document.getElementById("meta").before(p);
    }
    p.textContent = Tare.clean(text);
  };

  const day = (t) => {
    const d = new Date(t);
    return Number.isNaN(d.getTime()) ? t : d.toISOString().slice(0, 16).replace("T", " ") + " UTC";
  };

  const tones = {
    worse: ["▼", "costs more"],
    better: ["▲", "costs less"],
    equal: ["=", "free"],
    bounded: ["≤", "no large cost"],
    undecided: ["?", "too noisy, or too few blocks, to say"],
    note: ["", ""],
  };

  Tare.renderAnswer = () => {
    const D = Tare.data,
      list = document.querySelector("#answer .answer");
    const colour = (about) => {
      const at = D.treatments.findIndex((t) => t.key === about);
      return at >= 0 ? at : null;
    };
    const all = D.doc.answer || [];
    Tare.fill(
      list,
      all.map((s) => {
        const [mark, word] = tones[s.tone] || tones.note,
          at = s.about ? colour(s.about) : null;
        const name = at !== null && D.treatments[at].cell.length ? Tare.levelName(D.treatments[at].cell[0]) : "";
        const said = (text) => (name && text.startsWith(name + ":") ? [Tare.el("b", {}, name), text.slice(name.length)] : text);
        const headline = s === all[0] && all.some((x) => x.short);
        return Tare.el(
          "li",
          { class: `tone-${Object.hasOwn(tones, s.tone) ? s.tone : "note"}${headline ? " long" : ""}`, "data-about": s.about || null },
          Tare.el("span", { class: "tone", "aria-hidden": "true" }, mark),
          word ? Tare.el("span", { class: "hidden" }, word + ": ") : null,
          Tare.el("span", { class: s.short ? "long" : null }, said(s.text)),
          s.short ? Tare.el("span", { class: "short" }, said(s.short)) : null,
        );
      }),
    );
    if (all.some((x) => x.short) && !document.getElementById("whole")) list.after(whole(list));
  };

  // whole is a button, on phones alone, that shows the whole sentences in place of the short ones.
  const whole = (list) => {
    const b = Tare.el("button", { type: "button", class: "plain", id: "whole", "aria-expanded": "false" }, "Whole sentences");
    b.addEventListener("click", () => {
      const on = list.classList.toggle("all");
      b.setAttribute("aria-expanded", String(on));
      b.textContent = on ? "Short sentences" : "Whole sentences";
    });
    return b;
  };

  const parts = {};
  const simple = (id, title, notes, make) => {
    Tare[id + "Section"] = () => {
      parts[id] = Tare.section(id, title, notes);
      parts[id].make = make;
      return parts[id];
    };
  };

  // ownParts are the sections that have a part of the page of their own, by their ids.
  Tare.ownParts = () =>
    new Map(
      (Tare.data.doc.sections || [])
        .filter((s) => !s.in)
        .map((s) => {
          simple(s.id, s.title, s.notes || [s.id], () => (s.id === "steps" ? [Tare.plateaus(), Tare.blocks(s.id)] : Tare.blocks(s.id)));
          return [s.id, Tare[`${s.id}Section`]];
        }),
    );

  Tare.renderPlain = () => {
    for (const p of Object.values(parts))
      Tare.guard(`“${p.title}”`, () => {
        p.refreshNote();
        const content = [p.make()].flat(2).filter(Boolean);
        p.node.hidden = !content.length;
        Tare.fill(p.body, content);
      });
  };

  simple("method", "How each figure is computed", [], () => {
    const notes = Tare.data.doc.notes || [];
    if (!notes.length) return null;
    return Tare.el(
      "div",
      { class: "notes" },
      notes.map((n) => Tare.el("div", { id: `method-${n.id}` }, Tare.el("h3", {}, n.title), Tare.paragraphs(n.text))),
    );
  });
})();
