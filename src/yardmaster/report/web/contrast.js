// Schedules of the same jobs side by side: differences, distributions, groups, and single jobs.

import { boxes } from "./boxes.js";
import { cdf } from "./cdf.js";
import { difference } from "./difference.js";
import { fill, h } from "./dom.js";
import { csvText, save } from "./download.js";
import { choices, sample } from "./legend.js";
import { lives } from "./life.js";
import { look } from "./looks.js";
import { CATEGORIES } from "./palette.js";
import { jobId } from "./schedule_data.js";
import { count, duration, figure, several } from "./words.js";

const MOST_GANTTS = 4;
/** The grey of the baseline in figures, hardly another than the eighth category. */
const BASELINE = "#808080";

/**
 * `schedule`: reads the schedule of a side; rejects with a sentence if there is none.
 * `gantts`: draws schedules one above the other, all with the same view.
 * `heading`: of the parts, h2 or h3. `has`: whether the schedule of a side can be read; `hidden`: why not.
 * `link`: the address that tells a job's life under a side in full.
 * `rebase`: called when another baseline is chosen; without it the baseline stays.
 * @typedef {{schedule?: (side: number) => Promise<import("./schedule_data.js").ScheduleData>, gantts?: typeof import("./gantts.js").gantts,
 *            rebase?: (side: number) => void, has?: (side: number) => boolean, hidden?: (side: number) => string, link?: (side: number, id: string) => string, heading?: string}} Sources
 */

/**
 * Show everything about schedules of the same jobs.
 * @param {HTMLElement} host
 * @param {any} found what `report.contrast` computes
 * @param {Sources} sources
 * @returns {{destroy: () => void}}
 */
export function contrast(host, found, sources) {
  const shown = new Set(/** @type {number[]} */ (found.shown));
  const looks = looksOf(found, shown);
  const series = found.sides.map((/** @type {any} */ side, /** @type {number} */ place) => ({ name: side.name, look: looks[place] }));
  /** @type {(() => void)[]} */
  const redraws = [];
  /** @type {{destroy: () => void}[]} */
  const parts = [];
  /** @type {View} */
  const view = { found, series, shown, sources, parts, redraws, here: () => [...shown].sort((a, b) => a - b) };
  const differences = differenceCharts(view), curves = cdfCharts(view);
  const groups = found.boxes.length ? boxCharts(view) : null;
  const jobs = moverTables(view), bars = ganttPart(view);
  fill(host,
    choices(series, shown, () => redraws.forEach((redraw) => redraw())),
    ...part(view, "Differences", differences), ...(bars ? part(view, "Schedules", bars) : []), ...part(view, "Distributions", curves),
    ...(groups ? part(view, "Tenants and priorities", groups) : []), ...part(view, "Jobs that gained and lost most", jobs));
  redraws.forEach((redraw) => redraw());
  return { destroy: () => parts.forEach((each) => each.destroy()) };
}

/**
 * The look of every side: as the page's other figures have it, else those shown at first have the first looks.
 * @param {any} found @param {Set<number>} shown
 * @returns {import("./looks.js").Look[]}
 */
function looksOf(found, shown) {
  const given = /** @type {(import("./looks.js").Look | null)[]} */ (found.looks ?? found.sides.map(() => null));
  const others = [...shown, ...found.sides.keys()].filter((side, place, all) => all.indexOf(side) === place && !given[side]);
  const used = given.flatMap((each) => (each ? [each.colour === BASELINE ? CATEGORIES[7] : each.colour] : []));
  const free = [...Array(40).keys()].map(look).filter((each) => !used.includes(each.colour));
  return given.map((each, side) => each ?? free[others.indexOf(side) % free.length]);
}

/** @param {View} view @param {string} title @param {Node} body */
function part({ sources }, title, body) {
  return [h(sources.heading === "h3" ? "h3" : "h2", {}, title), body];
}

/**
 * @typedef {{found: any, series: {name: string, look: import("./looks.js").Look}[], shown: Set<number>, sources: Sources,
 *            parts: {destroy: () => void}[], redraws: (() => void)[], here: () => number[],
 *            pick?: (row: number, id?: string) => void, reveal?: (row: number) => void}} View
 */

