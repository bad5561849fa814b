// Colours: those of the theme, one for each treatment, and the scale of the heat
// map, which people who see no red or no green can read: orange is worse, blue
// is better. A sign beside it always says the same.
(() => {
  "use strict";

  Tare.css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // After Okabe and Ito (2008), darkened for contrast on white; the baseline is grey.
  const light = ["#5b6470", "#0067a6", "#c2500a", "#00795a", "#a8488a", "#8a6a00", "#3f51b5", "#6d4c41"];
  const dark = ["#a3adb8", "#5cb3ee", "#f0944f", "#3fc79d", "#e08fc4", "#e3c14b", "#9fa8ff", "#c7a598"];
  const dashes = ["solid", "dashed", "dotted"];
  const symbols = ["circle", "rect", "triangle", "diamond", "roundRect", "circle", "rect", "triangle"];

  // treatmentStyle tells a treatment's colour, dash and symbol by its column.
  Tare.treatmentStyle = (column) => {
    const list = Tare.dark() ? dark : light;
    const base = Tare.data.treatments[column] && Tare.data.treatments[column].baseline;
    const i = base ? 0 : 1 + ((column - 1 + (list.length - 1)) % (list.length - 1));
    const round = base ? 0 : Math.floor(Math.max(0, column - 1) / (list.length - 1));
    return { colour: list[i], dash: dashes[round % dashes.length], symbol: symbols[i] };
  };
  Tare.lineColours = () => (Tare.dark() ? dark : light).slice(1);

  const scales = {
    light: {
      worse: ["#f5f3ef", "#fbc88f", "#d9701a", "#8f3a06"],
      better: ["#f5f3ef", "#a9d2ea", "#3a84bf", "#134a7e"],
      other: ["#f5f3ef", "#d5c4ea", "#8d6bb8", "#523080"],
    },
    dark: {
      worse: ["#272c32", "#6d3f15", "#c26d1f", "#fba95a"],
      better: ["#272c32", "#1f4a6b", "#2f7fbd", "#86c8f7"],
      other: ["#272c32", "#483463", "#8262b3", "#c4a8ee"],
    },
  };

  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const mix = (a, b, t) => {
    const x = rgb(a),
      y = rgb(b);
    return (
      "#" +
      x
        .map((v, i) =>
          Math.round(v + (y[i] - v) * t)
            .toString(16)
            .padStart(2, "0"),
        )
        .join("")
    );
  };
  const along = (stops, t) => {
    const x = Math.min(1, Math.max(0, t)) * (stops.length - 1),
      i = Math.min(stops.length - 2, Math.floor(x));
    return mix(stops[i], stops[i + 1], x - i);
  };

  // tint is a colour's n-th variation: lighter, for what comes after the last colour.
  Tare.tint = (hex, n) => (n === 0 ? hex : mix(hex, Tare.dark() ? "#15181c" : "#ffffff", Math.min(0.7, 0.15 + 0.25 * n)));

  // heatCap is the ratio at which the scale ends: nine of ten comparisons lie within,
  // or of the logarithms given.
  Tare.heatCap = (logs) => {
    const all = (logs || Tare.data.items.filter((i) => i.hasRatio).map((i) => Math.abs(i.ln))).sort((a, b) => a - b);
    const most = all.length ? all[Math.floor(0.9 * (all.length - 1))] : 0;
    for (const c of [1.1, 1.25, 1.5, 2, 3, 5, 10, 30, 100]) if (most <= Math.log(c)) return c;
    return 1000;
  };

  const side = (i) => {
    const better = i.c.response.better;
    if (better !== "higher" && better !== "lower") return "other";
    return Tare.harm(i) > 0 ? "worse" : "better";
  };

  Tare.scaleAt = (sideName, t) => along(scales[Tare.dark() ? "dark" : "light"][sideName], t);

  // heat is the background of a decided comparison; others have none.
  Tare.heat = (i, cap) => {
    if (!["better", "worse", "higher", "lower"].includes(i.kind)) return null;
    return Tare.scaleAt(side(i), 0.12 + 0.88 * Math.min(1, Math.abs(i.ln) / Math.log(cap)));
  };

  // hatch is a fill of stripes: one way, the other, both, upright, level, squares.
  const slopes = [[[0, 6, 6, 0]], [[0, 0, 6, 6]], [[0, 6, 6, 0], [0, 0, 6, 6]], [[3, 0, 3, 6]], [[0, 3, 6, 3]], [[3, 0, 3, 6], [0, 3, 6, 3]]];
  Tare.hatches = slopes.length;
  Tare.hatch = (colour, n = 0, ground) => {
    const c = document.createElement("canvas");
    c.width = c.height = 6;
    const g = c.getContext("2d");
    if (ground) {
      g.fillStyle = ground;
      g.fillRect(0, 0, 6, 6);
    }
    g.strokeStyle = colour;
    g.lineWidth = 1.6;
    for (const [x1, y1, x2, y2] of slopes[n % slopes.length])
      for (const d of x1 === x2 || y1 === y2 ? [0] : [-6, 0, 6]) {
        g.beginPath();
        g.moveTo(x1 + d, y1);
        g.lineTo(x2 + d, y2);
        g.stroke();
      }
    return { image: c, repeat: "repeat" };
  };

  const luminance = (hex) => {
    const [r, g, b] = rgb(hex).map((v) => {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  // ink is black or white, whichever is read better on a colour.
  Tare.ink = (hex) => ((luminance(hex) + 0.05) / 0.05 > 1.05 / (luminance(hex) + 0.05) ? "#000000" : "#ffffff");
})();
