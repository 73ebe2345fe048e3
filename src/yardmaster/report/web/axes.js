// Axes of charts: logarithmic and linear ones, their lines, ticks and words.

import { s } from "./dom.js";
import { linear, ticks } from "./scales.js";
import { figure } from "./words.js";

const TIMES = /** @type {[number, string][]} */ ([
  [1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [3_600, "1 h"], [36_000, "10 h"],
  [86_400, "1 d"], [864_000, "10 d"], [8_640_000, "100 d"], [86_400_000, "1000 d"],
]);
const MORE_TIMES = /** @type {[number, string][]} */ ([
  [2, "2 s"], [5, "5 s"], [30, "30 s"], [120, "2 min"], [300, "5 min"], [1_800, "30 min"],
  [7_200, "2 h"], [18_000, "5 h"], [172_800, "2 d"], [432_000, "5 d"], [2_592_000, "30 d"],
]);

/** A letter of an axis's title, on average. */
const TITLE_PX = 6.2;

/** @typedef {{place: (value: number) => number, ticks: [number, string][], low: number, high: number}} Axis */

/**
 * An axis from the least to the largest value, in pixels.
 * @param {number} low @param {number} high @param {[number, number]} range
 * @param {{log?: boolean, time?: boolean, unit?: string, wanted?: number}} kind
 * @returns {Axis}
 */
export function axis(low, high, range, { log = false, time = false, unit = "", wanted = 5 } = {}) {
  if (!log) {
    const found = ticks(low, high, wanted);
    const step = found.length > 1 ? found[1] - found[0] : Math.abs(found[0]) || 1;
    const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const label = (/** @type {number} */ value) => `${places ? value.toFixed(places).replace("-", "−") : signed(value)}${unit}`;
    return { place: linear([low, high], range), ticks: found.map((tick) => [tick, label(tick)]), low, high };
  }
  if (high / low < 4) [low, high] = [low / 1.6, high * 1.6];
  const scale = linear([Math.log(low), Math.log(high)], range);
  const place = (/** @type {number} */ value) => scale(Math.log(Math.max(value, low)));
  const inside = (/** @type {[number, string]} */ [tick]) => tick >= low * 0.999 && tick <= high * 1.001;
  let found = time ? TIMES.filter(inside) : powers(low, high);
  if (time && found.length < 3) found = [...TIMES, ...MORE_TIMES].sort((a, b) => a[0] - b[0]).filter(inside);
  return { place, ticks: apart(found, place, time ? 46 : 34), low, high };
}

/** @param {number} low @param {number} high @returns {[number, string][]} */
function powers(low, high) {
  const found = [];
  const steps = Math.log10(high / low) < 2.2 ? [1, 2, 5] : [1];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of steps) {
      const value = Number((step * 10 ** power).toPrecision(6));
      if (value >= low * 0.999 && value <= high * 1.001) found.push(/** @type {[number, string]} */ ([value, figure(value)]));
    }
  }
  return found;
}

/**
 * Leave out ticks whose words would overlap.
 * @param {[number, string][]} found @param {(value: number) => number} place @param {number} least
 */
function apart(found, place, least) {
  /** @type {[number, string][]} */
  const kept = [];
  for (const tick of found) {
    const last = kept.at(-1);
    if (!last || Math.abs(place(tick[0]) - place(last[0])) >= least) kept.push(tick);
  }
  return kept;
}

/** @param {number} value */
export function signed(value) {
  return figure(value).replace("-", "−");
}

/**
 * Draw an axis below a chart, with lines upwards.
 * `width`: of the picture, where it is known: a title that is wider than the axis stays within it.
 * @param {Axis} axis @param {{top: number, bottom: number, left: number, right: number, width?: number}} box @param {string} title
 */
export function bottomAxis(axis, box, title) {
  const half = (title.length * TITLE_PX) / 2;
  const middle = (box.left + box.right) / 2;
  const x = box.width === undefined ? middle : Math.max(half, Math.min(middle, box.width - half));
  return s("g", { class: "axis", "aria-hidden": "true" },
    ...axis.ticks.map(([value]) => s("line", {
      class: "grid", x1: axis.place(value), x2: axis.place(value), y1: box.top, y2: box.bottom,
    })),
    s("line", { class: "edge", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
    ...axis.ticks.map(([value, label]) => s("text", { x: axis.place(value), y: box.bottom + 16, "text-anchor": "middle" }, label)),
    s("text", { class: "title", x, y: box.bottom + 33, "text-anchor": "middle" }, title));
}

/**
 * Draw an axis left of a chart, with lines to the right.
 * @param {Axis} axis @param {{top: number, bottom: number, left: number, right: number}} box
 */
export function leftAxis(axis, box) {
  return s("g", { class: "axis", "aria-hidden": "true" },
    ...axis.ticks.map(([value]) => s("line", {
      class: "grid", x1: box.left, x2: box.right, y1: axis.place(value), y2: axis.place(value),
    })),
    ...axis.ticks.map(([value, label]) => s("text", { x: box.left - 6, y: axis.place(value) + 4, "text-anchor": "end" }, label)));
}

/**
 * The path of an interval: a line with caps at its ends, or arrows where it goes on beyond the axis.
 * @param {Axis} axis @param {number} low @param {number} high in units of the axis
 * @param {number} y @param {number} half height of the caps
 */
export function whisker(axis, low, high, y, half) {
  const within = (/** @type {number} */ value) => Math.min(Math.max(value, axis.low), axis.high);
  const [a, b] = [axis.place(within(low)), axis.place(within(high))];
  const left = low < axis.low ? `M${a + half} ${y - half}L${a} ${y}L${a + half} ${y + half}` : `M${a} ${y - half}v${2 * half}`;
  const right = high > axis.high ? `M${b - half} ${y - half}L${b} ${y}L${b - half} ${y + half}` : `M${b} ${y - half}v${2 * half}`;
  return `M${a} ${y}H${b}${left}${right}`;
}

/**
 * Cut a name that does not fit in its middle, with an ellipsis: names of one origin differ at their ends.
 * @param {string} text @param {number} width_px
 */
export function fitted(text, width_px) {
  const most = Math.max(4, Math.floor(width_px / 7));
  if (text.length <= most) return text;
  const end = Math.ceil((most - 1) * 0.6);
  return `${text.slice(0, most - 1 - end)}…${text.slice(text.length - end)}`;
}

/**
 * How wide the names left of a chart may be: as wide as they are, up to a share of the chart.
 * @param {string[]} names @param {number} width_px
 */
export function nameWidth(names, width_px) {
  const longest = Math.max(0, ...names.map((name) => name.length));
  return Math.min(longest * 7 + 16, width_px * 0.42);
}
