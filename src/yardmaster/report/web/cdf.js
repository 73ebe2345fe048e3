// Distributions: which share of the jobs has at most a value.

import { axis, bottomAxis, leftAxis } from "./axes.js";
import { chart } from "./chart.js";
import { s } from "./dom.js";
import { legendRow } from "./legend.js";
import { markerPath } from "./looks.js";
import { duration, figure, percent } from "./words.js";

const HEIGHT = 300;
const SHARES = [0.1, 0.5, 0.9, 0.95, 0.99];
/** Left end of logarithmic axes: what is shorter is drawn here. */
const SHORTEST_S = 1;

/**
 * @typedef {import("./looks.js").Look} Look
 * @typedef {{name: string, look: Look, x: number[], y: number[]}} Curve
 * @typedef {{curves: Curve[], measure: string, time: boolean}} Distributions
 */

/**
 * Draw distributions as curves on a logarithmic axis.
 * @param {HTMLElement} host @param {Distributions} data
 * @param {import("./chart.js").Words} words
 */
export function cdf(host, data, words) {
  return chart(host, data, words, draw);
}

/** @param {Distributions} data @param {number} width */
function draw({ curves, measure, time }, width) {
  const box = { left: 46, right: width - 14, top: 10, bottom: HEIGHT - 42 };
  const least = time ? SHORTEST_S : 1;
  const values = curves.flatMap((curve) => [curve.x[0], curve.x.at(-1)]).filter((value) => value !== undefined);
  const low = Math.max(least, Math.min(...values, Infinity) === Infinity ? least : Math.min(...values));
  const across = axis(low, Math.max(low, ...values), [box.left, box.right], { log: true, time });
  const up = axis(0, 100, [box.bottom, box.top], { unit: " %" });
  const say = time ? duration : (/** @type {number} */ value) => `${figure(value)} ×`;
  const key = legendRow(curves, width, HEIGHT);
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${HEIGHT + key.height}`, role: "group", "aria-label": `${measure}: ${curves.map((curve) => inWords(curve, say)).join("; ")}`,
  }, leftAxis(up, box), bottomAxis(across, box, measure), key.element);
  for (const curve of curves) {
    svg.append(s("path", {
      class: "curve", d: steps(curve, across, up), stroke: curve.look.colour, "stroke-dasharray": curve.look.dash || null,
    }));
  }
  for (const curve of curves) {
    for (const share of SHARES) {
      const value = quantile(curve, share);
      if (value === null) continue;
      svg.append(s("path", {
        class: "mark", d: markerPath(curve.look.marker, across.place(value), up.place(share * 100), 4),
        fill: curve.look.colour, "data-tip": `${curve.name}\n${percent(share)} of the jobs: at most ${say(value)}`,
        "aria-label": `${curve.name}: ${percent(share)} of the jobs at most ${say(value)}`, role: "img", tabindex: "-1",
      }));
    }
  }
  const rows = curves.flatMap((curve) => curve.x.map((x, place) => [curve.name, x, curve.y[place]]));
  return { svg, numbers: { columns: ["scheduler", `${measure}${time ? " (s)" : ""}`, "share of jobs"], rows } };
}

/**
 * The value that a share of the jobs does not exceed; null where so many did not finish.
 * @param {{x: number[], y: number[]}} curve @param {number} share
 */
export function quantile({ x, y }, share) {
  const place = y.findIndex((each) => each >= share - 1e-9);
  return place < 0 ? null : x[place];
}

/** @param {Curve} curve @param {(value: number) => string} say */
function inWords(curve, say) {
  const [median, tail] = [quantile(curve, 0.5), quantile(curve, 0.95)];
  return `${curve.name}, median ${median === null ? "not reached" : say(median)}, 95 % within ${tail === null ? "never" : say(tail)}`;
}

/** @param {Curve} curve @param {import("./axes.js").Axis} across @param {import("./axes.js").Axis} up */
function steps({ x, y }, across, up) {
  let path = "";
  x.forEach((value, place) => {
    const at = across.place(value).toFixed(1), height = up.place(y[place] * 100).toFixed(1);
    path += place ? `H${at}V${height}` : `M${at} ${up.place(0).toFixed(1)}V${height}`;
  });
  return path || "M0 0";
}
