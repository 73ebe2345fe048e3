// Bars: an estimate for each of several things, with its interval.

import { axis, bottomAxis, fitted, nameWidth, signed, whisker } from "./axes.js";
import { chart } from "./chart.js";
import { s } from "./dom.js";

const ROW = 26;
const WIDEST_WHISKER = 1.6;

/**
 * `size`: base units in one unit of the axis (0.01 for percent). `tone`: better, worse or unclear.
 * @typedef {{name: string, mean: number | null, low: number | null, high: number | null, colour?: string, tone?: string, note?: string}} Bar
 * @typedef {{bars: Bar[], axis: string, unit: string, size: number, places?: number}} Estimates
 */

/**
 * Draw bars from zero, with lines over their 95 % intervals.
 * @param {HTMLElement} host @param {Estimates} data
 * @param {import("./chart.js").Words} words
 */
export function bars(host, data, words) {
  return chart(host, data, words, draw);
}

/** @param {Estimates} data @param {number} width */
function draw({ bars: rows, axis: title, unit, size }, width) {
  const left = nameWidth(rows.map((row) => row.name), width);
  const box = { left, right: width - 64, top: 4, bottom: 4 + rows.length * ROW };
  const [low, high] = reach(rows, size);
  const across = axis(low, high, [box.left, box.right], { wanted: Math.max(3, Math.floor((box.right - box.left) / 48)) });
  const say = (/** @type {number} */ value) => `${signed(value / size)}${unit ? ` ${unit}` : ""}`;
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${box.bottom + 42}`, role: "group", "aria-label": `${title}. ${rows.map((row) => told(row, say)).join("; ")}`,
  }, bottomAxis(across, box, title));
  rows.forEach((row, place) => {
    const y = box.top + place * ROW + ROW / 2;
    svg.append(s("text", { class: "name", x: box.left - 8, y: y + 4, "text-anchor": "end" }, fitted(row.name, left - 10)));
    if (row.mean !== null) svg.append(oneBar(row, row.mean, across, y, size, say));
  });
  svg.append(s("line", { class: "zero", x1: across.place(0), x2: across.place(0), y1: box.top, y2: box.bottom }));
  const numbers = rows.map((row) => [row.name, row.mean, row.low, row.high]);
  return { svg, numbers: { columns: ["name", "mean", "low", "high"], rows: numbers } };
}

/**
 * The ends of the axis; one interval out of all proportion must not press all bars into it.
 * @param {Bar[]} rows @param {number} size @returns {[number, number]}
 */
export function reach(rows, size) {
  const means = rows.map((row) => row.mean).filter((mean) => mean !== null);
  const most = Math.max(...means.map(Math.abs), 0) * WIDEST_WHISKER || 1;
  const ends = rows.flatMap((row) => [row.mean, row.low, row.high]).filter((end) => end !== null);
  const low = Math.max(Math.min(0, ...ends), -most), high = Math.min(Math.max(0, ...ends), most);
  return low === high ? [-1, 1] : [low / size, high / size];
}

/**
 * @param {Bar} row @param {number} mean @param {import("./axes.js").Axis} across @param {number} y
 * @param {number} size @param {(value: number) => string} say
 */
function oneBar(row, mean, across, y, size, say) {
  const zero = across.place(0), end = across.place(mean / size);
  const parts = [s("rect", {
    class: `bar ${row.tone ?? ""}`, x: Math.min(zero, end), y: y - 8, width: Math.max(Math.abs(end - zero), 1), height: 16,
    fill: row.colour ?? null,
  })];
  let right = Math.max(zero, end);
  if (row.low !== null && row.high !== null && row.high > row.low) {
    parts.push(/** @type {any} */ (s("path", { class: "interval", d: whisker(across, row.low / size, row.high / size, y, 4) })));
    right = Math.max(right, across.place(Math.min(row.high / size, across.high)));
  }
  return s("g", { class: "mark", role: "img", tabindex: "-1", "data-tip": told(row, say).replace(": ", "\n"), "aria-label": told(row, say) },
    ...parts, s("text", { class: "value", x: right + 6, y: y + 4 }, signed(mean / size)));
}

/** @param {Bar} row @param {(value: number) => string} say */
export function told(row, say) {
  if (row.mean === null) return `${row.name}: no value`;
  const interval = row.low === null || row.high === null ? "no interval" : `95 % interval ${say(row.low)} to ${say(row.high)}`;
  return `${row.name}: ${say(row.mean)}, ${interval}${row.note ? `, ${row.note}` : ""}`;
}
