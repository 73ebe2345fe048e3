// Filling the pixels of a Gantt chart. Nothing here knows of the page; it is quick because every
// track finds its first bar by bisection, bars are filled as runs of 32-bit pixels, and bars too
// short to be seen are leapt over.

import { firstAbove, isWhole } from "./schedule_data.js";

/** @typedef {import("./schedule_data.js").ScheduleData} ScheduleData */
/**
 * What is shown, in pixels of the canvas.
 * @typedef {{width: number, height: number, from: number, to: number, top: number,
 *            rowHeight: number, gap: number}} Frame
 *   `top`: how far the rows are scrolled; `gap`: between nodes.
 * @typedef {{paper: number, idle: number, away: number, preempted: number, failed: number}} Inks
 */

/**
 * The upper edge of a GPU's row, before scrolling.
 * @param {ScheduleData} data @param {Frame} frame @param {number} gpu
 */
export function rowTop(data, frame, gpu) {
  return gpu * frame.rowHeight + data.gpuNode[gpu] * frame.gap;
}

/**
 * How high all rows are together.
 * @param {ScheduleData} data @param {{rowHeight: number, gap: number}} frame
 */
export function fullHeight(data, frame) {
  return data.gpuNode.length * frame.rowHeight + Math.max(data.column.node_gpus.length - 1, 0) * frame.gap;
}

/**
 * The GPU at a height, and where inside its row; −1 in a gap or outside.
 * @param {ScheduleData} data @param {Frame} frame @param {number} y from the top of the canvas
 */
export function gpuAtHeight(data, frame, y) {
  const wanted = y + frame.top;
  let low = 0;
  let high = data.gpuNode.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (rowTop(data, frame, middle) <= wanted) low = middle;
    else high = middle - 1;
  }
  const inside = wanted - rowTop(data, frame, low);
  return inside >= 0 && inside < frame.rowHeight ? { gpu: low, share: inside / frame.rowHeight } : { gpu: -1, share: 0 };
}

/**
 * Fill a canvas's pixels with the bars in view.
 * @param {Uint32Array} pixels width × height of them
 * @param {ScheduleData} data @param {Frame} frame
 * @param {Uint32Array} colours one per job
 * @param {Inks} inks
 * @returns {number} how many bars were looked at
 */
export function paint(pixels, data, frame, colours, inks) {
  const { column, gpuNode } = data;
  pixels.fill(inks.paper);
  let seen = 0;
  let track = 0;
  const tracks = column.track_gpu.length;
  for (let gpu = 0; gpu < gpuNode.length; gpu += 1) {
    const y = rowTop(data, frame, gpu) - frame.top;
    const lanes = column.gpu_lanes[gpu];
    const firstTrack = track;
    track += lanes;
    if (y + frame.rowHeight <= 0) continue;
    if (y >= frame.height) break;
    const solid = frame.rowHeight >= 6 ? frame.rowHeight - 1 : frame.rowHeight; // a line of paper between rows
    fillRows(pixels, frame, y, solid, 0, frame.width, inks.idle);
    for (let lane = 0; lane < lanes && firstTrack + lane < tracks; lane += 1) {
      const laneTop = y + Math.floor((solid * lane) / lanes);
      const laneHeight = Math.max(Math.floor((solid * (lane + 1)) / lanes) - Math.floor((solid * lane) / lanes), 1);
      seen += paintTrack(pixels, data, frame, colours, inks, firstTrack + lane, laneTop, laneHeight);
    }
    if (lanes > 1) paintWhole(pixels, data, frame, colours, firstTrack, y, solid);
  }
  paintOutages(pixels, data, frame, inks);
  return seen;
}

/**
 * @param {Uint32Array} pixels @param {ScheduleData} data @param {Frame} frame
 * @param {Uint32Array} colours @param {Inks} inks
 * @param {number} track @param {number} y @param {number} height
 */
