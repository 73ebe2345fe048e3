// Values over time above a Gantt chart: thin strips that move with it.

import { h } from "./dom.js";
import { calendar, clock, timeTicks } from "./scales.js";
import { firstAbove } from "./schedule_data.js";
import { cssColour, onThemeChange } from "./theme.js";
import { figure } from "./words.js";

/** @typedef {import("./time_window.js").TimeWindow} TimeWindow */
/**
 * A step function: `edges` are one more than `values`.
 * @typedef {{name: string, title: string, unit: string, top: number | null, mean: number | null, most: number | null,
 *            edges: Float64Array, values: Float32Array}} Strip
 */

/**
 * Draw one value over time; the mean over every pixel, so that areas stay what they are.
 * @param {HTMLElement} host @param {Strip} strip @param {{window: TimeWindow, colour?: string}} options
 */
export function strip(host, strip, options) {
  const { window } = options;
  const now = h("span", { class: "strip-now" });
  const canvas = h("canvas", {
    class: "strip-plot", role: "img",
    "aria-label": `${strip.title} over time: ${inUnit(strip.mean, strip.unit)} on average, at most ${inUnit(strip.most, strip.unit)}.`,
  });
  host.replaceChildren(h("div", { class: "strip" },
    h("div", { class: "strip-label" }, h("span", { class: "strip-title" }, strip.title), now), h("div", { class: "strip-field" }, canvas)));
  let steps = strip;
  let area = areas(steps);
  const draw = () => drawStrip(canvas, steps, area, options);
  const tell = () => {
    const at = window.cursor;
    now.textContent = at === null ? `⌀ ${inUnit(steps.mean, steps.unit)}` : inUnit(valueAt(steps, at), steps.unit);
  };
  const redraw = frameOf(() => { draw(); tell(); });
  const stops = [window.watch(redraw), onThemeChange(redraw)];
  const observer = new ResizeObserver(redraw);
  observer.observe(canvas);
  tell();
  return {
    /** @param {Strip} next */
    update(next) {
      steps = next;
      area = areas(next);
      redraw();
    },
    destroy() {
      observer.disconnect();
      for (const stop of stops) stop();
      host.replaceChildren();
    },
  };
}

/**
 * Draw the times along the top of a chart.
 * @param {HTMLElement} host
 * @param {{window: TimeWindow, begins?: string}} options `begins`: date and time of second 0
 */
export function timeAxis(host, { window, begins = "" }) {
  const canvas = h("canvas", { class: "axis-plot", role: "img" });
  const label = h("span", { class: "strip-now" });
  host.replaceChildren(h("div", { class: "strip axis" }, h("div", { class: "strip-label" }, label), h("div", { class: "strip-field" }, canvas)));
  const redraw = frameOf(() => {
    drawAxis(canvas, window, begins);
    canvas.setAttribute("aria-label", `Time from ${clock(window.from, 60)} to ${clock(window.to, 60)}, days, hours and minutes.`);
    label.textContent = window.cursor === null ? "time" : calendar(begins, window.cursor, window.span < 7200 ? 1 : 60);
  });
  const stops = [window.watch(redraw), onThemeChange(redraw)];
  const observer = new ResizeObserver(redraw);
  observer.observe(canvas);
  return {
    update() { redraw(); },
    destroy() {
      observer.disconnect();
      for (const stop of stops) stop();
      host.replaceChildren();
    },
  };
}

/**
 * Call at most once a frame.
 * @param {() => void} action
 */
function frameOf(action) {
  let pending = 0;
  return () => {
    if (!pending) pending = requestAnimationFrame(() => { pending = 0; action(); });
  };
}

/**
 * The area under the steps up to each edge.
 * @param {Strip} steps
 */
function areas({ edges, values }) {
  const area = new Float64Array(edges.length);
  for (let step = 0; step < values.length; step += 1) {
    const value = Number.isNaN(values[step]) ? 0 : values[step];
    area[step + 1] = area[step] + value * (edges[step + 1] - edges[step]);
  }
  return area;
}

/** @param {Strip} steps @param {Float64Array} area @param {number} time */
function areaUpTo({ edges, values }, area, time) {
  const step = Math.min(Math.max(firstAbove(edges, time, 0, edges.length) - 1, 0), values.length - 1);
  const inside = Math.min(Math.max(time, edges[0]), edges[edges.length - 1]) - edges[step];
  return area[step] + values[step] * inside;
}

