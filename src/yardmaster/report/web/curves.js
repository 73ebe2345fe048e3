// Curves over steps or time, drawn by uPlot: several runs as lines or as a band, smoothed or not.

import uPlot from "./vendor/uPlot.js";
import { tableOf } from "./chart.js";
import { fill, h } from "./dom.js";
import { csvText, save } from "./download.js";
import { look } from "./looks.js";
import { rgb } from "./palette.js";
import { cssColour, isDark, onThemeChange } from "./theme.js";
import { figure } from "./words.js";

/** It comes without types. @type {any} */
const Plot = uPlot;

const HEIGHT_PX = 220;
const NARROWEST_PX = 240;
const TABLE_ROWS = 60;
const BAND_ALPHA = "38";
const RAW_ALPHA = "59";
/** How far colours go towards white on a dark page. */
const LIGHTER = 0.35;

/**
 * One line: `x` ascending, `y` null where there is nothing.
 * @typedef {{name: string, x: number[], y: (number | null)[], look?: number}} Series
 * @typedef {{name: string, value: number}} Reference a level to compare with, drawn across
 * @typedef {{series: Series[], references?: Reference[], smoothing?: number, band?: boolean}} Data
 *   `smoothing`: 0 (as measured) … 1; `band`: all lines as one mean between lowest and highest
 * @typedef {{title: string, x: string, caption?: string, height?: number, from0?: boolean,
 *            stepped?: boolean, format?: (value: number | null | undefined) => string,
 *            formatX?: (value: number) => string}} Options
 * @typedef {{name: string, y: (number | null)[], colour: string, dash?: number[], width?: number,
 *            raw?: boolean, points?: boolean}} Line
 */

/**
 * Draw curves into an element.
 * @param {HTMLElement} host
 * @param {Data} data
 * @param {Options} options
 * @returns {{update: (data: Data) => void, destroy: () => void}}
 */
