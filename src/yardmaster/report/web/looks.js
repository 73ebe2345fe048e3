// How schedulers look in every chart of a page: by colour, dash and marker, never by colour alone.

import { category } from "./palette.js";

const DASHES = ["", "7 3", "2 3", "9 3 2 3", "12 4"];
const MARKERS = ["circle", "square", "triangle", "diamond", "cross"];

/** @typedef {{colour: string, dash: string, marker: string}} Look */

/**
 * The look of the n-th scheduler.
 * @param {number} n
 * @returns {Look}
 */
export function look(n) {
  // Eight colours and five dashes: forty lines before two look the same.
  return { colour: category(n), dash: DASHES[n % DASHES.length], marker: MARKERS[n % MARKERS.length] };
}

/**
 * The outline of a marker around a point.
 * @param {string} name @param {number} x @param {number} y @param {number} size
 */
export function markerPath(name, x, y, size) {
  const a = size, b = size * 0.86;
  switch (name) {
    case "square": return `M${x - b} ${y - b}h${2 * b}v${2 * b}h${-2 * b}z`;
    case "triangle": return `M${x} ${y - a}L${x + a} ${y + b}H${x - a}z`;
    case "downwards": return `M${x} ${y + a}L${x + a} ${y - b}H${x - a}z`;
    case "diamond": return `M${x} ${y - a * 1.2}L${x + a * 1.2} ${y}L${x} ${y + a * 1.2}L${x - a * 1.2} ${y}z`;
    case "cross": {
      const c = a * 0.38;
      return `M${x - a} ${y - c}H${x - c}V${y - a}H${x + c}V${y - c}H${x + a}V${y + c}H${x + c}V${y + a}H${x - c}V${y + c}H${x - a}z`;
    }
    default: return `M${x - a} ${y}a${a} ${a} 0 1 0 ${2 * a} 0a${a} ${a} 0 1 0 ${-2 * a} 0z`;
  }
}
