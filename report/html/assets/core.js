// The report's script, part 1: what all other parts use. The parts are joined
// in the order of order.txt into one script; each adds to the one object Tare.
// Names and texts in a document are of others: they go in as text or attribute
// values of elements, never as markup.
const Tare = {};
(() => {
  "use strict";

  // el makes an element. attrs: "class", "data-x", "aria-x"... as attributes; "on"
  // an object of listeners; "style" an object of properties; a boolean sets or
  // leaves out; children are nodes, texts, or arrays of them; null is nothing.
  Tare.el = (tag, attrs, ...children) => {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attrs || {})) {
      if (v === null || v === undefined || v === false) continue;
      if (k === "on") for (const [name, f] of Object.entries(v)) e.addEventListener(name, f);
      else if (k === "style") for (const [p, x] of Object.entries(v)) e.style.setProperty(p, x);
      else e.setAttribute(k, v === true ? "" : String(v));
    }
    Tare.put(e, ...children);
    return e;
  };

  // clean shows characters that would turn the text after them round, or that no
  // one sees, as a sign: a name must not change how the figure beside it reads.
  Tare.clean = (s) => String(s).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

  Tare.put = (e, ...children) => {
    for (const c of children.flat(3)) {
      if (c === null || c === undefined || c === false) continue;
      e.append(c instanceof Node ? c : document.createTextNode(Tare.clean(c)));
    }
  };

  // fill replaces what is in e, and keeps the focus where it was: on the element
  // with the same data-id.
  Tare.fill = (e, ...children) => {
    const at = document.activeElement;
    const id = at && e.contains(at) ? at.getAttribute("data-id") : null;
    e.replaceChildren();
    Tare.put(e, ...children);
    if (id !== null) {
      const again = e.querySelector(`[data-id="${CSS.escape(id)}"]`);
      if (again) again.focus({ preventScroll: true });
    }
  };

  Tare.say = (text) => {
    document.getElementById("says").textContent = text;
  };

  // later runs f once when things have been quiet for ms.
  Tare.later = (ms, f) => {
    let t = 0;
    return (...args) => {
      clearTimeout(t);
      t = setTimeout(() => f(...args), ms);
    };
  };

  Tare.plural = (n, what) => `${Tare.grouped(n)} ${what}${n === 1 ? "" : "s"}`;
  Tare.grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

  // A failure of one part must not take the others with it, and is said.
  Tare.guard = (what, f) => {
    try {
      return f();
    } catch (err) {
      console.error(err);
      Tare.problem(`${what} cannot be shown: ${(err && err.message) || err}`);
      return undefined;
    }
  };

  Tare.problem = (text) => {
    const p = document.getElementById("problem");
    p.hidden = !text;
    p.textContent = Tare.clean(text);
  };
})();