export function curves(host, data, options) {
  const plot = h("div", { class: "curve-plot", tabindex: "0", role: "img" });
  const told = h("p", { class: "curve-told small muted", "aria-live": "off" });
  const table = h("div", { class: "scroll" });
  const details = h("details", { class: "numbers" }, h("summary", {}, "Numbers"), table);
  const element = h("figure", { class: "chart card curves" },
    h("div", { class: "chart-head" }, h("h3", {}, options.title), buttons(options.title, () => canvasOf(plot), () => numbers())),
    h("div", { class: "plot-area" }, plot), told,
    options.caption ? h("figcaption", {}, options.caption) : null, details);
  host.replaceChildren(element);

  let current = data;
  /** @type {{xs: number[], lines: Line[]}} */
  let drawn = { xs: [], lines: [] };
  /** @type {any} */
  let chart = null;
  let shape = "";
  let at = -1;
  let isZoomed = false;

  const numbers = () => ({
    columns: [options.x, ...drawn.lines.map((line) => line.name)],
    rows: drawn.xs.map((x, place) => [x, ...drawn.lines.map((line) => line.y[place] ?? null)]),
  });

  function redraw(/** @type {boolean} */ anew = false) {
    drawn = linesOf(current);
    const next = JSON.stringify(drawn.lines.map((line) => [line.name, line.colour, line.dash, line.raw]));
    const values = [drawn.xs, ...drawn.lines.map((line) => line.y)];
    if (chart && !anew && next === shape) {
      chart.setData(values, !isZoomed); // what somebody zoomed into stays where it is
      if (isZoomed) chart.redraw();
    } else {
      chart?.destroy();
      isZoomed = false;
      const zoom = (/** @type {any} */ u) => { isZoomed = u.select.width > 0; };
      chart = new Plot({ ...configuration(drawn.lines, current, options, widthOf(plot)), hooks: { setSelect: [zoom] } }, values, plot);
      shape = next;
    }
    plot.setAttribute("aria-label", summary(options, drawn));
    plot.dataset.last = String(drawn.xs.at(-1) ?? "");
    if (at < 0) tell(drawn.xs.length - 1);
    if (details.open) fillTable();
  }

  /** Say the values at one place. @param {number} place */
  function tell(place) {
    if (place < 0 || place >= drawn.xs.length) {
      fill(told, drawn.xs.length ? "" : "Nothing yet.");
      return;
    }
    const shown = drawn.lines.filter((line) => !line.raw);
    const formatX = options.formatX ?? figure;
    fill(told, h("span", {}, `${options.x} ${formatX(drawn.xs[place])}`),
      ...shown.map((line) => h("span", { class: "curve-value" }, swatch(line),
        `${line.name} ${(options.format ?? figure)(valueNear(line.y, place))}`)));
  }

  function fillTable() {
    const all = numbers();
    const every = Math.max(Math.ceil(all.rows.length / TABLE_ROWS), 1);
    fill(table, tableOf({ columns: all.columns, rows: all.rows.filter((_, place) => place % every === 0) }));
  }

  const observer = new ResizeObserver(() => {
    if (chart && Math.abs(widthOf(plot) - chart.width) > 1) chart.setSize({ width: widthOf(plot), height: options.height ?? HEIGHT_PX });
  });
  observer.observe(plot);
  details.addEventListener("toggle", () => details.open && fillTable());
  plot.addEventListener("pointermove", () => {
    at = chart?.cursor.idx ?? -1;
    tell(at < 0 ? drawn.xs.length - 1 : at);
  });
  plot.addEventListener("dblclick", () => { isZoomed = false; });
  plot.addEventListener("pointerleave", () => {
    at = -1;
    tell(drawn.xs.length - 1);
  });
  plot.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && isZoomed) redraw(true);
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || !drawn.xs.length) return;
    event.preventDefault();
    const from = at < 0 ? drawn.xs.length - 1 : at;
    at = Math.min(Math.max(from + step, 0), drawn.xs.length - 1);
    told.setAttribute("aria-live", "polite");
    chart.setCursor({ left: chart.valToPos(drawn.xs[at], "x"), top: 1 });
    tell(at);
  });
  plot.addEventListener("blur", () => told.setAttribute("aria-live", "off"));
  const stopTheme = onThemeChange(() => redraw(true));
  redraw(true);
  return {
    update(next) {
      current = next;
      redraw();
    },
    destroy() {
      stopTheme();
      observer.disconnect();
      chart?.destroy();
      element.remove();
    },
  };
}

/**
 * What is drawn of the data: for a band lowest, highest and mean; else every series, with the raw
 * values faint behind where they are smoothed.
 * @param {Data} data
 * @returns {{xs: number[], lines: Line[]}}
 */
function linesOf({ series, references = [], smoothing = 0, band = false }) {
  const several = series.filter((one) => one.x.length > 0);
  const xs = [...new Set(several.flatMap((one) => one.x))].sort((a, b) => a - b);
  /** @type {Line[]} */
  let lines;
  if (band && several.length > 1) {
    lines = bandOf(several, xs, smoothing);
  } else {
    lines = series.flatMap((one, n) => lineOf(one, one.look ?? n, xs, smoothing));
  }
  references.forEach((one, n) => lines.push({
    name: one.name, y: xs.map(() => one.value), colour: tone(n + 3), dash: [6, 4], width: 1.2,
  }));
  return { xs, lines };
}

/**
 * @param {Series} one @param {number} n @param {number[]} xs @param {number} smoothing
 * @returns {Line[]}
 */
function lineOf(one, n, xs, smoothing) {
  const colour = tone(n);
  const points = one.x.length < 2;
  const exact = onto(xs, one.x, one.y);
  if (smoothing <= 0) return [{ name: one.name, y: exact, colour, points }];
  return [
    { name: `${one.name} (as measured)`, y: exact, colour: colour + RAW_ALPHA, width: 1, raw: true },
    { name: one.name, y: onto(xs, one.x, smoothed(one.y, smoothing)), colour, points },
  ];
}

/**
 * @param {Series[]} several @param {number[]} xs @param {number} smoothing
 * @returns {Line[]}
 */