/** @param {Strip} steps @param {number} time_s */
export function valueAt({ edges, values }, time_s) {
  const step = firstAbove(edges, time_s, 0, edges.length) - 1;
  return step < 0 || step >= values.length ? null : values[step];
}

/**
 * The largest value within a span of time: means over pixels hide how high a short peak is.
 * @param {Strip} steps @param {number} from @param {number} to
 */
export function mostWithin({ edges, values }, from, to) {
  let most = 0;
  for (let step = Math.max(firstAbove(edges, from, 0, edges.length) - 1, 0); step < values.length && edges[step] < to; step += 1) {
    if (values[step] > most) most = values[step];
  }
  return most;
}

/**
 * Size a canvas to its place on the screen.
 * @param {HTMLCanvasElement} canvas
 */
function sized(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const width = Math.max(Math.floor(canvas.clientWidth * ratio), 1);
  const height = Math.max(Math.floor(canvas.clientHeight * ratio), 1);
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.clearRect(0, 0, width, height);
  return { context, width, height, ratio };
}

/** @param {HTMLCanvasElement} canvas @param {Strip} steps @param {Float64Array} area @param {{window: TimeWindow, colour?: string}} options */
function drawStrip(canvas, steps, area, options) {
  const { context, width, height, ratio } = sized(canvas);
  const { from, to, span, cursor } = options.window;
  const means = new Float64Array(width);
  let before = areaUpTo(steps, area, from);
  for (let x = 0; x < width; x += 1) {
    const after = areaUpTo(steps, area, from + ((x + 1) / width) * (to - from));
    means[x] = ((after - before) / (to - from)) * width;
    before = after;
  }
  const top = steps.top ?? (mostWithin(steps, from, to) || 1);
  const colour = options.colour ?? cssColour("--accent");
  const floor = height - ratio;
  context.beginPath();
  context.moveTo(0, floor);
  for (let x = 0; x < width; x += 1) {
    const y = floor - Math.min(means[x] / top, 1) * (floor - 2 * ratio);
    context.lineTo(x, y);
    context.lineTo(x + 1, y);
  }
  context.lineTo(width, floor);
  context.globalAlpha = 0.28;
  context.fillStyle = colour;
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = colour;
  context.lineWidth = ratio;
  context.stroke();
  context.fillStyle = cssColour("--muted");
  context.font = `${10 * ratio}px system-ui, sans-serif`;
  context.textBaseline = "top";
  context.textAlign = "right";
  context.strokeStyle = cssColour("--card"); // a halo, since the strip may be as high as the words
  context.lineWidth = 3 * ratio;
  context.lineJoin = "round";
  context.strokeText(inUnit(top, steps.unit), width - 4 * ratio, 3 * ratio);
  context.fillText(inUnit(top, steps.unit), width - 4 * ratio, 3 * ratio);
  if (cursor !== null) {
    context.fillRect(Math.round(((cursor - from) / span) * width), 0, ratio, height);
  }
}

/** @param {HTMLCanvasElement} canvas @param {TimeWindow} window @param {string} begins */
function drawAxis(canvas, window, begins) {
  const { context, width, height, ratio } = sized(canvas);
  const marks = timeTicks(window.from, window.to, Math.max(Math.floor(width / ratio / 85), 2));
  const step = marks.length > 1 ? marks[1] - marks[0] : window.span;
  context.font = `${11 * ratio}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  for (const mark of marks) {
    const x = Math.round(((mark - window.from) / window.span) * width);
    context.fillStyle = cssColour("--line");
    context.fillRect(x, 0, ratio, height);
    context.fillStyle = cssColour("--muted");
    const text = calendar(begins, mark, step);
    if (x + 4 * ratio + context.measureText(text).width < width) context.fillText(text, x + 4 * ratio, height / 2);
  }
}

/** @param {number | null} value @param {string} unit */
function inUnit(value, unit) {
  if (value === null) return "–";
  if (unit === "W" && Math.abs(value) >= 1000) return `${figure(value / 1000)} kW`;
  // There is room for a few characters, and a thousandth of a job is nothing anybody looks for.
  const words = value > 0 && value < 0.01 ? "< 0.01" : figure(Number(value.toPrecision(value < 1 ? 2 : 4)));
  return `${words} ${words === "1" ? unit.replace(/s$/, "") : unit}`;
}
