// A star: what each of several disturbances costs every scheduler.

import { fitted } from "./axes.js";
import { chart } from "./chart.js";
import { s } from "./dom.js";
import { legendRow } from "./legend.js";
import { markerPath } from "./looks.js";

/** Changes up to about this size are drawn to scale, larger ones ever closer together. */
const FINEST = 0.01;
const RINGS = [-0.5, -0.1, -0.02, 0, 0.02, 0.1, 0.5, 2, 10, 50];
const FEWEST_RAYS = 3;

/**
 * @typedef {{name: string, look: import("./looks.js").Look, values: (number | null)[], low: (number | null)[], high: (number | null)[]}} Star
 * @typedef {{rays: string[], stars: Star[], what: string}} Stars
 */

/**
 * Draw relative changes as stars; further out is worse, the strong ring is no change.
 * @param {HTMLElement} host @param {Stars} data
 * @param {import("./chart.js").Words} words
 */
export function radar(host, data, words) {
  return chart(host, data, words, draw);
}

/** Whether there are rays enough for a star. @param {Stars} data */
export function isStar({ rays }) {
  return rays.length >= FEWEST_RAYS;
}

/** @param {number} change */
function stretched(change) {
  return Math.sign(change) * Math.log1p(Math.abs(change) / FINEST);
}

/** @param {number} share */
function say(share) {
  const value = share * 100;
  return `${value < 0 ? "−" : "+"}${Math.abs(value) < 9.95 ? Math.abs(value).toFixed(1) : Math.abs(value).toFixed(0)} %`;
}

/** @param {Stars} data @param {number} width */
function draw({ rays, stars, what }, width) {
  const wide = Math.min(width, 640), tall = Math.min(wide, 440);
  const centre = [width / 2, tall / 2 + 6];
  const words = Math.min(150, wide * 0.24);
  const radius = Math.min(wide / 2 - words, tall / 2 - 34);
  const key = legendRow(stars, width, tall + 16);
  const known = stars.flatMap((star) => star.values).filter((value) => value !== null).map(stretched);
  const floor = Math.min(0, ...known) - 0.7, ceiling = Math.max(stretched(0.02), ...known) + 0.25;
  const out = (/** @type {number} */ change) => ((stretched(change) - floor) / (ceiling - floor)) * radius;
  const at = (/** @type {number} */ ray, /** @type {number} */ distance) => {
    const angle = (2 * Math.PI * ray) / rays.length - Math.PI / 2;
    return [centre[0] + Math.cos(angle) * distance, centre[1] + Math.sin(angle) * distance];
  };
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${tall + 16 + key.height}`, role: "group",
    "aria-label": `${what}. ${stars.map((star) => `${star.name}: ${rays.map((ray, place) => `${ray} ${star.values[place] === null ? "no value" : say(star.values[place])}`).join(", ")}`).join("; ")}`,
  });
  for (const ring of RINGS.filter((each) => stretched(each) > floor && stretched(each) <= ceiling)) {
    svg.append(s("circle", { class: ring === 0 ? "zero ring" : "grid ring", cx: centre[0], cy: centre[1], r: out(ring) }),
      s("text", { class: "under", x: centre[0] + 3, y: centre[1] - out(ring) - 2 }, ring === 0 ? "0" : say(ring)));
  }
  rays.forEach((ray, place) => {
    const [x, y] = at(place, radius), [tx, ty] = at(place, radius + 14);
    const side = Math.abs(tx - centre[0]) < 12 ? "middle" : tx > centre[0] ? "start" : "end";
    svg.append(s("line", { class: "grid", x1: centre[0], y1: centre[1], x2: x, y2: y }),
      s("text", { class: "name", x: tx, y: ty + 4, "text-anchor": side }, fitted(ray, words - 8)));
  });
  for (const star of stars) {
    const corners = star.values.map((value, place) => (value === null ? null : at(place, out(value))));
    const there = corners.filter((corner) => corner !== null);
    svg.append(s("path", { class: "curve", d: `M${there.map((corner) => corner.map((n) => n.toFixed(1)).join(" ")).join("L")}z`, stroke: star.look.colour, "stroke-dasharray": star.look.dash || null }));
  }
  for (const star of stars) {
    star.values.forEach((value, place) => {
      if (value === null) return;
      const [x, y] = at(place, out(value));
      const [low, high] = [star.low[place], star.high[place]];
      const ends = low === null || high === null ? "" : `, 95 % interval ${say(low)} to ${say(high)}`;
      const words = `${star.name}\n${rays[place]}: ${say(value)}${ends}`;
      svg.append(s("path", { class: "mark", d: markerPath(star.look.marker, x, y, 4), fill: star.look.colour, role: "img", tabindex: "-1", "data-tip": words, "aria-label": words.replace("\n", ", ") }));
    });
  }
  svg.append(key.element);
  const rows = stars.flatMap((star) => rays.map((ray, place) => [star.name, ray, star.values[place], star.low[place], star.high[place]]));
  return { svg, numbers: { columns: ["scheduler", "perturbation", "relative change", "low", "high"], rows } };
}
