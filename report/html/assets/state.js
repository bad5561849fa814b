// What is chosen: filters, order, what is open. It is in the address's fragment,
// so that a view can be sent to somebody; nothing else is kept but the theme.
(() => {
  "use strict";

  const initial = () => ({
    pick: new Map(),
    response: new Set(),
    verdict: new Set(),
    first: false,
    text: "",
    sort: "study",
    desc: true,
    open: null,
    trial: null,
    page: {},
  });

  Tare.state = initial();
  const listeners = [];
  Tare.onChange = (f) => listeners.push(f);

  // Values are joined by "~", with "~" and "!" in them escaped.
  const pack = (set) => [...set].map((s) => s.replace(/!/g, "!e").replace(/~/g, "!t")).join("~");
  const unpack = (s) => new Set(s === "" ? [] : s.split("~").map((x) => x.replace(/!t/g, "~").replace(/!e/g, "!")));

  // at is the fragment that the state has read. If the address has another one, its
  // event has not arrived yet.
  let at = location.hash;

  const write = () => {
    const s = Tare.state,
      p = new URLSearchParams();
    for (const [f, set] of s.pick) if (set.size) p.set("f." + f, pack(set));
    if (s.response.size) p.set("response", pack(s.response));
    if (s.verdict.size) p.set("verdict", pack(s.verdict));
    if (s.first) p.set("first", "1");
    if (s.text) p.set("q", s.text);
    if (s.sort !== "study") p.set("sort", (s.desc ? "-" : "") + s.sort);
    for (const [k, n] of Object.entries(s.page)) if (n > 0) p.set("p." + k, String(n));
    if (s.trial) p.set("trial", s.trial);
    if (s.open) p.set("open", s.open);
    const text = p.toString();
    history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
    at = location.hash;
  };

  Tare.readState = () => {
    const s = initial();
    at = location.hash;
    const hash = at.slice(1);
    if (hash.includes("=")) {
      for (const [k, v] of new URLSearchParams(hash)) {
        if (k.startsWith("f.")) s.pick.set(k.slice(2), unpack(v));
        else if (k.startsWith("p.")) s.page[k.slice(2)] = Math.max(0, Math.floor(Number(v)) || 0);
        else if (k === "response") s.response = unpack(v);
        else if (k === "verdict") s.verdict = unpack(v);
        else if (k === "first") s.first = v === "1";
        else if (k === "q") s.text = v;
        else if (k === "sort") {
          s.desc = v.startsWith("-");
          s.sort = v.replace(/^-/, "");
        } else if (k === "open") s.open = v;
        else if (k === "trial") s.trial = v;
      }
    }
    Tare.state = s;
  };

  // set changes the state, writes it to the address and tells what changed:
  // "filter", "sort", "page:NAME", "open", "trial", "theme", "data". It changes nothing
  // while a new address waits to be read; otherwise a dialog that closes would write
  // the old address over the new one.
  Tare.set = (what, change) => {
    if (location.hash !== at) return;
    if (change) change(Tare.state);
    if (what === "filter" || what === "sort") Tare.state.page = {};
    write();
    Tare.tell(what);
  };
  Tare.tell = (what) => {
    for (const f of listeners) Tare.guard("A part of the report", () => f(what));
  };

  addEventListener("hashchange", () => {
    at = location.hash;
    if (!Tare.data || (!location.hash.includes("=") && location.hash.length > 1)) return;
    Tare.readState();
    Tare.tell("all");
  });

  // theme: "light", "dark", or "" for what the system says.
  const key = "tare-theme";
  const stored = () => {
    try {
      return localStorage.getItem(key) || "";
    } catch {
      return "";
    }
  };
  let theme = stored();
  const system = matchMedia("(prefers-color-scheme: dark)");
  const print = matchMedia("print");
  let printing = false;
  Tare.dark = () => !printing && !print.matches && (theme ? theme === "dark" : system.matches);
  const show = () => {
    document.documentElement.dataset.theme = Tare.dark() ? "dark" : "light";
    Tare.tell("theme");
  };
  Tare.toggleTheme = () => {
    const dark = !Tare.dark();
    theme = dark === system.matches ? "" : dark ? "dark" : "light";
    try {
      if (theme) localStorage.setItem(key, theme);
      else localStorage.removeItem(key);
    } catch {
      /* a file: page may have no storage */
    }
    show();
  };
  system.addEventListener("change", show);
  print.addEventListener("change", () => {
    show();
    Tare.tell("print");
  });
  addEventListener("beforeprint", () => {
    printing = true;
    show();
    Tare.tell("print");
  });
  addEventListener("afterprint", () => {
    printing = false;
    show();
    Tare.tell("print");
  });
  Tare.printing = () => printing || print.matches;
  document.documentElement.dataset.theme = Tare.dark() ? "dark" : "light";
})();
