// Numbers as people say them.

const UNITS = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];

/**
 * A span of time in its largest unit, such as "3.2 h".
 * @param {number | null | undefined} seconds
 */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const size = Math.abs(seconds);
  for (const [length, unit] of /** @type {[number, string][]} */ (UNITS)) {
    if (size >= length) return `${figure(seconds / length)} ${unit}`;
  }
  return size === 0 ? "0 s" : size < 0.01 ? "< 0.01 s" : `${seconds.toFixed(2)} s`;
}

/**
 * A number with three figures.
 * @param {number | null | undefined} value
 */
export function figure(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value)) return count(value);
  if (size >= 1000) return count(Math.round(value));
  if (size < 1) return String(Number(value.toPrecision(3)));
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

/** @param {number} value */
export function count(value) {
  return value.toLocaleString("en").replaceAll(",", "\u202f");
}

/** @param {number | null | undefined} share */
export function percent(share) {
  return share === null || share === undefined || !Number.isFinite(share) ? "–" : `${(share * 100).toFixed(1)} %`;
}

/**
 * How long ago, such as "5 min ago".
 * @param {number} time_s seconds since 1970
 * @param {number} [now_s]
 */
export function ago(time_s, now_s = Date.now() / 1000) {
  const past = now_s - time_s;
  if (past < 5) return "just now";
  const [length, unit] = /** @type {[number, string][]} */ (UNITS).find(([size]) => past >= size) ?? [1, "s"];
  return `${Math.floor(past / length)} ${unit} ago`;
}

/**
 * "1 job", "2 jobs".
 * @param {number} n @param {string} word
 */
export function several(n, word) {
  return `${count(n)} ${word}${n === 1 ? "" : "s"}`;
}
