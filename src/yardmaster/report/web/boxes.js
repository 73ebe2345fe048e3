// Boxes: how a value is spread within groups of jobs, one box for every scheduler.

import { axis, bottomAxis, fitted, nameWidth } from "./axes.js";
import { chart } from "./chart.js";
import { s } from "./dom.js";
import { legendRow } from "./legend.js";
import { count, duration, figure, several } from "./words.js";

const BOX = 12;
const GAP = 5;
const BETWEEN = 14;

/**
 * @typedef {{low: number, q1: number, median: number, q3: number, high: number, mean: number, jobs: number}} Box
 * @typedef {{name: string, look: import("./looks.js").Look}} Series
 * @typedef {{groups: {name: string, jobs: number}[], series: Series[], boxes: (Box | null)[][],
 *            measure: string, time: boolean}} Groups
 */

/**
 * Draw boxes from the first to the third quartile, lines from the 5th to the 95th percentile.
 * @param {HTMLElement} host @param {Groups} data
 * @param {import("./chart.js").Words} words
 */
export function boxes(host, data, words) {
  return chart(host, data, words, draw);
}

/** @param {Groups} data @param {number} width */
function draw({ groups, series, boxes: found, measure, time }, width) {
  const names = groups.map((group) => group.name);
  const left = Math.max(nameWidth(names, width), 84);
  const step = BOX + GAP, tall = series.length * step - GAP + BETWEEN;
  const box = { left, right: width - 14, top: 6, bottom: 6 + groups.length * tall };
  const known = found.flat().filter((each) => each !== null);
  const low = Math.max(1, Math.min(...known.map((each) => each.low), Infinity));
  const high = Math.max(low, ...known.map((each) => each.high));
  const across = axis(Number.isFinite(low) ? low : 1, high, [box.left, box.right], { log: true, time });
  const say = time ? duration : (/** @type {number} */ value) => `${figure(value)} ×`;
  const key = legendRow(series, width, box.bottom + 42);
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${box.bottom + 42 + key.height}`, role: "group",
    "aria-label": `${measure} by group. ${inWords(groups, series, found, say)}`,
  }, bottomAxis(across, box, measure), key.element);
  groups.forEach((group, row) => {
    const top = box.top + row * tall + BETWEEN / 2;
    if (row) svg.append(s("line", { class: "grid", x1: 0, x2: box.right, y1: top - BETWEEN / 2, y2: top - BETWEEN / 2 }));
    const middle = top + (tall - BETWEEN) / 2;
    svg.append(s("text", { class: "name", x: 2, y: middle + (series.length > 1 ? -1 : 4) }, fitted(group.name, left - 8)));
    if (series.length > 1) svg.append(s("text", { class: "under", x: 2, y: middle + 13 }, several(group.jobs, "job")));
    series.forEach((one, place) => {
      const each = found[row][place];
      if (each) svg.append(oneBox(each, one, group.name, across, top + place * step + BOX / 2, say));
    });
  });
  const rows = groups.flatMap((group, row) => series.map((one, place) => {
    const each = found[row][place];
    return [group.name, one.name, each?.jobs ?? 0, each?.low, each?.q1, each?.median, each?.q3, each?.high, each?.mean];
  }));
  return { svg, numbers: { columns: ["group", "scheduler", "jobs", "p5", "p25", "p50", "p75", "p95", "mean"], rows } };
}

/**
 * @param {Box} each @param {Series} one @param {string} group @param {import("./axes.js").Axis} across
 * @param {number} y @param {(value: number) => string} say
 */
function oneBox(each, one, group, across, y, say) {
  const [low, q1, median, q3, high] = [each.low, each.q1, each.median, each.q3, each.high].map(across.place);
  const { colour } = one.look;
  const told = `${one.name}, ${group}\nmedian ${say(each.median)}, half of the jobs ${say(each.q1)} to ${say(each.q3)}`
    + `\n5 % to 95 %: ${say(each.low)} to ${say(each.high)}, mean ${say(each.mean)}, ${count(each.jobs)} jobs`;
  return s("g", { class: "mark", role: "img", tabindex: "-1", "data-tip": told, "aria-label": told.replaceAll("\n", "; ") },
    s("rect", { class: "catch", x: low - 4, y: y - BOX / 2 - 2, width: Math.max(high - low, 4) + 8, height: BOX + 4 }),
    s("path", { class: "whisker", d: `M${low} ${y}H${high}M${low} ${y - 4}v8M${high} ${y - 4}v8`, stroke: colour }),
    s("rect", { class: "box", x: q1, y: y - BOX / 2, width: Math.max(q3 - q1, 1.5), height: BOX, fill: colour, stroke: colour }),
    s("line", { class: "median", x1: median, x2: median, y1: y - BOX / 2 - 1.5, y2: y + BOX / 2 + 1.5 }));
}

/** @param {Groups["groups"]} groups @param {Series[]} series @param {(Box | null)[][]} found @param {(value: number) => string} say */
function inWords(groups, series, found, say) {
  return groups.map((group, row) => `${group.name}: ${series.map((one, place) => {
    const each = found[row][place];
    return `${one.name} ${each ? `median ${say(each.median)}` : "no job finished"}`;
  }).join(", ")}`).join("; ");
}