function paintTrack(pixels, data, frame, colours, inks, track, y, height) {
  const { barStart, barEnd, barJob, column } = data;
  const { width, from, to } = frame;
  const past = column.track_bar[track + 1];
  const scale = width / (to - from);
  const line = Math.max(y, 0);
  if (line >= frame.height || y + height <= 0) return 0;
  const base = line * width;
  let bar = firstAbove(barEnd, from, column.track_bar[track], past);
  let seen = 0;
  let painted = -1; // the last pixel of this line that has a bar
  while (bar < past && barStart[bar] < to) {
    const begin = Math.max(Math.floor((barStart[bar] - from) * scale), 0);
    const end = Math.min(Math.ceil((barEnd[bar] - from) * scale), width);
    seen += 1;
    const first = Math.max(begin, painted < begin ? begin : painted + 1);
    if (first < end) {
      const colour = colours[barJob[bar]];
      const room = end - first >= 4 && height >= 3 ? 1 : 0; // neighbours of one colour stay apart
      if (end - room - first === 1) pixels[base + first] = colour;
      else pixels.fill(colour, base + first, base + end - room);
      const cause = column.segment_cause[column.bar_segment[bar]];
      // A failure always shows; preemptions only where they leave something of the bars.
      if (cause === 2 || (cause === 1 && end - first >= 7)) {
        const mark = end - room - first >= 7 && height >= 3 ? 2 : 1;
        pixels.fill(cause === 1 ? inks.preempted : inks.failed, base + Math.max(end - room - mark, first), base + end - room);
      }
      painted = end - 1;
    }
    bar += 1;
    // Many bars within one pixel: leap to the first that reaches the next one.
    if (bar + 8 < past && (barEnd[bar + 7] - from) * scale <= painted + 1) {
      bar = leap(barEnd, from + (painted + 1) / scale, bar + 8, past);
    }
  }
  const bottom = Math.min(y + height, frame.height);
  for (let next = line + 1; next < bottom; next += 1) pixels.copyWithin(next * width, base, base + width);
  return seen;
}

/**
 * On a GPU that jobs share, let those that have all of it fill its row.
 * @param {Uint32Array} pixels @param {ScheduleData} data @param {Frame} frame
 * @param {Uint32Array} colours @param {number} track the GPU's first @param {number} y @param {number} height
 */
function paintWhole(pixels, data, frame, colours, track, y, height) {
  const { barStart, barEnd, barJob, column } = data;
  const scale = frame.width / (frame.to - frame.from);
  const past = column.track_bar[track + 1];
  let bar = firstAbove(barEnd, frame.from, column.track_bar[track], past);
  for (; bar < past && barStart[bar] < frame.to; bar += 1) {
    if (!isWhole(data, bar)) continue;
    const begin = Math.max(Math.floor((barStart[bar] - frame.from) * scale), 0);
    const end = Math.min(Math.ceil((barEnd[bar] - frame.from) * scale), frame.width);
    fillRows(pixels, frame, y, height, begin, end - begin >= 4 ? end - 1 : end, colours[barJob[bar]]);
  }
}

/**
 * The first index from `from` on whose value is larger than `wanted`, near ones quickly.
 * @param {Float64Array} values @param {number} wanted @param {number} from @param {number} to
 */
function leap(values, wanted, from, to) {
  let step = 8;
  let low = from;
  while (low + step < to && values[low + step] <= wanted) {
    low += step;
    step *= 2;
  }
  return firstAbove(values, wanted, low, Math.min(low + step + 1, to));
}

/**
 * Hatch the rows of nodes while they were away.
 * @param {Uint32Array} pixels @param {ScheduleData} data @param {Frame} frame @param {Inks} inks
 */
function paintOutages(pixels, data, frame, inks) {
  const { column } = data;
  const scale = frame.width / (frame.to - frame.from);
  for (let outage = 0; outage < column.outage_node.length; outage += 1) {
    const begin = Math.max(Math.floor((column.outage_begin[outage] - frame.from) * scale), 0);
    const end = Math.min(Math.max(Math.ceil((column.outage_end[outage] - frame.from) * scale), begin + 1), frame.width);
    if (begin >= end) continue;
    const node = column.outage_node[outage];
    const top = rowTop(data, frame, data.nodeFirstGpu[node]) - frame.top;
    const bottom = rowTop(data, frame, data.nodeFirstGpu[node + 1] - 1) + frame.rowHeight - frame.top;
    for (let y = Math.max(top, 0); y < Math.min(bottom, frame.height); y += 1) {
      for (let x = begin; x < end; x += 1) {
        if (((x + y) & 7) < 3) pixels[y * frame.width + x] = inks.away;
      }
    }
  }
}

/**
 * @param {Uint32Array} pixels @param {Frame} frame
 * @param {number} y @param {number} height @param {number} from @param {number} to @param {number} colour
 */
function fillRows(pixels, frame, y, height, from, to, colour) {
  for (let line = Math.max(y, 0); line < Math.min(y + height, frame.height); line += 1) {
    pixels.fill(colour, line * frame.width + from, line * frame.width + to);
  }
}
