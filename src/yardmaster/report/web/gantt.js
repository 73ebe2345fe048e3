// The Gantt chart: every GPU a row, every job's stay on it a bar.

import { h } from "./dom.js";
import { frameTimes } from "./frame_times.js";
import { coloursOf } from "./gantt_colours.js";
import { listen } from "./gantt_input.js";
import { drawGutter, drawOver, inksNow } from "./gantt_marks.js";
import { fullHeight, gpuAtHeight, paint, rowTop } from "./gantt_paint.js";
import { barAt, barsOf, firstAbove, jobId, trackOf } from "./schedule_data.js";
import { onThemeChange } from "./theme.js";
import { duration, several } from "./words.js";

/** @typedef {import("./schedule_data.js").ScheduleData} ScheduleData */
/** @typedef {import("./time_window.js").TimeWindow} TimeWindow */
/**
 * @typedef {{window: TimeWindow, colourBy?: string, onSelect?: (row: number | null) => void,
 *            label?: string, arrived_ms?: number}} GanttOptions
 *   `window`: shared by all drawings that move together; `arrived_ms`: when the data came
 */

const SMALLEST_ROW = 1;
const LARGEST_ROW = 40;

/**
 * Draw a schedule.
 * @param {HTMLElement} host filled with the chart; its height is the chart's
 * @param {ScheduleData} data
 * @param {GanttOptions} options
 */
export function gantt(host, data, options) {
  const chart = new Gantt(host, data, options);
  return {
    /** @param {ScheduleData} next another schedule in the same place */
    update: (next) => chart.update(next),
    destroy: () => chart.destroy(),
    /** @param {string} by see gantt_colours.js */
    colourBy: (by) => chart.colourBy(by),
    /** @param {number | null} row select a job; with `reveal`, bring it into view */
    select: (/** @type {number | null} */ row, reveal = false) => chart.select(row, reveal),
    focus: () => chart.plot.focus(),
    legend: () => chart.colours,
    jobsInView: (/** @type {number} */ most) => chart.jobsInView(most),
  };
}

