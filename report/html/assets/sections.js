// The parts that are words and plain tables: the head, the answer, what was
// asked, hosts, warnings, failures, skips, costs, and how figures are computed.
(() => {
  "use strict";

  Tare.renderHead = () => {
    const D = Tare.data,
      doc = D.doc,
      r = D.res;
    document.title = Tare.clean(`${doc.study.name || "tare"} – tare`);
    document.querySelector("h1").textContent = Tare.clean(doc.study.name || "tare");
    modelled(doc.modelled);
    const hosts = [...new Set(doc.sessions.map((s) => s.host.hostname).filter(Boolean))];
    const when = [doc.sessions[0] && doc.sessions[0].started, doc.generated].map((t) => (t ? day(t) : "")).filter(Boolean);
    Tare.fill(
      document.getElementById("meta"),
      doc.study.about ? Tare.el("p", { class: "about" }, doc.study.about) : null,
      Tare.el(
        "p",
        {},
        [
          `${r.compare} compared with ${r.baseline}`,
          `${Tare.plural(r.trials, "trial")}${r.failed ? `, ${r.failed} failed` : ""}`,
          hosts.length ? `host ${hosts.join(", ")}` : null,
          when.length > 1 && when[0] !== when[1] ? `${when[0]} to ${when[1]}` : when[0],
          doc.tare ? `tare ${doc.tare}` : null,
        ]
          .filter(Boolean)
          .flatMap((t, n) => [n ? Tare.el("i", { class: "between" }, " · ") : null, Tare.el("span", {}, t)]),
      ),
      Tare.el("p", { class: r.finished ? "state done" : "state" }, r.finished ? "Finished: " + (r.reason || "") : stillLeft(r)),
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
  const stillLeft = (r) => {
    const l = r.left || {};
    const n = l.at_least === l.at_most ? Tare.plural(l.at_most || 0, "trial") : `${l.at_least} to ${Tare.plural(l.at_most, "trial")}`;
    return `Not finished: ${n} left${l.most_time ? `, at most ${Tare.duration(l.most_time / 1e9)}` : ""}.`;
  };

  const tones = {
    worse: ["▼", "worse"],
    better: ["▲", "better"],
    equal: ["=", "equivalent"],
    undecided: ["?", "undecided"],
    note: ["", ""],
  };

  Tare.renderAnswer = () => {
    const D = Tare.data,
      list = document.querySelector("#answer .answer");
    const colour = (about) => {
      const at = D.treatments.findIndex((t) => t.key === about);
      return at >= 0 ? at : null;
    };
    Tare.fill(
      list,
      (D.doc.answer || []).map((s) => {
        const [mark, word] = tones[s.tone] || tones.note,
          at = s.about ? colour(s.about) : null;
        const name = at !== null ? Tare.treatmentName(D.treatments[at].cell) : "";
        const named = name && s.text.startsWith(name + ":");
        return Tare.el(
          "li",
          { class: `tone-${Object.hasOwn(tones, s.tone) ? s.tone : "note"}`, "data-about": s.about || null },
          Tare.el("span", { class: "tone", "aria-hidden": "true" }, mark),
          word ? Tare.el("span", { class: "hidden" }, word + ": ") : null,
          Tare.el("span", {}, named ? [Tare.el("b", {}, name), s.text.slice(name.length)] : s.text),
        );
      }),
    );
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
          simple(s.id, s.title, [s.id], () => Tare.blocks(s.id));
          return [s.id, Tare[`${s.id}Section`]];
        }),
    );

  Tare.renderPlain = () => {
    for (const p of Object.values(parts))
      Tare.guard(`“${p.title}”`, () => {
        p.refreshNote();
        const content = p.make();
        p.node.hidden = !content;
        Tare.fill(p.body, content || null);
      });
  };

  simple("asked", "What was asked", ["baseline", "response", "stop"], () => {
    const { study } = Tare.data.doc,
      r = Tare.data.res;
    const rows = (study.factors || []).map((f) => [
      f.name,
      Tare.el(
        "span",
        { class: "levels-list" },
        f.levels.map((l) =>
          Tare.el(
            "span",
            { class: f.name === study.compare && l === study.baseline ? "level base" : "level" },
            Tare.levelName({ factor: f.name, value: l }),
            f.name === study.compare && l === study.baseline ? " (baseline)" : "",
          ),
        ),
      ),
    ]);
    return [
      Tare.el(
        "p",
        {},
        `What does ${study.compare} cost beside ${study.baseline}?`,
        study.about ? ` ${study.about}.`.replace("..", ".") : "",
      ),
      Tare.table("Factors and levels", [{ head: "factor" }, { head: "levels" }], rows),
      Tare.el("dl", { class: "facts" }, [
        study.stop ? [Tare.el("dt", {}, "stops"), Tare.el("dd", {}, study.stop)] : null,
        study.budget ? [Tare.el("dt", {}, "budget"), Tare.el("dd", {}, study.budget)] : null,
        [Tare.el("dt", {}, "seed"), Tare.el("dd", {}, study.seed)],
        [Tare.el("dt", {}, "confidence"), Tare.el("dd", {}, `${Tare.percent(r.confidence)}, of all looks together`)],
        [Tare.el("dt", {}, "margin"), Tare.el("dd", {}, Tare.percent(r.margin))],
        study.overrides && study.overrides.length
          ? [
              Tare.el("dt", {}, "--set"),
              Tare.el(
                "dd",
                {},
                study.overrides.map((o) => Tare.el("code", {}, o)),
              ),
            ]
          : null,
      ]),
      study.source
        ? Tare.folded("study-file", `The study file${study.file ? `: ${study.file}` : ""}`, () =>
            Tare.el("pre", { tabindex: "0", "aria-label": "The study file" }, study.source),
          )
        : null,
      Tare.blocks("asked"),
    ];
  });

  simple("failures", "Failures and skips", [], () => {
    const D = Tare.data,
      failures = D.res.failures || [],
      rest = Tare.blocks("failures");
    if (!failures.length && !rest) return null;
    const few = 12,
      bound = 300;
    const list = (part, from) =>
      Tare.el(
        "ul",
        { class: "failures" },
        part.map((f, n) =>
          Tare.el(
            "li",
            {},
            Tare.el("b", {}, `trial ${f.seq}`),
            ` (block ${f.block}${f.attempt > 1 ? `, attempt ${f.attempt}` : ""}) `,
            Tare.el("span", { class: "quiet" }, Tare.levelsText(f.cell)),
            Tare.el("br", {}),
            `${f.failure.kind}${f.failure.phase ? ` in ${f.failure.phase}` : ""}${f.failure.role ? `, ${f.failure.role}` : ""}: ${f.failure.reason}`,
            f.failure.tail
              ? Tare.folded(`tail-${from + n}-${f.seq}`, "The end of its output", () =>
                  Tare.el("pre", { tabindex: "0", "aria-label": `Output of trial ${f.seq}` }, f.failure.tail),
                )
              : null,
          ),
        ),
      );
    return [
      failures.length
        ? [
            Tare.el("h3", {}, Tare.plural(failures.length, "failed trial")),
            list(failures.slice(0, few), 0),
            failures.length > few
              ? Tare.folded("failures-more", `${Tare.grouped(failures.length - few)} more`, () => [
                  list(failures.slice(few, bound), few),
                  failures.length > bound
                    ? Tare.el("p", { class: "quiet" }, `and ${Tare.grouped(failures.length - bound)} more; tare report --json has all`)
                    : null,
                ])
              : null,
          ]
        : null,
      rest,
    ];
  });

  simple("host", "Host", [], () => {
    const D = Tare.data,
      seen = new Map();
    for (const s of D.doc.sessions) {
      const k = JSON.stringify({ ...s.host, warnings: null });
      if (!seen.has(k)) seen.set(k, { host: s.host, sessions: [] });
      seen.get(k).sessions.push(s);
    }
    if (!seen.size) return null;
    return [...seen.values()].map(({ host: h, sessions }, n) => {
      const rows = [
        ["processor", `${h.cpu_model}${h.arch ? `, ${h.arch}` : ""}`],
        [
          "cores",
          `${h.cores}${h.threads && h.threads !== h.cores ? `, ${h.threads} threads` : ""}${h.sockets > 1 ? `, ${h.sockets} sockets` : ""}`,
        ],
        ["memory", h.memory_bytes ? Tare.value(h.memory_bytes, "B") : ""],
        ["system", h.os],
        ["kernel", h.kernel],
        ["cgroups", h.cgroups],
        ["virtualization", h.virtualization],
        ["KVM", h.kvm],
        ["governor", h.governor],
        ["clock", h.clocksource],
        ["measured", sessions.map((s) => day(s.started)).join(", ")],
      ].filter(([, v]) => v);
      const more = (title, map) =>
        map && Object.keys(map).length
          ? Tare.folded(`host-${n}-${title}`, title, () =>
              Tare.table(
                title,
                [{ head: "name" }, { head: "what" }],
                Object.entries(map)
                  .sort()
                  .map(([k, v]) => [k, v]),
              ),
            )
          : null;
      return [
        Tare.el("h3", {}, h.hostname || "a host"),
        Tare.el(
          "dl",
          { class: "facts" },
          rows.map(([k, v]) => [Tare.el("dt", {}, k), Tare.el("dd", {}, v)]),
        ),
        more("Versions of tools", h.tools),
        more("Mitigations", h.mitigations),
      ];
    });
  });

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
