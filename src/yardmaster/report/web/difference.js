// Paired differences to a baseline: a dot, its interval, and on which side of zero it lies.

import { axis, bottomAxis, fitted, nameWidth, whisker } from "./axes.js";
import { reach, told } from "./bars.js";
import { chart } from "./chart.js";
import { s } from "./dom.js";
import { markerPath } from "./looks.js";

const ROW = 28;
const PERCENT = 0.01;

/**
 * @typedef {{name: string, mean: number | null, low: number | null, high: number | null, look: import("./looks.js").Look}} Difference
 * @typedef {{rows: Difference[], baseline: string, better: string, title: string}} Differences
 */

/**
 * Draw relative differences to a baseline with their 95 % intervals.
 * @param {HTMLElement} host @param {Differences} data
 * @param {import("./chart.js").Words} words
 */
export function difference(host, data, words) {
  return chart(host, data, words, draw);
}

/** @param {number} share */
function say(share) {
  const value = share / PERCENT;
  const text = Math.abs(value) < 9.95 ? Math.abs(value).toFixed(1) : Math.abs(value).toFixed(0);
  return `${Number(text) === 0 ? "" : value < 0 ? "−" : "+"}${text} %`;
}

/**
 * What an interval says: better or worse if all of it lies on one side of zero.
 * @param {{low: number | null, high: number | null}} row @param {string} better lower, higher or neither
 */
export function tone({ low, high }, better) {
  if (low === null || high === null || (low <= 0 && high >= 0) || better === "neither") return "unclear";
  return (high < 0) === (better === "lower") ? "better" : "worse";
}

/** @param {Differences} data @param {number} width */
function draw({ rows, baseline, better, title }, width) {
  const left = nameWidth(rows.map((row) => row.name), width);
  const box = { left, right: width - 74, top: 4, bottom: 4 + Math.max(rows.length, 1) * ROW, width };
  const [low, high] = reach(rows, PERCENT);
  const across = axis(low, high, [box.left + 6, box.right], { unit: " %", wanted: Math.max(2, Math.floor((box.right - box.left) / 58)) });
  across.ticks = spaced(across);
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${box.bottom + 42}`, role: "group",
    "aria-label": `${title} against ${baseline}. ${rows.map((row) => told(row, say)).join("; ")}`,
  }, bottomAxis(across, box, fitted(`against ${baseline}`, width)),
  s("line", { class: "zero", x1: across.place(0), x2: across.place(0), y1: box.top, y2: box.bottom }));
  rows.forEach((row, place) => {
    const y = box.top + place * ROW + ROW / 2;
    svg.append(s("text", { class: "name", x: box.left - 8, y: y + 4, "text-anchor": "end" }, fitted(row.name, left - 10)));
    if (row.mean !== null) svg.append(oneDot(row, row.mean, across, y, tone(row, better), box.right));
  });
  const numbers = rows.map((row) => [row.name, row.mean, row.low, row.high, tone(row, better)]);
  return { svg, numbers: { columns: ["scheduler", "relative difference", "low", "high", "verdict"], rows: numbers } };
}

/**
 * Ticks far enough apart for their words: every second one where there is no room for all, zero among them.
 * @param {import("./axes.js").Axis} across
 */
function spaced({ ticks, place }) {
  const gap = ticks.length > 1 ? place(ticks[1][0]) - place(ticks[0][0]) : Infinity;
  if (gap >= 7.5 * Math.max(...ticks.map(([, label]) => label.length))) return ticks;
  const zero = Math.max(ticks.findIndex(([value]) => value === 0), 0);
  return ticks.filter((_, n) => (n - zero) % 2 === 0);
}

/**
 * @param {Difference} row @param {number} mean @param {import("./axes.js").Axis} across @param {number} y
 * @param {string} verdict @param {number} edge
 */
function oneDot(row, mean, across, y, verdict, edge) {
  const within = (/** @type {number} */ value) => across.place(Math.min(Math.max(value / PERCENT, across.low), across.high));
  const words = `${told(row, say)}, ${verdict === "unclear" ? "no clear difference" : `clearly ${verdict}`}`;
  const parts = [];
  if (row.low !== null && row.high !== null) {
    const path = whisker(across, row.low / PERCENT, row.high / PERCENT, y, 5);
    parts.push(s("path", { class: "interval strong", d: path, stroke: row.look.colour }));
  }
  parts.push(s("path", { class: "dot", d: markerPath(row.look.marker, within(mean), y, 5), fill: row.look.colour }));
  return s("g", { class: "mark", role: "img", tabindex: "-1", "data-tip": words.replace(": ", "\n"), "aria-label": words },
    s("rect", { class: "catch", x: within(row.low ?? mean) - 8, y: y - 11, width: within(row.high ?? mean) - within(row.low ?? mean) + 16, height: 22 }),
    ...parts, s("text", { class: `value ${verdict}`, x: edge + 66, y: y + 4, "text-anchor": "end" }, say(mean)));
}
