// What is drawn over and beside the bars: labels, the selected job, the cursor, the nodes' names.

import { pixel } from "./gantt_colours.js";
import { fullHeight, rowTop } from "./gantt_paint.js";
import { inkOn, rgb } from "./palette.js";
import { firstAbove, isWhole, jobId, trackOf } from "./schedule_data.js";
import { cssColour, isDark } from "./theme.js";

/** @typedef {import("./gantt.js").Gantt} Gantt */

/** Rows this high have room for the names of jobs. */
const LABELLED_ROW = 12;
const MOST_LABELS = 1500;
const NARROWEST_LABEL = 26;

/** The colours that the theme decides, as pixels. */
export function inksNow() {
  return {
    paper: pixel(rgb(cssColour("--card"))),
    idle: pixel(rgb(cssColour("--idle"))),
    away: pixel(rgb(isDark() ? "#b4552d" : "#c8632f")),
    preempted: pixel(rgb(isDark() ? "#ffffff" : "#111111")),
    failed: pixel(rgb("#d0021b")),
  };
}

/**
 * Where a bar is on the canvas.
 * @param {Gantt} chart @param {number} bar
 */
function boxOf(chart, bar) {
  const { data, frame } = chart;
  const track = trackOf(data, bar);
  const gpu = data.column.track_gpu[track];
  const lanes = isWhole(data, bar) ? 1 : data.column.gpu_lanes[gpu];
  const lane = lanes === 1 ? 0 : data.column.track_lane[track];
  const scale = frame.width / (frame.to - frame.from);
  const x = (data.barStart[bar] - frame.from) * scale;
  return {
    x, width: Math.max((data.barEnd[bar] - frame.from) * scale - x, 1),
    y: rowTop(data, frame, gpu) - frame.top + (frame.rowHeight * lane) / lanes,
    height: frame.rowHeight / lanes,
  };
}

/** @param {Gantt} chart */
export function drawOver(chart) {
  const context = chart.over.getContext("2d");
  if (!context) return;
  const { width, height } = chart.frame;
  context.clearRect(0, 0, width, height);
  if (chart.frame.rowHeight >= LABELLED_ROW * chart.ratio) drawLabels(chart, context);
  if (chart.selected !== null) drawSelected(chart, context);
  drawScroll(chart, context);
  if (chart.window.cursor !== null) {
    line(context, chart, chart.window.cursor, cssColour("--muted"), []);
  }
}

/**
 * Show which of the rows are in view, where not all of them are.
 * @param {Gantt} chart @param {CanvasRenderingContext2D} context
 */
function drawScroll(chart, context) {
  const { frame, ratio, data } = chart;
  const whole = fullHeight(data, frame);
  if (whole <= frame.height) return;
  const length = Math.max((frame.height / whole) * frame.height, 16 * ratio);
  const y = (frame.top / (whole - frame.height)) * (frame.height - length);
  context.fillStyle = cssColour("--ink");
  context.globalAlpha = 0.45;
  context.fillRect(frame.width - 6 * ratio, y, 4 * ratio, length);
  context.globalAlpha = 1;
}

