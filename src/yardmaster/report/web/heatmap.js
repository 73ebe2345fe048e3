// A map: one number for every regime and scheduler, in colour and in figures.

import { chart } from "./chart.js";
import { s } from "./dom.js";
import { css, inkOn, ramp } from "./palette.js";
import { isDark } from "./theme.js";

const ROW = 21;
const NARROWEST = 44;
const BEHIND = [213, 94, 0], AHEAD = [0, 114, 178];
/** Gaps are coloured on a logarithmic scale from about this one on. */
const SMALLEST = 0.01;

/**
 * `kind`: `gap` is coloured in orange above and blue below zero, `value` on a ramp, the better the
 * darker. `size`: base units in one unit shown.
 * @typedef {{rows: string[], columns: string[], values: (number | null)[][], kind: "gap" | "value",
 *            better: string, unit: string, size: number, what: string}} Cells
 */

/**
 * Draw a map of numbers. The best of every row is underlined, so that it is found without colour.
 * @param {HTMLElement} host @param {Cells} data
 * @param {import("./chart.js").Words} words
 */
export function heatmap(host, data, words) {
  return chart(host, data, words, draw);
}

/** @param {Cells} data @param {number} width */
function draw(data, width) {
  const { rows, columns, values } = data;
  const longest = Math.max(0, ...rows.map((name) => name.length));
  const left = Math.min(longest * 6.4 + 12, Math.max(width * 0.4, 120));
  const names = columns.map((name) => cut(name, 26));
  const even = (width - left) / Math.max(columns.length, 1);
  // Names lean to the right: the last one needs room beyond its column.
  const right = Math.max(8, (names.at(-1) ?? "").length * 5.8 - even / 2);
  const wide = Math.max((width - left - right) / Math.max(columns.length, 1), NARROWEST);
  const slant = Math.min(Math.max(0, ...names.map((name) => name.length)) * 4.2 + 20, 130);
  const full = left + wide * columns.length + right;
  const paint = painter(data);
  const say = (/** @type {number | null} */ value) => (value === null ? "no value" : `${short(value / data.size)}${data.unit ? ` ${data.unit}` : ""}`);
  const svg = s("svg", {
    viewBox: `0 0 ${full} ${slant + rows.length * ROW + 8}`, role: "group", class: full > width + 1 ? "wide" : null,
    "aria-label": `${data.what}: ${rows.length} rows, ${columns.length} columns. ${bestInWords(data)}`,
  });
  if (full > width + 1) svg.style.minWidth = `${full}px`;
  names.forEach((name, place) => {
    const x = left + (place + 0.5) * wide, y = slant - 8;
    svg.append(s("text", { class: "name", x, y, transform: `rotate(-34 ${x} ${y})` }, name));
  });
  rows.forEach((name, row) => {
    const y = slant + row * ROW;
    const best = bestOf(values[row], data.better);
    svg.append(s("text", { class: "name", x: left - 8, y: y + 15, "text-anchor": "end" }, cut(name, Math.floor((left - 10) / 6.2))));
    values[row].forEach((value, column) => {
      const [fill, ink] = paint(value, row);
      const isBest = value !== null && value === best;
      const words = `${name}, ${columns[column]}\n${say(value)}${isBest ? ", the best of this row" : ""}`;
      svg.append(s("g", { class: "mark", role: "img", tabindex: "-1", "data-row": row, "data-column": column, "data-tip": words, "aria-label": words.replace("\n", ": ") },
        s("rect", { x: left + column * wide, y, width: wide - 1, height: ROW - 1, rx: 2, fill }),
        s("text", { class: isBest ? "cell best" : "cell", x: left + (column + 0.5) * wide, y: y + 15, "text-anchor": "middle", fill: ink }, value === null ? "–" : short(value / data.size))));
    });
  });
  const numbers = rows.flatMap((name, row) => columns.map((column, place) => [name, column, values[row][place]]));
  return { svg, numbers: { columns: ["row", "scheduler", data.what], rows: numbers } };
}

/** @param {string} text @param {number} most */
function cut(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** @param {number} value */
function short(value) {
  const size = Math.abs(value);
  const places = size >= 9.95 || size < 0.005 ? 0 : size >= 0.995 ? 1 : 2;
  const text = value.toFixed(places).replace("-", "−");
  return Number(text.replace("−", "-")) === 0 ? "0" : text;
}

/** @param {(number | null)[]} row @param {string} better */
function bestOf(row, better) {
  const known = row.filter((value) => value !== null);
  if (!known.length || better === "neither") return null;
  return better === "higher" ? Math.max(...known) : Math.min(...known);
}

/** @param {Cells} data */
function bestInWords({ columns, values, better }) {
  if (better === "neither") return "";
  const wins = columns.map((name, column) =>
    `${name} in ${values.filter((row) => row[column] !== null && row[column] === bestOf(row, better)).length}`);
  return `Rows in which each is the best: ${wins.join(", ")}.`;
}

/**
 * The colours of a cell: paper and ink.
 * @param {Cells} data
 * @returns {(value: number | null, row: number) => [string, string]}
 */
function painter({ kind, values, better }) {
  if (kind === "gap") {
    const reach = Math.max(...values.flat().map((value) => Math.log1p(Math.abs(value ?? 0) / SMALLEST)), 1);
    const paper = isDark() ? [26, 29, 33] : [255, 255, 255];
    return (value) => {
      const share = (Math.log1p(Math.abs(value ?? 0) / SMALLEST) / reach) * 0.75;
      const colour = (value ?? 0) < 0 ? AHEAD : BEHIND;
      const mixed = /** @type {[number, number, number]} */ (paper.map((from, i) => Math.round(from + (colour[i] - from) * share)));
      return [css(mixed), inkOn(mixed)];
    };
  }
  // Each row on its own scale: a regime is hard or easy for all, and who is better in it is asked.
  return (value, row) => {
    const known = values[row].filter((each) => each !== null);
    const low = Math.min(...known), high = Math.max(...known);
    if (value === null) return ["transparent", "var(--ink)"];
    const share = high > low ? (value - low) / (high - low) : 0.5;
    const colour = ramp(better === "higher" ? share : 1 - share);
    return [css(colour), inkOn(colour)];
  };
}
