// What the colour of a bar means: one colour per job, and the legend that says so.

import { CATEGORIES, OTHER, css, ramp, rgb } from "./palette.js";
import { duration, figure } from "./words.js";

/** @typedef {import("./schedule_data.js").ScheduleData} ScheduleData */
/**
 * Colours of jobs as pixels, and what they mean.
 * @typedef {{title: string, pixels: Uint32Array, legend: {colour: string, label: string}[]}} Colours
 */

/** What bars can be coloured by. */
export const COLOURINGS = [
  ["tenant", "Tenant"], ["priority", "Priority"], ["kind", "Kind of job"], ["wait", "Wait"],
  ["slowdown", "Slowdown"], ["size", "GPUs asked for"],
];
const NAMED = CATEGORIES.length - 1;

/**
 * A colour as one number, the way a canvas keeps it.
 * @param {[number, number, number]} rgb
 */
export function pixel([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/**
 * What bars can be coloured by in this schedule; there is no sense in one colour for all.
 * @param {ScheduleData} data
 */
export function usefulColourings(data) {
  const { about, column } = data;
  const several = (/** @type {ArrayLike<number>} */ values) => {
    for (let row = 1; row < values.length; row += 1) if (values[row] !== values[0]) return true;
    return false;
  };
  return COLOURINGS.filter(([name]) => {
    if (name === "tenant") return about.tenants.length > 1;
    if (name === "kind") return about.kinds.length > 1;
    if (name === "priority") return several(column.job_priority);
    return true;
  });
}

/**
 * @param {ScheduleData} data @param {string} by one of `COLOURINGS`
 * @returns {Colours}
 */
export function coloursOf(data, by) {
  const { about, column } = data;
  switch (by) {
    case "tenant":
      return byName("Tenant", column.job_tenant, about.tenants);
    case "kind":
      return byName("Kind of job", column.job_kind, about.kinds);
    case "priority":
      return byRank("Priority", column.job_priority);
    case "wait":
      return byRamp("Wait", column.job_wait, duration, 1);
    case "slowdown":
      return byRamp("Bounded slowdown", column.job_slowdown, (value) => `${figure(value)} ×`, 1);
    default:
      return byRamp("GPUs asked for", column.job_gpus, figure, 1);
  }
}

/**
 * The most frequent names in colours of their own, the rest in grey.
 * @param {string} title @param {Int16Array} codes @param {string[]} names
 * @returns {Colours}
 */
function byName(title, codes, names) {
  const counts = new Uint32Array(names.length);
  let missing = 0;
  for (const code of codes) {
    if (code >= 0) counts[code] += 1;
    else missing += 1;
  }
  const ranked = [...counts.keys()].sort((a, b) => counts[b] - counts[a] || a - b);
  const named = names.length <= CATEGORIES.length ? ranked : ranked.slice(0, NAMED);
  // By name, not by rank: the same tenant has the same colour in two schedules of the same jobs.
  named.sort((a, b) => (names[a] < names[b] ? -1 : 1));
  const table = new Uint32Array(names.length + 1).fill(pixel(rgb(OTHER)));
  named.forEach((code, place) => { table[code] = pixel(rgb(CATEGORIES[place])); });
  const pixels = new Uint32Array(codes.length);
  for (let row = 0; row < codes.length; row += 1) pixels[row] = table[codes[row] >= 0 ? codes[row] : names.length];
  const legend = named.map((code, place) => ({ colour: CATEGORIES[place], label: names[code] }));
  const rest = names.length - named.length;
  if (rest || missing) legend.push({ colour: OTHER, label: rest ? `${rest} others` : "not said" });
  return { title, pixels, legend };
}

/**
 * Few distinct numbers, each a step of the ramp.
 * @param {string} title @param {Float32Array} values
 * @returns {Colours}
 */
function byRank(title, values) {
  const distinct = [...new Set(values)].filter(Number.isFinite).sort((a, b) => a - b);
  if (distinct.length > 8) return byRamp(title, values, figure, 0);
  const shares = new Map(distinct.map((value, place) => [value, distinct.length > 1 ? place / (distinct.length - 1) : 0.5]));
  const pixels = Uint32Array.from(values, (value) => pixel(shares.has(value) ? ramp(shares.get(value) ?? 0) : rgb(OTHER)));
  const legend = distinct.map((value) => ({ colour: css(ramp(shares.get(value) ?? 0)), label: figure(value) }));
  return { title, pixels, legend };
}

/**
 * From little to much; logarithmic above `bend`, since a few jobs wait a thousand times longer.
 * @param {string} title @param {ArrayLike<number>} values
 * @param {(value: number) => string} words @param {number} bend 0: not logarithmic
 * @returns {Colours}
 */
function byRamp(title, values, words, bend) {
  const known = Float64Array.from(values).filter(Number.isFinite).sort();
  const low = known[0] ?? 0;
  const high = known[Math.floor((known.length - 1) * 0.99)] ?? 1;
  const bent = (/** @type {number} */ value) => (bend ? Math.log((value - low) / bend + 1) : value - low);
  const top = bent(high) || 1;
  const steps = Array.from({ length: 256 }, (_, step) => pixel(ramp(step / 255)));
  const unknown = pixel(rgb(OTHER));
  const pixels = new Uint32Array(values.length);
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row];
    pixels[row] = Number.isFinite(value) ? steps[Math.round(Math.min(Math.max(bent(value) / top, 0), 1) * 255)] : unknown;
  }
  const back = (/** @type {number} */ share) => (bend ? (Math.exp(share * top) - 1) * bend + low : share * top + low);
  const legend = [0, 0.25, 0.5, 0.75, 1].map((share) => ({
    colour: css(ramp(share)), label: share === 1 ? `≥ ${words(back(1))}` : words(back(share)),
  }));
  if (known.length < values.length) legend.push({ colour: OTHER, label: "unknown" });
  return { title, pixels, legend };
}