/** @param {string} text */
function capital(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/**
 * Keep a chart that shows some of the sides up to date.
 * @param {View} view @param {HTMLElement} place @param {any} chart @param {() => any} data @param {any} words
 */
function living(view, place, chart, data, words) {
  const made = chart(place, data(), { heading: view.sources.heading === "h3" ? "h4" : "h3", ...words });
  view.parts.push(made);
  view.redraws.push(() => made.update(data()));
}

/** @param {View} view */
function differenceCharts(view) {
  const { found, series } = view;
  const baseline = found.baseline;
  const charts = h("div", { class: "charts" });
  for (const one of found.differences) {
    const place = h("div", {});
    charts.append(place);
    living(view, place, difference, () => ({
      title: one.title, better: one.better, baseline: series[baseline].name,
      rows: view.here().filter((side) => side !== baseline).map((side) => ({ ...series[side], ...one.sides[side] })),
    }), { title: one.title, name: `difference ${one.metric}`, caption: valueWords(one, baseline) });
  }
  return h("div", {}, baselineChoice(view),
    h("p", { class: "muted small" }, `Relative to ${series[baseline].name}, paired over ${found.units}; lines are 95 % intervals. `
      + (found.units.includes("blocks") ? "Neighbouring blocks share a queue, so they are less independent than other workloads would be: take the intervals as the least there is to doubt." : "")),
    charts);
}

/** @param {any} one @param {number} baseline */
function valueWords(one, baseline) {
  const value = one.values[baseline];
  const text = one.unit === "s" ? duration(value) : value === null ? "–" : `${figure(value / one.size)}${one.unit ? ` ${one.unit}` : ""}`;
  return `${text} under the baseline. ${one.better === "neither" ? "" : `${capital(one.better)} is better.`}`;
}

/** @param {View} view */
function baselineChoice({ found, series, sources }) {
  if (!sources.rebase) return null;
  const rebase = sources.rebase;
  return h("div", { class: "controls" }, h("label", {}, "Compared with",
    h("select", { "data-focus": "baseline", onchange: (/** @type {any} */ event) => rebase(Number(event.target.value)) },
      ...series.map((one, place) => h("option", { value: place, selected: place === found.baseline ? true : null }, one.name)))));
}

/** @param {View} view */
function cdfCharts(view) {
  const { found, series } = view;
  const charts = h("div", { class: "charts" });
  for (const measure of found.measures) {
    const place = h("div", {});
    charts.append(place);
    living(view, place, cdf, () => ({
      measure: measure.title, time: measure.name.endsWith("_s"),
      curves: view.here().map((side) => ({ ...series[side], ...found.cdfs[measure.name][side] })),
    }), {
      title: capital(measure.title), name: `distribution ${measure.name}`,
      caption: `Share of all submitted, placeable jobs with at most this ${measure.title}. Higher and further left is better.`,
    });
  }
  return charts;
}

/** @param {View} view */
function boxCharts(view) {
  const { found, series } = view;
  let measure = found.measures[0];
  const charts = h("div", { class: "charts" });
  const select = h("select", {
    onchange: (/** @type {any} */ event) => {
      measure = found.measures[Number(event.target.value)];
      view.redraws.forEach((redraw) => redraw());
    },
  }, ...found.measures.map((/** @type {any} */ each, /** @type {number} */ place) => h("option", { value: place }, each.title)));
  for (const grouping of found.boxes) {
    const place = h("div", {});
    charts.append(place);
    living(view, place, boxes, () => ({
      groups: grouping.groups, measure: measure.title, time: measure.name.endsWith("_s"), series: view.here().map((side) => series[side]),
      boxes: grouping.boxes[measure.name].map((/** @type {any[]} */ row) => view.here().map((side) => row[side])),
    }), {
      title: `By ${grouping.by}`, name: `by ${grouping.by}`,
      caption: "Boxes hold the middle half of the finished jobs, the thick line is the median; thin lines reach from the 5th to the 95th percentile."
        + (grouping.by === "priority" ? " Larger priorities are more urgent, and stand on top." : " Tenants with most jobs on top."),
    });
  }
  return h("div", {}, h("div", { class: "controls" }, h("label", {}, "Measure", select)), charts);
}

/** @param {View} view */
function ganttPart(view) {
  const { sources } = view;
  if (!sources.gantts || !sources.schedule) return null;
  const { gantts, schedule } = sources;
  const place = h("div", { class: "gantts" });
  const note = h("p", { class: "muted small" });
  /** @type {ReturnType<typeof gantts> | null} */
  let made = null;
  let last = "";
  view.parts.push({ destroy: () => made?.destroy() });
  view.reveal = (row) => made?.select(row);
  view.redraws.push(() => {
    const there = view.here().filter((side) => sources.has?.(side) ?? true);
    const sides = there.slice(0, MOST_GANTTS);
    const state = `${sides.join()} of ${view.here().join()}`;
    if (state === last) return;
    last = state;
    const without = view.here().filter((side) => !there.includes(side));
    const reasons = sources.hidden ? without.map(sources.hidden) : without.length ? ["Of some schedulers shown, this file does not hold the schedule."] : [];
    if (there.length > MOST_GANTTS) reasons.unshift(`Drawn are the first ${MOST_GANTTS} of the schedulers shown.`);
    note.textContent = reasons.map((reason) => /[.!?]$/.test(reason) ? reason : `${reason}.`).join(" ");
    made?.destroy();
    made = gantts(place, sides.map((side) => ({ ...view.series[side], schedule: schedule(side) })), { heading: sources.heading === "h3" ? "h4" : "h3", onJob: (row) => view.pick?.(row) });
  });
  return h("div", {}, place, note);
}

/** @param {View} view */
function moverTables(view) {
  const { found, series } = view;
  const baseline = found.baseline;
  const others = series.map((_, side) => side).filter((side) => side !== baseline);
  let side = view.here().find((each) => each !== baseline) ?? others[0];
  const place = h("div", { class: "movers" });
  const words = h("p", {});
  const life = h("div", { "aria-live": "polite" });
  const select = h("select", { onchange: (/** @type {any} */ event) => { side = Number(event.target.value); drawTables(); } },
    ...others.map((each) => h("option", { value: each, selected: each === side ? true : null }, series[each].name)));

  function drawTables() {
    const moved = found.movers[side];
    fill(words, `Under ${series[side].name}, ${count(moved.sooner)} jobs were complete sooner than under ${series[baseline].name}, `
      + `${count(moved.later)} later, ${count(moved.same)} at the same time${moved.unknown ? `; ${several(moved.unknown, "job")} did not finish under both` : ""}.`);
    fill(place, moverTable(view, side, "gained", moved.gained, pick), moverTable(view, side, "lost", moved.lost, pick));
    fill(life);
  }

  /** @param {number} row @param {string} [id] */
  function pick(row, id) {
    for (const button of place.querySelectorAll("button.job")) button.setAttribute("aria-pressed", String(button.getAttribute("data-job") === String(row)));
    showLife(view, life, row, id, [baseline, side]);
    if (id !== undefined) view.reveal?.(row); // chosen in a table, so the schedules do not show it yet
  }
  view.pick = pick;
  drawTables();
  return h("div", {}, others.length > 1 ? h("div", { class: "controls" }, h("label", {}, `Against ${series[baseline].name}`, select)) : null, words, place, life);
}

/**
 * @param {View} view @param {number} side @param {string} which gained or lost @param {any[]} rows
 * @param {(row: number, id: string) => void} pick
 */
function moverTable({ found, series, sources }, side, which, rows, pick) {
  const title = which === "gained" ? "Gained most" : "Lost most";
  const columns = ["job", "tenant", "GPUs", "run time (s)", `JCT under ${series[found.baseline].name} (s)`, `JCT under ${series[side].name} (s)`, "change (s)"];
  const numbers = { columns, rows: rows.map((job) => [job.id, job.tenant, job.gpus, job.duration_s, job.before_s, job.jct_s, job.jct_s - job.before_s]) };
  const body = rows.map((job) => h("tr", {},
    h("th", { scope: "row" }, sources.schedule
      ? h("button", { type: "button", class: "job", "data-job": job.row, "aria-pressed": "false", title: `Show the life of ${job.id}`, onclick: () => pick(job.row, job.id) }, job.id) : job.id),
    h("td", { class: "optional" }, job.tenant || "–"), h("td", { class: "number" }, job.gpus),
    h("td", { class: "number" }, duration(job.before_s)), h("td", { class: "number" }, duration(job.jct_s)),
    h("td", { class: `number ${which === "gained" ? "better-word" : "worse-word"}` }, `${which === "gained" ? "−" : "+"}${duration(Math.abs(job.jct_s - job.before_s))}`)));
  return h("div", { class: "card" },
    h("div", { class: "chart-head" }, h(sources.heading === "h3" ? "h4" : "h3", {}, title), h("span", { class: "downloads" },
      h("button", { type: "button", class: "quiet", "aria-label": `Download ${title} as CSV`, onclick: () => save(`jobs-${which}.csv`, new Blob([csvText(numbers)], { type: "text/csv" })) }, "CSV"))),
    rows.length ? h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Job"), h("th", { scope: "col", class: "optional" }, "Tenant"),
      ...["GPUs", "JCT before", "JCT now", "Change"].map((name) => h("th", { scope: "col", class: "number" }, name)))), h("tbody", {}, ...body)))
      : h("p", { class: "muted" }, which === "gained" ? "No job was complete sooner." : "No job was complete later."));
}

