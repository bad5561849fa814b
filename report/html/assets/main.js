// The page as a whole: sections in their order, what is drawn again when
// something changes, and the live report's polling.
(() => {
  "use strict";

  // A name stands for a section that package section alone builds. Those that are not
  // named here come before how figures are computed.
  const order = () => [
    Tare.heatSection,
    Tare.tablesSection,
    "merit",
    "steps",
    Tare.adviceSection,
    Tare.dotsSection,
    Tare.causesSection,
    Tare.bootsSection,
    Tare.cpuCostSection,
    "quota",
    Tare.structuralSection,
    Tare.publishedSection,
    Tare.tableSection,
    Tare.curvesSection,
    Tare.seriesSection,
    Tare.orderSection,
    "asked",
    "warnings",
    "failures",
    "host",
    "cost",
    Tare.methodSection,
  ];
  const every = 2000; // ms between two questions of a live page
  let sections = [],
    nav;

  const build = () => {
    const app = document.getElementById("app");
    const own = Tare.ownParts(),
      listed = order(),
      rest = [...own.keys()].filter((id) => !listed.includes(id));
    listed.splice(-1, 0, ...rest);
    sections = listed.map((f) => (typeof f === "function" ? f : own.get(f))).filter(Boolean).map((f) => f());
    Tare.fill(
      app,
      sections.map((s) => s.node),
    );
    nav = Tare.el("nav", { class: "parts", "aria-label": "Parts of the report" });
    document.querySelector("header.top").append(nav);
    const tools = document.getElementById("tools");
    Tare.put(
      tools,
      Tare.el("button", { type: "button", class: "plain", id: "theme", on: { click: Tare.toggleTheme } }),
      Tare.el("button", { type: "button", class: "plain", id: "share", on: { click: share } }, "Copy link"),
      Tare.el("button", { type: "button", class: "plain", id: "print", on: { click: () => window.print() } }, "Print"),
    );
    themeName();
    // The skip link and the parts' links must leave the fragment alone: it holds the view.
    document.querySelector("a.skip").addEventListener("click", (ev) => {
      ev.preventDefault();
      document.getElementById("main").focus();
    });
  };

  const share = async () => {
    const b = document.getElementById("share");
    try {
      await navigator.clipboard.writeText(location.href);
      b.textContent = "Copied";
    } catch {
      b.textContent = "Copy the address";
    }
    Tare.say(b.textContent);
    setTimeout(() => {
      b.textContent = "Copy link";
    }, 2000);
  };

  const themeName = () => {
    const b = document.getElementById("theme");
    if (!b) return;
    b.textContent = Tare.dark() ? "Light" : "Dark";
    b.setAttribute("aria-label", `${b.textContent} colours`);
  };

  // goTo scrolls to a part, and again while what comes into view there is drawn
  // and moves it: until it has rested for a while or somebody scrolls. At once and
  // not smoothly: on its way the page would draw every chart that it passes.
  const rests = 700; // ms
  let going = 0;
  const goTo = (node) => {
    const my = ++going,
      began = performance.now();
    let moved = began;
    const tick = () => {
      if (my !== going || node.hidden) return;
      const from = node.getBoundingClientRect().top;
      node.scrollIntoView({ behavior: "instant", block: "start" });
      const now = performance.now();
      if (Math.abs(node.getBoundingClientRect().top - from) > 1) moved = now;
      if (now - moved < rests && now - began < 10 * rests) requestAnimationFrame(tick);
    };
    tick();
    const h = node.querySelector("h2");
    if (!h) return;
    h.tabIndex = -1;
    h.focus({ preventScroll: true });
  };
  for (const what of ["wheel", "touchstart", "pointerdown", "keydown"]) addEventListener(what, () => going++, { passive: true, capture: true });

  // An address may end in a part's name instead of a view.
  const goToNamed = () => {
    let id = location.hash.slice(1);
    try {
      id = decodeURIComponent(id);
    } catch {
      /* as it is */
    }
    const node = id && !id.includes("=") ? document.getElementById(id) : null;
    if (node && node.matches("section.part")) goTo(node);
  };
  addEventListener("hashchange", () => {
    if (Tare.data) goToNamed();
  });

  const renderNav = () =>
    Tare.fill(
      nav,
      [{ id: "answer", title: "The answer", node: document.getElementById("answer") }, ...sections]
        .filter((s) => !s.node.hidden)
        .map((s) =>
          Tare.el(
            "a",
            {
              href: "#" + s.id,
              "data-id": "nav-" + s.id,
              on: {
                click: (ev) => {
                  ev.preventDefault();
                  goTo(s.node);
                },
              },
            },
            s.title,
          ),
        ),
    );

  const step = (what, f) => Tare.guard(what, f);
  const comparisons = (filtered) => {
    Tare.view = Tare.makeView();
    step("The filter", Tare.renderFilters);
    step("The summary", Tare.renderHeat);
    step("The ratios", Tare.renderDots);
    step("The table", Tare.renderTable);
    step("The causes", Tare.renderCauseCells);
    if (filtered) rest();
  };
  // What is further down waits until the fingers rest.
  const bound = () => {
    step("The distributions", Tare.renderCurves);
    step("The time series", Tare.renderSeries);
    step("The order of trials", Tare.renderOrder);
    renderNav();
    Tare.dropCharts();
  };
  const rest = Tare.later(150, bound);

  const whole = () => {
    step("The head", Tare.renderHead);
    step("The answer", Tare.renderAnswer);
    step("The text", Tare.renderPlain);
    step("The summary tables", Tare.renderTables);
    step("The starts", Tare.renderBoots);
    step("The CPU a unit of work", Tare.renderCPUCost);
    step("The structural cost", Tare.renderStructural);
    step("The published figures", Tare.renderPublished);
    Tare.view = Tare.makeView();
    step("The causes", Tare.renderCauses);
    step("What to set", Tare.renderAdvice);
    comparisons(false);
    bound();
    step("The details", Tare.renderDetails);
  };

  Tare.onChange((what) => {
    if (!Tare.data) return;
    switch (what) {
      case "filter":
        comparisons(true);
        break;
      case "sort":
        comparisons(false);
        break;
      case "all":
        comparisons(true);
        Tare.renderDetails();
        break;
      case "page:heat":
        Tare.renderHeat();
        break;
      case "page:causes":
        Tare.renderCauseCells();
        break;
      case "page:dots":
        Tare.renderDots();
        break;
      case "page:table":
        Tare.renderTable();
        break;
      case "page:cpucost":
        Tare.renderCPUCost();
        break;
      case "page:curves":
        Tare.renderCurves();
        break;
      case "open":
        Tare.renderDetails();
        break;
      case "trial":
        Tare.renderSeries();
        break;
      case "theme":
        themeName();
        Tare.renderAnswer();
        Tare.renderHeat();
        Tare.renderTables();
        Tare.renderCauses();
        Tare.renderDots();
        Tare.renderBoots();
        Tare.renderCPUCost();
        Tare.renderStructural();
        Tare.renderPublished();
        Tare.renderOrder();
        break;
      case "print":
        if (folds()) {
          comparisons(false);
          Tare.renderTables();
          Tare.renderBoots();
          Tare.renderCPUCost();
          Tare.renderStructural();
          Tare.renderPublished();
          bound();
          Tare.drawCharts();
        }
        break;
    }
  });

  // In print everything that fits a page is open, and lists are whole.
  let printed = false;
  const folds = () => {
    const on = Tare.printing();
    if (on === printed) return false;
    printed = on;
    for (const d of document.querySelectorAll("#asked details.more")) {
      d.open = on;
      if (on) d.tareFill(); // its own event comes too late
    }
    return true;
  };

  const use = (doc) => {
    if (!doc || !doc.result || !doc.trials || !doc.cells || !doc.study) throw new Error("this is not the data of a report");
    if (doc.version > 1) Tare.problem(`This page is older than its data (version ${doc.version}); some of it may be missing.`);
    doc.sessions = doc.sessions || [];
    Tare.data = Tare.index(doc);
  };

  // A live page asks for the version, and for the document when it is another.
  // version is the one that the document at hand has at least.
  const follow = (version) => {
    let lost = false;
    const ask = async () => {
      if (document.hidden) {
        setTimeout(ask, every);
        return;
      } // nobody looks
      try {
        const v = (await Tare.get("version")).version;
        if (lost) {
          lost = false;
          Tare.problem("");
        }
        if (v !== version) {
          use(await Tare.get("doc"));
          const y = scrollY;
          const inner = [...document.querySelectorAll(".scroll")].map((e) => [e.scrollLeft, e.scrollTop]);
          whole();
          [...document.querySelectorAll(".scroll")].forEach((e, i) => {
            if (inner[i]) [e.scrollLeft, e.scrollTop] = inner[i];
          });
          scrollTo({ top: y, behavior: "instant" });
          document.documentElement.dataset.version = v;
        }
        version = v;
      } catch (err) {
        lost = true;
        Tare.problem(
          `The server of this report does not answer (${err.message}). The page shows its last answer and keeps trying.`,
        );
      }
      setTimeout(ask, every);
    };
    ask();
  };

  const start = async () => {
    let version = "";
    try {
      if (Tare.live() !== null) version = (await Tare.get("version")).version;
      const doc = await Tare.load();
      Tare.problem("");
      use(doc);
    } catch (err) {
      const live = Tare.live() !== null;
      Tare.problem(
        `This report cannot be shown: ${err.message || err}. ${live ? "The page asks again every two seconds." : "The answer is below; `tare report DIR` prints all figures."}`,
      );
      document.documentElement.dataset.ready = "failed";
      if (live) setTimeout(start, every);
      return;
    }
    // The first visit leaves a cookie; the token must not be in what "Copy link" copies.
    if (Tare.live() !== null && location.search) history.replaceState(null, "", location.pathname + location.hash);
    Tare.readState();
    build();
    whole();
    goToNamed();
    if (Tare.live() !== null) follow(version);
    document.documentElement.dataset.ready = "yes";
  };
  start();
})();