function bandOf(several, xs, smoothing) {
  const colour = tone(0);
  const rows = several.map((one) => between(xs, one.x, smoothed(one.y, smoothing)));
  const over = (/** @type {(values: number[]) => number} */ combine) => xs.map((_, place) => {
    const values = rows.map((row) => row[place]).filter((value) => value !== null);
    return values.length ? combine(/** @type {number[]} */ (values)) : null;
  });
  const mean = (/** @type {number[]} */ values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  return [
    { name: `lowest of ${several.length}`, y: over((values) => Math.min(...values)), colour: colour + RAW_ALPHA, width: 1, raw: true },
    { name: `highest of ${several.length}`, y: over((values) => Math.max(...values)), colour: colour + RAW_ALPHA, width: 1, raw: true },
    { name: `mean of ${several.length}`, y: over(mean), colour },
  ];
}

/**
 * Exponential smoothing that does not begin at 0: 0 leaves values as they are, towards 1 they
 * change slowly.
 * @param {(number | null)[]} values @param {number} weight
 */
export function smoothed(values, weight) {
  if (weight <= 0) return values;
  let sum = 0, total = 0;
  return values.map((value) => {
    if (value === null || value === undefined) return null;
    sum = sum * weight + value * (1 - weight);
    total = total * weight + (1 - weight);
    return sum / total;
  });
}

/**
 * Values at their own places of a longer axis; undefined elsewhere, which lines pass over.
 * @param {number[]} xs @param {number[]} x @param {(number | null)[]} y
 * @returns {any[]}
 */
function onto(xs, x, y) {
  if (xs.length === x.length) return y;
  const found = new Map(x.map((value, place) => [value, y[place]]));
  return xs.map((value) => (found.has(value) ? found.get(value) : undefined));
}

/**
 * Values read between measurements; null before the first and after the last.
 * @param {number[]} xs @param {number[]} x @param {(number | null)[]} y
 * @returns {(number | null)[]}
 */
function between(xs, x, y) {
  const known = x.map((_, place) => place).filter((place) => y[place] !== null && y[place] !== undefined);
  let next = 0;
  return xs.map((value) => {
    while (next < known.length && x[known[next]] < value) next += 1;
    if (next >= known.length) return null;
    const after = known[next];
    if (x[after] === value) return y[after];
    if (next === 0) return null;
    const before = known[next - 1];
    const share = (value - x[before]) / (x[after] - x[before]);
    return /** @type {number} */ (y[before]) + share * (/** @type {number} */ (y[after]) - /** @type {number} */ (y[before]));
  });
}

/**
 * @param {Line[]} lines @param {Data} data @param {Options} options @param {number} width
 */
function configuration(lines, data, options, width) {
  const ink = cssColour("--muted"), line = cssColour("--line");
  const isBand = Boolean(data.band) && lines[0]?.name.startsWith("lowest of");
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif" };
  const { format, formatX } = options;
  return {
    width,
    height: options.height ?? HEIGHT_PX,
    legend: { show: false },
    cursor: { points: { size: 6 }, drag: { x: true, y: false } },
    scales: {
      x: { time: false },
      y: { range: (/** @type {any} */ _u, /** @type {number} */ low, /** @type {number} */ high) => rangeOf(low, high, options) },
    },
    axes: [
      { ...axis, values: (/** @type {any} */ _u, /** @type {number[]} */ ticks) => (formatX ? ticks.map(formatX) : shortWords(ticks)), space: 60, size: 34 },
      { ...axis, values: (/** @type {any} */ _u, /** @type {number[]} */ ticks) => (format ? ticks.map((tick) => format(tick)) : tickWords(ticks)), size: 62, space: 34 },
    ],
    series: [{}, ...lines.map((one) => ({
      label: one.name,
      stroke: one.colour,
      width: one.width ?? 1.8,
      dash: one.dash,
      spanGaps: true,
      points: { show: Boolean(one.points) },
      paths: options.stepped ? Plot.paths.stepped({ align: 1 }) : undefined,
    }))],
    bands: isBand ? [{ series: [2, 1], fill: tone(0) + BAND_ALPHA }] : [],
  };
}

/** @param {number} low @param {number} high @param {Options} options */
function rangeOf(low, high, options) {
  if (low === null || low === undefined || !Number.isFinite(low)) return [0, 1];
  const bottom = options.from0 ? Math.min(low, 0) : low;
  const span = high - bottom;
  const pad = (span > Math.abs(high) * 1e-9 ? span : Math.abs(high) || 1) * 0.06; // a level line has room too
  return [options.from0 && low >= 0 ? 0 : bottom - pad, high + pad];
}

/** Ticks with as many decimals as tell one from the next. @param {number[]} ticks */
export function tickWords(ticks) {
  const step = Number(Math.abs((ticks[1] ?? 0) - (ticks[0] ?? 0)).toPrecision(3));
  if (!step || step < 1e-5) return ticks.map(figure);
  const [digits, power] = step.toExponential().split("e");
  const places = Math.max((digits.split(".")[1] ?? "").length - Number(power), 0);
  // Adding 0 makes 0 of what would read −0.
  return ticks.map((tick) => (places ? (Number(tick.toFixed(places)) + 0).toFixed(places) : figure(tick)));
}

/** Ticks of steps in few letters: 20k, 1.5M. @param {number[]} ticks */
function shortWords(ticks) {
  const most = Math.max(...ticks.map(Math.abs));
  const [size, unit] = most >= 1e6 ? [1e6, "M"] : most >= 1e3 ? [1e3, "k"] : [1, ""];
  return tickWords(ticks.map((tick) => tick / size)).map((text, n) => (ticks[n] ? `${text}${unit}` : "0"));
}

/** A number of steps in few letters: 20k, 1.5M. @param {number} value */
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e3) return `${Number((value / 1e3).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3)));
}

/** @param {any[]} values @param {number} place */
function valueNear(values, place) {
  for (let at = place; at >= 0; at -= 1) {
    if (values[at] !== undefined && values[at] !== null) return values[at];
  }
  return null;
}

/** @param {Options} options @param {{xs: number[], lines: Line[]}} drawn */
function summary(options, { xs, lines }) {
  if (!xs.length) return `${options.title}: nothing yet.`;
  const format = options.format ?? figure;
  const words = lines.filter((line) => !line.raw).map((line) => `${line.name} ${format(valueNear(line.y, xs.length - 1))}`);
  return `${options.title}, over ${options.x} up to ${(options.formatX ?? short)(xs[xs.length - 1])}. Last: ${words.join("; ")}. Arrow keys read values.`;
}

/** @param {Line} line */
function swatch(line) {
  const mark = h("span", { class: line.dash ? "curve-key dashed" : "curve-key", "aria-hidden": "true" });
  mark.style.borderColor = line.colour;
  return mark;
}

/** The n-th look's colour, lighter on a dark page. @param {number} n */
function tone(n) {
  const { colour } = look(n);
  if (!isDark()) return colour;
  const mixed = rgb(colour).map((part) => Math.round(part + (255 - part) * LIGHTER));
  return `#${mixed.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** @param {HTMLElement} plot */
function widthOf(plot) {
  return Math.max(Math.floor(plot.clientWidth), NARROWEST_PX);
}

/** @param {HTMLElement} plot */
function canvasOf(plot) {
  return plot.querySelector("canvas");
}

/**
 * @param {string} title @param {() => HTMLCanvasElement | null} canvas
 * @param {() => import("./download.js").Numbers} numbers
 */
function buttons(title, canvas, numbers) {
  const file = title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "") || "curves";
  const button = (/** @type {string} */ label, /** @type {() => void} */ action) =>
    h("button", { type: "button", class: "quiet download", "aria-label": `Download ${title} as ${label}`, onclick: action }, label);
  return h("span", { class: "downloads" },
    button("PNG", () => canvas()?.toBlob((blob) => blob && save(`${file}.png`, blob))),
    button("CSV", () => save(`${file}.csv`, new Blob([csvText(numbers())], { type: "text/csv" }))));
}
