// Several schedules of the same jobs one above the other: one stretch of time, one job for all.

import { fill, h } from "./dom.js";
import { gantt } from "./gantt.js";
import { usefulColourings } from "./gantt_colours.js";
import { sample } from "./legend.js";
import { timeAxis } from "./strips.js";
import { TimeWindow } from "./time_window.js";

const COMFORTABLE_PX = 270;
const TALLEST_PX = 420;

/**
 * @typedef {import("./schedule_data.js").ScheduleData} ScheduleData
 * @typedef {{name: string, look: import("./looks.js").Look, schedule: Promise<ScheduleData>}} Side
 */

/**
 * Draw schedules that move together; a job that is picked in one is picked in all.
 * @param {HTMLElement} host @param {Side[]} sides @param {{onJob?: (row: number) => void, heading?: string}} options
 * @returns {{destroy: () => void, select: (row: number) => void}} `select` shows a job in all of them
 */
export function gantts(host, sides, { onJob, heading = "h3" } = {}) {
  let isGone = false;
  /** @type {{destroy: () => void, select?: (row: number | null, reveal?: boolean) => void}[]} */
  const parts = [];
  fill(host, h("p", { class: "muted", role: "status" }, "Loading schedules …"));
  // A schedule that cannot be had leaves its place to a sentence, and the others where they are.
  Promise.allSettled(sides.map((side) => side.schedule)).then((results) => {
    if (isGone) return;
    const had = sides.flatMap((side, n) => { const result = results[n]; return result.status === "fulfilled" ? [{ side, data: result.value }] : []; });
    const failed = sides.flatMap((side, n) => { const result = results[n]; return result.status === "rejected" && result.reason?.name !== "AbortError" ? [{ side, error: result.reason }] : []; });
    if (had.length) parts.push(...drawn(host, had.map(({ side }) => side), had.map(({ data }) => data), heading, onJob));
    else fill(host);
    host.append(...failed.map(({ side, error }) => h("p", { class: "problem", role: "alert" }, `${side.name}: ${error instanceof Error ? error.message : String(error)}`)));
  });
  return {
    select(row) {
      parts.forEach((each) => each.select?.(row, true));
    },
    destroy() {
      isGone = true;
      for (const each of parts) each.destroy();
    },
  };
}

/**
 * @param {HTMLElement} host @param {Side[]} sides @param {ScheduleData[]} schedules
 * @param {string} heading @param {((row: number) => void) | undefined} onJob
 */
function drawn(host, sides, schedules, heading, onJob) {
  const spans = schedules.map(({ about }) => about.horizon_s);
  const window = new TimeWindow(Math.min(...spans.map(([begin]) => begin)), Math.max(...spans.map(([, end]) => end)));
  const by = usefulColourings(schedules[0])[0][0];
  const legend = h("ul", { class: "legend" });
  const places = sides.map(() => h("div", { class: "gantt-place" }));
  const axis = h("div", { class: "gantt-axis" });
  fill(host, tools(window, schedules[0], by, (next) => {
    charts.forEach((chart) => chart.colourBy(next));
    showLegend();
  }), ...sides.map((side, n) => h("figure", { class: "card" }, h(heading === "h4" ? "h4" : "h3", {}, sample(side.look), side.name), places[n])), axis, legend);
  let isPicking = false;
  /** @param {number | null} row */
  const pick = (row) => {
    if (isPicking) return;
    isPicking = true;
    charts.forEach((chart) => chart.select(row));
    isPicking = false;
    if (row !== null) onJob?.(row);
  };
  places.forEach((place, n) => { place.style.height = `${heightOf(schedules[n])}px`; });
  const charts = schedules.map((data, n) => gantt(places[n], data, { window, colourBy: by, label: `Schedule of ${sides[n].name}`, onSelect: pick }));
  const showLegend = () => fill(legend, ...charts[0].legend().legend.map(({ colour, label }) => {
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = colour;
    return h("li", {}, swatch, label);
  }));
  showLegend();
  return [...charts, timeAxis(axis, { window, begins: schedules[0].about.begins })];
}

/**
 * As high as the rows are when each is a whole number of pixels; taller clusters can be scrolled.
 * @param {ScheduleData} data
 */
function heightOf({ about, column }) {
  const row = Math.min(Math.max(Math.floor(COMFORTABLE_PX / about.gpus), 1), 14);
  return Math.min(Math.max(about.gpus * row + column.node_gpus.length * 2, 90), TALLEST_PX);
}

/**
 * @param {TimeWindow} window @param {ScheduleData} data @param {string} by @param {(by: string) => void} change
 */
function tools(window, data, by, change) {
  const button = (/** @type {string} */ label, /** @type {string} */ words, /** @type {() => void} */ action) =>
    h("button", { type: "button", "aria-label": words, title: words, onclick: action }, label);
  return h("div", { class: "controls gantt-tools" },
    h("label", {}, "Colours show", h("select", { onchange: (/** @type {any} */ event) => change(event.target.value) },
      ...usefulColourings(data).map(([name, words]) => h("option", { value: name, selected: name === by ? true : null }, words)))),
    h("span", { class: "row" }, button("−", "Further away", () => window.zoom(1.6)), button("+", "Closer", () => window.zoom(0.625)),
      button("←", "Earlier", () => window.pan(-0.3)), button("→", "Later", () => window.pan(0.3)), button("All", "All of the time", () => window.reset())));
}
