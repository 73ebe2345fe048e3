// Several schedules of the same jobs one above the other: one stretch of time, one job for all.

import { fill, h } from "./dom.js";
import { gantt } from "./gantt.js";
import { usefulColourings } from "./gantt_colours.js";
import { sample } from "./legend.js";
import { timeAxis } from "./strips.js";
import { TimeWindow } from "./time_window.js";

const COMFORTABLE_PX = 270;
const TALLEST_PX = 420;
/** Schedules that arrive within this time are drawn at once. */
const TOGETHER_MS = 300;

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
  let row = /** @type {number | null} */ (null);
  let pending = 0;
  /** @type {Drawn | null} */
  let made = null;
  /** @type {(ScheduleData | undefined)[]} */
  const had = sides.map(() => undefined);
  /** @type {string[]} */
  const problems = [];
  const waiting = () => sides.length - had.filter(Boolean).length - problems.length;
  const pick = (/** @type {number | null} */ next) => {
    row = next;
    if (next !== null) onJob?.(next);
  };

  /** Draw what has arrived; the others follow, and nobody waits for the slowest. */
  function redraw() {
    pending = 0;
    if (isGone) return;
    const view = made && /** @type {[number, number]} */ ([made.window.from, made.window.to]);
    const isWhole = !made || made.window.span >= made.window.last - made.window.first;
    made?.parts.forEach((each) => each.destroy());
    const here = sides.flatMap((side, n) => { const data = had[n]; return data ? [{ side, data }] : []; });
    if (here.length) made = drawn(host, here.map(({ side }) => side), here.map(({ data }) => data), { heading, row, pick });
    else fill(host);
    if (made && view && !isWhole) made.window.set(...view);
    if (waiting()) host.append(h("p", { class: "muted", role: "status" }, here.length ? `${waiting()} of ${sides.length} schedules are still being made …` : "Loading schedules …"));
    // A schedule that cannot be had leaves a sentence, and the others where they are.
    host.append(...problems.map((text) => h("p", { class: "problem", role: "alert" }, text)));
    host.setAttribute("aria-busy", String(waiting() > 0));
  }

  sides.forEach((side, n) => side.schedule.then((data) => { had[n] = data; }, (error) => {
    if (error?.name === "AbortError") isGone = true;
    problems.push(`${side.name}: ${error instanceof Error ? error.message : String(error)}`);
  }).then(() => {
    clearTimeout(pending);
    pending = setTimeout(redraw, waiting() ? TOGETHER_MS : 0);
  }));
  redraw();
  return {
    select(next) {
      row = next;
      made?.parts.forEach((each) => each.select?.(next, true));
    },
    destroy() {
      isGone = true;
      made?.parts.forEach((each) => each.destroy());
    },
  };
}

/** @typedef {{window: TimeWindow, parts: {destroy: () => void, select?: (row: number | null, reveal?: boolean) => void}[]}} Drawn */

/**
 * @param {HTMLElement} host @param {Side[]} sides @param {ScheduleData[]} schedules
 * @param {{heading: string, row: number | null, pick: (row: number | null) => void}} options `row`: the job that is picked
 * @returns {Drawn}
 */
function drawn(host, sides, schedules, { heading, row: first, pick: told }) {
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
    told(row);
  };
  places.forEach((place, n) => { place.style.height = `${heightOf(schedules[n])}px`; });
  const charts = schedules.map((data, n) => gantt(places[n], data, { window, colourBy: by, label: `Schedule of ${sides[n].name}`, onSelect: pick }));
  const showLegend = () => fill(legend, ...charts[0].legend().legend.map(({ colour, label }) => {
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = colour;
    return h("li", {}, swatch, label);
  }));
  showLegend();
  if (first !== null) {
    isPicking = true;
    charts.forEach((chart) => chart.select(first));
    isPicking = false;
  }
  return { window, parts: [...charts, timeAxis(axis, { window, begins: schedules[0].about.begins })] };
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
