// One schedule: every GPU through time, what the cluster did meanwhile, and the life of any job.

import { fetchBytes, fetchJson, fill, h, isTaken, say } from "../web/dom.js";
import { gantt } from "../web/gantt.js";
import { usefulColourings } from "../web/gantt_colours.js";
import { GANTT_KEYS } from "../web/gantt_input.js";
import { category } from "../web/palette.js";
import { moment } from "../web/scales.js";
import { decode, findJob, jobId } from "../web/schedule_data.js";
import { strip, timeAxis } from "../web/strips.js";
import { TimeWindow } from "../web/time_window.js";
import { count, duration, several } from "../web/words.js";
import { showLife } from "./job_life.js";

/** @type {[string, string][]} */
export const keys = [...GANTT_KEYS, ["f", "find a job by its id"], ["c", "colour by something else"]];

const STRIP_COLOURS = { queue: 5, busy: 0, fragmented: 3, power: 1 };
const MOST_IN_TABLE = 100;

/**
 * @param {HTMLElement} main
 * @param {{name: string, query: URLSearchParams}} params `?simulation=K&job=ID`
 * @param {AbortSignal} signal
 */
export async function show(main, params, signal) {
  const run = params.name;
  const address = encodeURIComponent(run);
  const number = Number(params.query.get("simulation") ?? 0) || 0;
  fill(main, h("h1", {}, run), h("p", { class: "muted", role: "status" }, "Fetching the schedule; a comparison's is simulated again first …"));
  const [list, bytes] = await Promise.all([
    fetchJson(`/api/schedule-list/${address}`, signal),
    fetchBytes(`/api/schedule/${address}?simulation=${number}`, signal),
  ]);
  const arrived_ms = performance.now();
  const data = decode(bytes);
  const view = new View(main, run, data, arrived_ms, signal);
  view.offer(list.simulations, number);
  const wanted = params.query.get("job");
  if (wanted) view.find(wanted);
}

class View {
  /**
   * @param {HTMLElement} main @param {string} run @param {import("../web/schedule_data.js").ScheduleData} data
   * @param {number} arrived_ms @param {AbortSignal} signal
   */
  constructor(main, run, data, arrived_ms, signal) {
    this.run = run;
    this.data = data;
    this.signal = signal;
    this.window = new TimeWindow(data.about.horizon_s[0], data.about.horizon_s[1]);
    this.life = h("aside", { class: "life card", "aria-label": "The selected job", hidden: true });
    this.legend = h("ul", { class: "legend", "aria-label": "Legend" });
    this.finder = h("input", { type: "search", placeholder: "Find a job (F)", "aria-label": "Find a job by its id", size: 14, autocomplete: "off", spellcheck: "false" });
    this.colouring = h("select", { "aria-label": "Colour bars by", onchange: () => this.colour() },
      ...usefulColourings(this.data).map(([value, label]) => h("option", { value }, label)));
    this.choice = h("span", { class: "row" });
    this.stage = h("div", { class: "timeline card" });
    this.table = h("details", { class: "in-view", ontoggle: () => this.list() }, h("summary", {}, "Jobs in view as a table"), h("div", { class: "scroll" }));
    this.asked = -1;
    this.build(main);
    const colouring = usefulColourings(data)[0][0];
    const charts = this.charts(colouring, arrived_ms);
    this.drawLegend();
    signal.addEventListener("abort", () => charts.forEach((chart) => chart.destroy()));
    addEventListener("keydown", (event) => this.press(event), { signal });
  }

