// Figures as text, digit for digit as report/text/value.go writes them, so that
// a figure reads the same at the terminal and here. A Go test compares the two.
(() => {
  "use strict";

  // Go rounds an exact half to even; toFixed and toExponential round it up.
  const fixed = (v, n) => {
    const s = v.toFixed(n);
    const exact = v.toFixed(Math.min(100, n + 40));
    const dot = exact.indexOf(".");
    const rest = exact.slice(dot + 1 + n);
    if (!/^50*$/.test(rest)) return s;
    const cut = exact.slice(0, n > 0 ? dot + 1 + n : dot);
    return (cut.charCodeAt(cut.length - 1) - 48) % 2 === 0 ? cut : s;
  };

  // general is strconv.FormatFloat(v, 'g', 3, 64).
  const general = (v) => {
    let [m, e] = v.toExponential(2).split("e");
    const exact = v.toExponential(60).split("e");
    if (/^-?\d\.\d\d50*$/.test(exact[0])) {
      const cut = exact[0].slice(0, exact[0].indexOf(".") + 3);
      if ((cut.charCodeAt(cut.length - 1) - 48) % 2 === 0) [m, e] = [cut, exact[1]];
    }
    const exp = Number(e);
    m = m.replace(/\.?0+$/, "");
    if (exp < -4 || exp >= 3) {
      const a = Math.abs(exp);
      return `${m}e${exp < 0 ? "-" : "+"}${a < 10 ? "0" : ""}${a}`;
    }
    const digits = m.replace(/[-.]/g, "").length;
    return fixed(v, Math.max(0, digits - 1 - exp));
  };

  const digits = (v) => {
    const a = Math.abs(v);
    if (v === 0) return "0";
    if (a < 0.001 || a >= 1e7) return general(v);
    if (a < 0.9995) return fixed(v, 3);
    if (a < 9.995) return fixed(v, 2);
    if (a < 99.95) return fixed(v, 1);
    return fixed(v, 0);
  };

  const prefixed = (v, base, units) => {
    let i = 0;
    while (i < units.length - 1 && Math.abs(v) >= base * 0.9995) {
      v /= base;
      i++;
    }
    if (i === 0 && units[0] === "B") return `${fixed(v, 0)} B`;
    return `${digits(v)} ${units[i]}`;
  };

  const seconds = (v) => {
    const a = Math.abs(v);
    if (v === 0) return "0 s";
    if (a < 0.9995e-6) return `${digits(v * 1e9)} ns`;
    if (a < 0.9995e-3) return `${digits(v * 1e6)} µs`;
    if (a < 0.9995) return `${digits(v * 1e3)} ms`;
    return `${digits(v)} s`;
  };

  Tare.value = (v, unit) => {
    if (v === null || v === undefined || Number.isNaN(v)) return "-";
    switch (unit) {
      case "s":
        return seconds(v);
      case "B":
        return prefixed(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
      case "B/s":
        return prefixed(v, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);
      case "b/s":
        return prefixed(8 * v, 1000, ["b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"]);
      case "1/s":
        return prefixed(v, 1000, ["/s", "k/s", "M/s", "G/s"]);
      case "cores":
        return `${digits(v)} cores`;
      case "1":
        return `${digits(100 * v)} %`;
      case "count":
        if (Math.abs(v) < 1e4 && v === Math.trunc(v)) return String(v);
        return prefixed(v, 1000, ["", "k", "M", "G", "T"]).trim();
    }
    return `${digits(v)} ${unit || ""}`.trim();
  };

  // unitOf is the unit that a response's values are written in: bits of a network.
  Tare.unitOf = (r) => (r.network && r.unit === "B/s" ? "b/s" : r.unit);

  // costOf is an estimate as a cost, of which more is worse (stat.Estimate.Cost).
  Tare.costOf = (e, better) => (better === "higher" && e.ratio > 0 ? { x: 1 / e.ratio, lo: e.lo > 0 ? 1 / e.hi : 0, hi: e.lo > 0 ? 1 / e.lo : 0 } : { x: e.ratio, lo: e.lo, hi: e.hi });
  Tare.times = (v) => `${Tare.ratio(v)} ×`;
  // bound is a bound in per cent, rounded up.
  Tare.bound = (v) => `${Math.ceil(100 * v - 1e-9)} %`;
  Tare.ratio = (v) => (v >= 0.1995 && v < 0.9995 ? fixed(v, 2) : digits(v));
  Tare.digits = digits;
  Tare.percent = (v) => `${Number((100 * v).toPrecision(3))} %`;

  // halfWidth is the interval's relative half-width, as stat.Estimate.HalfWidth.
  Tare.halfWidth = (e) => (e.lo > 0 ? Math.sqrt(e.hi / e.lo) - 1 : Infinity);
})();