/**
 * Show a job under the baseline and another side: what the tables say at once, its life as schedules arrive.
 * @param {View} view @param {HTMLElement} place @param {number} row @param {string | undefined} id @param {number[]} sides
 */
function showLife(view, place, row, id, sides) {
  const { schedule, has, hidden, link } = view.sources;
  if (!schedule) return;
  const kept = sides.filter((side) => has?.(side) ?? true);
  const heading = view.sources.heading === "h3" ? "h4" : "h3";
  const host = h("div", {}), note = h("p", { class: "muted small" });
  /** @type {Map<number, import("./schedule_data.js").ScheduleData>} */
  const read = new Map();
  const missing = sides.filter((side) => !kept.includes(side));
  const problems = missing.map((side) => hidden?.(side) ?? `This file does not hold the schedule of ${view.series[side].name}.`);
  const draw = () => {
    const name = id ?? [...read.values()].map((data) => jobId(data, row))[0];
    const title = `Job ${name ?? ""}`;
    const here = kept.filter((side) => read.has(side));
    const found = here.map((side) => ({ ...view.series[side], ...lifeOf(/** @type {any} */ (read.get(side)), row) }));
    if (found.length) lives(host, { lives: found }, { heading, title, name: `job ${row}`, caption: found.map((life) => lifeWords(life)).join(" ") });
    else fill(host, h("div", { class: "card early" }, h(heading === "h4" ? "h4" : "h3", {}, title), h("p", {}, tableWords(view, row, sides))));
    const waiting = kept.length - here.length - failed;
    fill(note, waiting ? `${waiting === 1 ? "A schedule is" : "Schedules are"} still being made … ` : "", problems.map((text) => `${text} `).join(""),
      ...(link && name !== undefined ? kept.flatMap((side) => [h("a", { href: link(side, name) }, `Why, under ${view.series[side].name}`), " "]) : []));
  };
  let failed = 0;
  fill(place, host, note);
  draw();
  host.scrollIntoView({ block: "nearest" });
  for (const side of kept) {
    schedule(side).then((data) => { read.set(side, data); }, (error) => {
      failed += 1;
      problems.push(`${view.series[side].name}: ${error instanceof Error ? error.message : String(error)}`);
    }).then(() => { if (host.isConnected) draw(); });
  }
}