class Gantt {
  /** @param {HTMLElement} host @param {ScheduleData} data @param {GanttOptions} options */
  constructor(host, data, options) {
    this.host = host;
    this.data = data;
    this.options = options;
    this.window = options.window;
    this.by = options.colourBy ?? "tenant";
    this.colours = coloursOf(data, this.by);
    this.inks = inksNow();
    /** @type {number | null} */
    this.selected = null;
    /** @type {number[]} bars of the selected job */
    this.selectedBars = [];
    this.frame = { width: 0, height: 0, from: 0, to: 1, top: 0, rowHeight: 1, gap: 0 };
    this.ratio = 1;
    this.isFitted = true;
    this.pending = 0;
    this.isRangeNew = true;
    /** @type {number} the segment that `nextStop` went to */
    this.lastStop = -1;
    /** @type {number[]} rows of jobs in order of start, of `orderOf` */
    this.ordered = [];
    /** @type {ScheduleData | null} */
    this.orderOf = null;
    this.gutter = h("canvas", { class: "gantt-gutter", "aria-hidden": "true" });
    this.plot = h("canvas", { class: "gantt-plot", tabindex: 0, role: "img", "aria-label": this.words() });
    this.over = h("canvas", { class: "gantt-over", "aria-hidden": "true" });
    this.tip = h("div", { class: "gantt-tip", hidden: true });
    this.field = h("div", { class: "gantt-field" }, this.plot, this.over, this.tip);
    host.replaceChildren(h("div", { class: "gantt" }, this.gutter, this.field));
    this.stops = [
      this.window.watch((what) => (what === "range" ? this.soon() : this.soonOver())),
      onThemeChange(() => { this.inks = inksNow(); this.soon(); }),
      listen(this.plot, this),
    ];
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.field);
    this.resize();
  }

  /** What the picture shows, for those who cannot see it. */
  words() {
    const { about } = this.data;
    const of = (/** @type {string} */ cause) => about.cause_counts[about.causes.indexOf(cause)];
    return `${this.options.label ?? "Gantt chart"}: ${several(about.jobs, "job")} on ${several(about.gpus, "GPU")}`
      + ` over ${duration(about.horizon_s[1] - about.horizon_s[0])}, ${several(about.bars, "bar")};`
      + ` ${several(of("preempted"), "preemption")}, ${several(of("node_failed"), "stop")} by failing nodes.`
      + " Arrow keys move, plus and minus zoom, J and K step through jobs.";
  }

  /** @param {ScheduleData} next */
  update(next) {
    this.data = next;
    this.colours = coloursOf(next, this.by);
    this.select(null);
    this.plot.setAttribute("aria-label", this.words());
    this.fit();
    this.soon();
  }

  /** @param {string} by */
  colourBy(by) {
    this.by = by;
    this.colours = coloursOf(this.data, by);
    this.soon();
    return this.colours;
  }

  resize() {
    const { field } = this;
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.max(Math.floor(field.clientWidth * this.ratio), 1);
    const height = Math.max(Math.floor(field.clientHeight * this.ratio), 1);
    if (width === this.frame.width && height === this.frame.height) return;
    for (const canvas of [this.plot, this.over]) Object.assign(canvas, { width, height });
    Object.assign(this.gutter, { width: Math.floor(this.gutter.clientWidth * this.ratio), height });
    this.frame.width = width;
    this.frame.height = height;
    const context = /** @type {CanvasRenderingContext2D} */ (this.plot.getContext("2d", { alpha: false }));
    this.context = context;
    this.image = context.createImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    if (this.isFitted) this.fit();
    this.clampTop();
    // At once and not with the next frame: a canvas that was resized is empty.
    this.draw();
  }

  /** Let the rows fill the height, as far as they can. */
  fit() {
    const { height } = this.frame;
    const rows = this.data.gpuNode.length;
    const nodes = this.data.column.node_gpus.length;
    const wanted = Math.floor((height - (nodes - 1) * 2 * this.ratio) / rows);
    this.setRowHeight(wanted);
    if (fullHeight(this.data, this.frame) > height) this.setRowHeight(Math.floor(height / rows));
    this.frame.top = 0;
    this.isFitted = true;
  }

  /** @param {number} pixels */
  setRowHeight(pixels) {
    const most = LARGEST_ROW * this.ratio;
    this.frame.rowHeight = Math.min(Math.max(Math.round(pixels), SMALLEST_ROW), most);
    this.frame.gap = this.frame.rowHeight >= 4 ? Math.round(2 * this.ratio) : 0;
  }

  clampTop() {
    const room = Math.max(fullHeight(this.data, this.frame) - this.frame.height, 0);
    this.frame.top = Math.round(Math.min(Math.max(this.frame.top, 0), room));
  }

  /** @param {number} pixels of the screen; positive: further down */
  panRows(pixels) {
    this.frame.top += pixels * this.ratio;
    this.clampTop();
    this.soon();
  }

  /** @param {number} factor above 1: taller rows @param {number} [y] stays where it is, pixels of the screen */
  zoomRows(factor, y = this.plot.clientHeight / 2) {
    const at = y * this.ratio;
    const before = this.frame.rowHeight;
    const row = (this.frame.top + at) / Math.max(fullHeight(this.data, this.frame), 1);
    this.setRowHeight(factor > 1 ? Math.max(before * factor, before + 1) : Math.min(before * factor, before - 1));
    this.isFitted = false;
    this.frame.top = row * fullHeight(this.data, this.frame) - at;
    this.clampTop();
    this.soon();
  }

  reset() {
    this.window.reset();
    this.fit();
    this.soon();
  }

  soon() {
    this.isRangeNew = true;
    this.soonOver();
  }

  soonOver() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      if (this.isRangeNew) this.draw();
      else drawOver(this);
    });
  }

  draw() {
    if (!this.context || !this.image || !this.pixels) return;
    this.isRangeNew = false;
    // Where all rows are in view, a finger that goes up or down moves the page.
    this.plot.style.touchAction = fullHeight(this.data, this.frame) > this.frame.height ? "none" : "pan-y";
    const begun = performance.now();
    this.frame.from = this.window.from;
    this.frame.to = this.window.to;
    paint(this.pixels, this.data, this.frame, this.colours.pixels, this.inks);
    this.context.putImageData(this.image, 0, 0);
    drawOver(this);
    drawGutter(this);
    frameTimes.note(performance.now() - begun, this.options.arrived_ms);
    frameTimes.offer(this);
  }

  /** The bar at a place of the screen; −1 if there is none. @param {number} x @param {number} y */
  barAt(x, y) {
    const { gpu, share } = gpuAtHeight(this.data, this.frame, y * this.ratio);
    return gpu < 0 ? -1 : barAt(this.data, gpu, this.timeAt(x), share);
  }

  /** @param {number} x pixels of the screen */
  timeAt(x) {
    return this.window.from + (x / Math.max(this.plot.clientWidth, 1)) * this.window.span;
  }

  /** @param {number} x @param {number} y */
  click(x, y) {
    const bar = this.barAt(x, y);
    this.select(bar < 0 ? null : this.data.barJob[bar]);
  }

  /** @param {number | null} x @param {number} [y] */
  hover(x, y = 0) {
    this.window.point(x === null ? null : this.timeAt(x));
    const bar = x === null ? -1 : this.barAt(x, y);
    this.tip.hidden = bar < 0;
    if (x === null || bar < 0) return;
    const row = this.data.barJob[bar];
    const { about, column } = this.data;
    const tenant = about.tenants[column.job_tenant[row]];
    const gpu = this.data.column.track_gpu[trackOf(this.data, bar)];
    this.tip.replaceChildren(h("b", {}, `Job ${jobId(this.data, row)}`), h("br"),
      `${several(column.job_gpus[row], "GPU")}${tenant ? ` · ${tenant}` : ""}`, h("br"),
      `waited ${duration(column.job_wait[row])}`, h("br"),
      `ran ${duration(this.data.barEnd[bar] - this.data.barStart[bar])} here`, h("br"),
      h("span", { class: "muted" }, `node ${this.data.gpuNode[gpu]}, GPU ${gpu - this.data.nodeFirstGpu[this.data.gpuNode[gpu]]}`));
    const left = x + 16 + this.tip.offsetWidth > this.plot.clientWidth ? x - 12 - this.tip.offsetWidth : x + 16;
    this.tip.style.transform = `translate(${Math.max(left, 0)}px, ${Math.min(y + 12, Math.max(this.plot.clientHeight - this.tip.offsetHeight, 0))}px)`;
  }

  /** @param {number | null} row @param {boolean} [reveal] */
  select(row, reveal = false) {
    const isNew = row !== this.selected;
    this.selected = row;
    this.selectedBars = row === null ? [] : barsOf(this.data, row);
    if (reveal && this.selectedBars.length) {
      const bar = this.selectedBars[0];
      this.window.reveal(this.data.barStart[bar], this.data.barEnd[bar]);
      this.revealRow(this.data.column.track_gpu[trackOf(this.data, bar)]);
    }
    this.soon();
    if (isNew) this.options.onSelect?.(row);
  }

  /** @param {number} gpu */
  revealRow(gpu) {
    const y = rowTop(this.data, this.frame, gpu);
    const { top, height, rowHeight } = this.frame;
    if (y < top || y + rowHeight > top + height) this.frame.top = y - height / 2;
    this.clampTop();
  }

  /** Select the job that starts next, or before. @param {number} step 1 or −1 */
  step(step) {
    const starts = this.order();
    const at = this.selected === null ? -1 : starts.indexOf(this.selected);
    let place = at + step;
    if (at < 0) {
      place = starts.findIndex((row) => this.data.column.job_start[row] >= this.window.from);
      if (place < 0) place = starts.length - 1;
    }
    if (place >= 0 && place < starts.length) this.select(starts[place], true);
  }

  /** Select the next job that was stopped: made room, or lost its node. */
  nextStop() {
    const { column } = this.data;
    const after = this.lastStop;
    for (let turn = 0; turn < column.segment_job.length; turn += 1) {
      const segment = (after + 1 + turn) % column.segment_job.length;
      if (column.segment_cause[segment] === 1 || column.segment_cause[segment] === 2) {
        this.lastStop = segment;
        this.select(column.segment_job[segment]);
        this.window.reveal(column.segment_start[segment], column.segment_end[segment]);
        const bar = this.selectedBars.find((each) => column.bar_segment[each] === segment);
        if (bar !== undefined) this.revealRow(column.track_gpu[trackOf(this.data, bar)]);
        return;
      }
    }
  }

  /** Rows of jobs that ran, in the order in which they started. */
  order() {
    if (this.orderOf !== this.data) {
      const { job_start: start } = this.data.column;
      this.ordered = [...start.keys()].filter((row) => !Number.isNaN(start[row])).sort((a, b) => start[a] - start[b] || a - b);
      this.orderOf = this.data;
    }
    return this.ordered;
  }

  /** Rows of jobs with a bar in view, in the order of rows of the chart. @param {number} most */
  jobsInView(most) {
    /** @type {Set<number>} */
    const found = new Set();
    const { column } = this.data;
    for (let track = 0; track < column.track_gpu.length && found.size < most; track += 1) {
      const y = rowTop(this.data, this.frame, column.track_gpu[track]) - this.frame.top;
      if (y + this.frame.rowHeight <= 0 || y >= this.frame.height) continue;
      const past = column.track_bar[track + 1];
      let bar = firstAbove(this.data.barEnd, this.window.from, column.track_bar[track], past);
      while (bar < past && this.data.barStart[bar] < this.window.to && found.size < most) found.add(this.data.barJob[bar++]);
    }
    return [...found];
  }

  destroy() {
    cancelAnimationFrame(this.pending);
    this.observer.disconnect();
    for (const stop of this.stops) stop();
    frameTimes.withdraw(this);
    this.host.replaceChildren();
  }
}

export { Gantt };
