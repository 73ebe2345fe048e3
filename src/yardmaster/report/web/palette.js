// Colours that people with any kind of colour vision can tell apart, on light and on dark.

/** Okabe and Ito's palette without its black, and with a yellow that shows on white. */
export const CATEGORIES = [
  "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#7F7F7F",
];

/** What is none of the categories: the many small ones, the unknown. */
export const OTHER = "#9AA0A6";

/** A ramp from little to much, light and dark apart in every kind of colour vision (after cividis). */
const RAMP = [
  [0, 48, 104], [45, 74, 109], [87, 101, 112], [124, 123, 120], [163, 146, 117], [206, 174, 100],
  [253, 213, 68],
];

/**
 * The colour of the n-th category; they repeat after the eighth.
 * @param {number} n
 */
export function category(n) {
  return CATEGORIES[n % CATEGORIES.length];
}

/**
 * A colour of the ramp.
 * @param {number} share 0 (little) … 1 (much)
 * @returns {[number, number, number]} red, green, blue, 0 … 255
 */
export function ramp(share) {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const low = Math.min(Math.floor(place), RAMP.length - 2);
  const rest = place - low;
  const mixed = RAMP[low].map((from, i) => Math.round(from + (RAMP[low + 1][i] - from) * rest));
  return [mixed[0], mixed[1], mixed[2]];
}

/** @param {[number, number, number]} rgb */
export function css([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}

/**
 * @param {string} hex such as #0072B2
 * @returns {[number, number, number]}
 */
export function rgb(hex) {
  const value = Number.parseInt(hex.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/**
 * Black or white, whichever is easier to read on a colour.
 * @param {[number, number, number]} rgb
 */
export function inkOn([red, green, blue]) {
  return red * 0.299 + green * 0.587 + blue * 0.114 > 140 ? "#111" : "#fff";
}