  /** @param {HTMLElement} main */
  build(main) {
    const { about } = this.data;
    fill(main,
      h("header", { class: "schedule-head" },
        h("div", {},
          h("p", { class: "crumbs small muted" }, h("a", { href: "#/runs" }, "Runs"), " / ", this.run),
          h("h1", {}, `${about.scheduler} on ${about.workload}`)),
        h("p", { class: "small muted facts-line" }, this.facts())),
      h("div", { class: "row schedule-tools" }, this.choice,
        h("label", {}, "Colour", this.colouring),
        h("form", { class: "row", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); this.find(this.finder.value); } }, this.finder),
        h("span", { class: "row zoom" },
          h("button", { type: "button", title: "Further (−)", "aria-label": "Zoom out", onclick: () => this.window.zoom(2) }, "−"),
          h("button", { type: "button", title: "Closer (+)", "aria-label": "Zoom in", onclick: () => this.window.zoom(0.5) }, "+"),
          h("button", { type: "button", title: "Everything (0)", onclick: () => this.whole() }, "All")),
        this.legend),
      this.problems(),
      h("div", { class: "schedule-body" }, this.stage, this.life),
      this.table);
  }

  /** Say what is shown, in one line. */
  facts() {
    const { about } = this.data;
    const of = (/** @type {string} */ cause) => about.cause_counts[about.causes.indexOf(cause)];
    const failed = about.outcome_counts[about.outcomes.indexOf("failed")];
    const parts = [
      several(about.jobs, "job"), `${count(about.gpus)} GPUs of ${about.cluster}`, duration(about.horizon_s[1] - about.horizon_s[0]),
      `${count(about.bars)} bars`,
    ];
    if (of("preempted")) parts.push(several(of("preempted"), "preemption"));
    if (of("migrated")) parts.push(several(of("migrated"), "migration"));
    if (of("resized")) parts.push(several(of("resized"), "resize"));
    if (this.data.column.outage_node.length) parts.push(several(this.data.column.outage_node.length, "node failure"));
    if (failed) parts.push(`${several(failed, "job")} given up`);
    return parts.join(" · ");
  }

  /** Say where the schedule comes from, if that is not the folder itself. */
  problems() {
    const { about } = this.data;
    if (about.is_same) return null;
    const text = about.is_stored
      ? "The tables in this folder are not those that were written: their fingerprint differs."
      : "This version simulates the run differently from the one that made it; what you see may differ from its results.";
    return h("p", { class: "problem", role: "alert" }, text);
  }

  /** @param {string} colouring @param {number} arrived_ms */
  charts(colouring, arrived_ms) {
    const { about, column } = this.data;
    const made = [];
    const hosts = about.strips.map(() => h("div", {}));
    const axis = h("div", {});
    const host = h("div", { class: "gantt-host" });
    fill(this.stage, ...hosts, axis, host);
    about.strips.forEach((/** @type {any} */ each, /** @type {number} */ place) => {
      const steps = { ...each, edges: column[`${each.name}_edges`], values: column[`${each.name}_values`] };
      const colour = category(STRIP_COLOURS[/** @type {keyof typeof STRIP_COLOURS} */ (each.name)] ?? place);
      made.push(strip(hosts[place], steps, { window: this.window, colour }));
    });
    made.push(timeAxis(axis, { window: this.window, begins: about.begins }));
    this.chart = gantt(host, this.data, {
      window: this.window, colourBy: colouring, arrived_ms, label: `Schedule of ${about.scheduler}`,
      onSelect: (row) => this.select(row),
    });
    made.push(this.chart);
    return made;
  }

  /** Let people choose among the simulations of a comparison. @param {any[]} simulations @param {number} number */
  offer(simulations, number) {
    if (simulations.length < 2) return;
    const several = new Set(simulations.map((each) => each.workload)).size > 1;
    fill(this.choice, h("label", {}, "Scheduler", h("select", {
      onchange: (/** @type {Event} */ event) => {
        const { value } = /** @type {HTMLSelectElement} */ (event.target);
        location.hash = `#/schedule/${encodeURIComponent(this.run)}?simulation=${value}`;
      },
    }, ...simulations.map((each) => h("option", { value: each.number, selected: each.number === number },
      several ? `${each.scheduler} on ${each.workload}` : each.scheduler)))));
  }

  whole() {
    this.window.reset();
    this.chart?.focus();
  }

  colour() {
    this.chart?.colourBy(this.colouring.value);
    this.drawLegend();
  }

  drawLegend() {
    const { legend, title } = this.chart?.legend() ?? { legend: [], title: "" };
    const { about, column } = this.data;
    const of = (/** @type {string} */ cause) => about.cause_counts[about.causes.indexOf(cause)];
    const swatch = (/** @type {string} */ colour, /** @type {string} */ label, extra = "") => {
      const box = h("span", { class: `swatch ${extra}` });
      box.style.background = colour;
      return h("li", {}, box, label);
    };
    fill(this.legend, h("li", { class: "muted" }, `${title}:`),
      ...legend.map(({ colour, label }) => swatch(colour, label)),
      of("preempted") ? swatch("var(--ink)", "preempted", "thin") : null,
      of("node_failed") ? swatch("#d0021b", "stopped by a failure", "thin") : null,
      column.outage_node.length ? swatch("repeating-linear-gradient(135deg, #c8632f 0 3px, var(--idle) 3px 6px)", "node away") : null);
  }

  /** @param {string} text */
  find(text) {
    const row = findJob(this.data, text);
    if (row < 0) {
      say(`There is no job ${text}.`);
      this.finder.setCustomValidity("There is no such job.");
      this.finder.reportValidity();
      this.finder.setCustomValidity("");
      return;
    }
    this.chart?.select(row, true);
    this.chart?.focus();
  }

  /** @param {number | null} row */
  async select(row) {
    this.life.hidden = row === null;
    const { simulation } = this.data.about;
    const job = row === null ? "" : `&job=${encodeURIComponent(jobId(this.data, row))}`;
    // The address can be kept and sent on; it leads back to this job.
    history.replaceState(null, "", `#/schedule/${encodeURIComponent(this.run)}?simulation=${simulation}${job}`);
    if (row === null) return;
    this.asked = row;
    fill(this.life, h("h2", {}, `Job ${jobId(this.data, row)}`), h("p", { class: "muted" }, "Looking …"));
    try {
      const life = await fetchJson(`/api/schedule-job/${encodeURIComponent(this.run)}?simulation=${simulation}&row=${row}`, this.signal);
      if (this.asked === row) showLife(this.life, life, this.data.about, (other) => this.chart?.select(other, true), () => this.chart?.select(null));
    } catch (error) {
      if (!this.signal.aborted) fill(this.life, h("p", { class: "problem" }, String(error instanceof Error ? error.message : error)));
    }
  }

  /** Fill the table of jobs in view; for screen readers, and for copying. */
  list() {
    const place = this.table.querySelector("div");
    if (!this.table.open || !place || !this.chart) return;
    const { column, about } = this.data;
    const rows = this.chart.jobsInView(MOST_IN_TABLE);
    fill(place, h("table", {}, h("caption", { class: "small muted" }, `The first ${count(rows.length)} jobs of what is in view; open again after moving.`),
      h("thead", {}, h("tr", {}, ...["Job", "GPUs", "Tenant", "Submitted", "Waited", "Slowdown", "Outcome"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, ...rows.map((row) => h("tr", {},
        h("th", { scope: "row" }, h("button", { class: "link", type: "button", onclick: () => this.chart?.select(row, true) }, jobId(this.data, row))),
        h("td", { class: "number" }, count(column.job_gpus[row])),
        h("td", {}, about.tenants[column.job_tenant[row]] ?? ""),
        h("td", { class: "number" }, moment(about.begins, column.job_submit[row])),
        h("td", { class: "number" }, duration(column.job_wait[row])),
        h("td", { class: "number" }, Number.isNaN(column.job_slowdown[row]) ? "–" : column.job_slowdown[row].toFixed(2)),
        h("td", {}, about.outcomes[column.job_outcome[row]].replace("_", " ")))))));
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (isTaken(event)) return;
    if (event.key === "f" || event.key === "/") {
      event.preventDefault();
      this.finder.focus();
      this.finder.select();
    } else if (event.key === "c") {
      this.colouring.selectedIndex = (this.colouring.selectedIndex + 1) % this.colouring.options.length;
      this.colour();
      say(`Coloured by ${this.colouring.selectedOptions[0].text}`);
    }
  }
}