/** What the tables say of a job before any schedule is there. @param {View} view @param {number} row @param {number[]} sides */
function tableWords({ found, series }, row, [baseline, side]) {
  const moved = found.movers[side];
  const job = [...moved.gained, ...moved.lost].find((each) => each.row === row);
  if (!job) return "";
  return `${several(job.gpus, "GPU")} for ${duration(job.duration_s)}; complete ${duration(job.before_s)} after submission under ${series[baseline].name}, ${duration(job.jct_s)} under ${series[side].name}.`;
}

/** @param {any} life */
function lifeWords(life) {
  const first = life.segments[0];
  const end = life.outcome === "finished" ? `complete after ${duration(life.end_s - life.submit_s)}` : life.outcome;
  return `${life.name}: ${first ? `waited ${duration(first.start_s - life.submit_s)}` : "never started"}, ${end}.`;
}

/**
 * A job's life, from a schedule's columns.
 * @param {import("./schedule_data.js").ScheduleData} schedule @param {number} row
 */
export function lifeOf({ about, column }, row) {
  const segments = [];
  for (let n = 0; n < column.segment_job.length; n += 1) {
    if (column.segment_job[n] === row) {
      segments.push({ start_s: column.segment_start[n], end_s: column.segment_end[n], cause: about.causes[column.segment_cause[n]] });
    }
  }
  const end = column.job_end[row];
  return { submit_s: column.job_submit[row], end_s: Number.isNaN(end) ? null : end, outcome: about.outcomes[column.job_outcome[row]], segments };
}