/** @param {Gantt} chart @param {CanvasRenderingContext2D} context */
function drawLabels(chart, context) {
  const { data, frame, ratio } = chart;
  const { column } = data;
  context.font = `${Math.min(frame.rowHeight - 4 * ratio, 11 * ratio)}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  const least_s = (NARROWEST_LABEL * ratio * (frame.to - frame.from)) / frame.width;
  let drawn = 0;
  for (let track = 0; track < column.track_gpu.length && drawn < MOST_LABELS; track += 1) {
    const gpu = column.track_gpu[track];
    const y = rowTop(data, frame, gpu) - frame.top;
    if (y + frame.rowHeight <= 0 || column.gpu_lanes[gpu] > 1) continue;
    if (y >= frame.height) break;
    const past = column.track_bar[track + 1];
    let bar = firstAbove(data.barEnd, frame.from, column.track_bar[track], past);
    for (; bar < past && data.barStart[bar] < frame.to; bar += 1) {
      if (data.barEnd[bar] - data.barStart[bar] < least_s) continue;
      drawn += drawLabel(chart, context, bar, y);
    }
  }
}

/** @param {Gantt} chart @param {CanvasRenderingContext2D} context @param {number} bar @param {number} y */
function drawLabel(chart, context, bar, y) {
  const { frame, ratio } = chart;
  const box = boxOf(chart, bar);
  const left = Math.max(box.x, 0);
  const room = Math.min(box.x + box.width, frame.width) - left - 8 * ratio;
  if (room < NARROWEST_LABEL * ratio - 8 * ratio) return 0;
  const text = jobId(chart.data, chart.data.barJob[bar]);
  if (context.measureText(text).width > room) return 0;
  const colour = chart.colours.pixels[chart.data.barJob[bar]];
  context.fillStyle = inkOn([colour & 255, (colour >> 8) & 255, (colour >> 16) & 255]);
  context.fillText(text, left + 4 * ratio, y + frame.rowHeight / 2);
  return 1;
}

/** @param {Gantt} chart @param {CanvasRenderingContext2D} context */
function drawSelected(chart, context) {
  const { ratio, frame, data } = chart;
  const ink = cssColour("--ink");
  const row = /** @type {number} */ (chart.selected);
  context.fillStyle = cssColour("--card");
  context.globalAlpha = 0.45;
  context.fillRect(0, 0, frame.width, frame.height);
  context.globalAlpha = 1;
  const colour = chart.colours.pixels[row];
  context.fillStyle = `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
  context.strokeStyle = ink;
  context.lineWidth = ratio;
  for (const bar of chart.selectedBars) {
    const box = boxOf(chart, bar);
    if (box.x + box.width < 0 || box.x > frame.width || box.y + box.height < 0 || box.y > frame.height) continue;
    const width = Math.max(box.width, 3 * ratio);
    const height = Math.max(box.height - (frame.rowHeight >= 6 ? 1 : 0), 2 * ratio);
    context.fillRect(box.x, box.y, width, height);
    context.strokeRect(box.x - 0.5, box.y - 0.5, width + 1, height + 1);
  }
  line(context, chart, data.column.job_submit[row], ink, [4 * ratio, 3 * ratio]);
  const start = data.column.job_start[row];
  if (!Number.isNaN(start)) line(context, chart, start, ink, []);
}

/**
 * A line from top to bottom at a moment.
 * @param {CanvasRenderingContext2D} context @param {Gantt} chart
 * @param {number} time_s @param {string} colour @param {number[]} dash
 */
function line(context, chart, time_s, colour, dash) {
  const { frame, ratio } = chart;
  const x = Math.round(((time_s - frame.from) / (frame.to - frame.from)) * frame.width) + 0.5;
  if (x < -1 || x > frame.width + 1) return;
  context.strokeStyle = colour;
  context.lineWidth = ratio;
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, frame.height);
  context.stroke();
  context.setLineDash([]);
}

/**
 * Name the nodes, as many as there is room for.
 * @param {Gantt} chart
 */
export function drawGutter(chart) {
  const context = chart.gutter.getContext("2d");
  if (!context) return;
  const { data, frame, ratio } = chart;
  const { about, column } = data;
  const { width, height } = chart.gutter;
  context.clearRect(0, 0, width, height);
  context.font = `${11 * ratio}px system-ui, sans-serif`;
  context.textBaseline = "top";
  context.textAlign = "right";
  const [ink, muted, rule] = ["--ink", "--muted", "--line"].map(cssColour);
  let free = 0; // height from which there is room again
  for (let node = 0; node < column.node_gpus.length; node += 1) {
    const top = rowTop(data, frame, data.nodeFirstGpu[node]) - frame.top;
    const bottom = rowTop(data, frame, data.nodeFirstGpu[node + 1] - 1) + frame.rowHeight - frame.top;
    if (bottom <= 0) continue;
    if (top >= height) break;
    const y = Math.max(top, 0);
    if (y < free || height - y < 11 * ratio) continue;
    free = y + 15 * ratio;
    const kind = about.gpu_types[column.node_type[node]];
    const isNewKind = node === 0 || column.node_type[node - 1] !== column.node_type[node];
    const name = about.is_pool ? "pool" : width < 70 * ratio ? String(node) : `node ${node}`;
    context.fillStyle = ink;
    context.fillText(name, width - 8 * ratio, y + 2 * ratio, width - 8 * ratio);
    const second = Math.min(bottom, height) - y >= 28 * ratio;
    if (second && width >= 50 * ratio) {
      context.fillStyle = muted;
      context.fillText(kind, width - 8 * ratio, y + 15 * ratio, width - 8 * ratio);
      free = y + 29 * ratio;
    }
    if (frame.gap === 0 || isNewKind) {
      context.fillStyle = rule;
      context.fillRect(width - 5 * ratio, y, 5 * ratio, ratio);
    }
  }
}
