// Moving about in a Gantt chart: mouse, wheel, touch and keys.

/** @typedef {import("./gantt.js").Gantt} Gantt */

/** Pixels that a finger or the mouse may move in a click. */
const STILL = 5;

/**
 * Follow what people do on the chart.
 * @param {HTMLCanvasElement} plot @param {Gantt} chart
 * @returns {() => void} stops it
 */
export function listen(plot, chart) {
  const stop = new AbortController();
  const { signal } = stop;
  /** @type {Map<number, {x: number, y: number}>} */
  const fingers = new Map();
  let travelled = 0;

  const place = (/** @type {MouseEvent} */ event) => {
    const box = plot.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  plot.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    plot.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, place(event));
    if (fingers.size === 1) travelled = 0;
  }, { signal });

  plot.addEventListener("pointermove", (event) => {
    const now = place(event);
    const before = fingers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") chart.hover(now.x, now.y);
      return;
    }
    travelled += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (fingers.size === 2) pinch(chart, plot, fingers, event.pointerId, now);
    else if (travelled > STILL) {
      chart.hover(null);
      chart.window.pan((before.x - now.x) / plot.clientWidth);
      chart.panRows(before.y - now.y);
    }
    fingers.set(event.pointerId, now);
  }, { signal });

  const lift = (/** @type {PointerEvent} */ event) => {
    const was = fingers.delete(event.pointerId);
    if (was && event.type === "pointerup" && travelled <= STILL && fingers.size === 0) {
      const { x, y } = place(event);
      chart.click(x, y);
    }
  };
  plot.addEventListener("pointerup", lift, { signal });
  plot.addEventListener("pointercancel", lift, { signal });
  plot.addEventListener("pointerleave", () => chart.hover(null), { signal });
  plot.addEventListener("dblclick", (event) => chart.window.zoom(0.25, chart.timeAt(place(event).x)), { signal });

  plot.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { x, y } = place(event);
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? plot.clientHeight : 1;
    if (event.altKey) chart.zoomRows(event.deltaY < 0 ? 1.25 : 0.8, y);
    else if (event.shiftKey && !event.ctrlKey) chart.panRows((event.deltaY || event.deltaX) * unit);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) chart.window.pan((event.deltaX * unit) / plot.clientWidth);
    else chart.window.zoom(Math.exp(Math.min(Math.max(event.deltaY * unit, -240), 240) * 0.0025), chart.timeAt(x));
  }, { signal, passive: false });

  plot.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey) return;
    if (press(event, chart)) event.preventDefault();
  }, { signal });
  return () => stop.abort();
}

/**
 * Two fingers: as far as they move apart in time, and up or down, so do times and rows.
 * @param {Gantt} chart @param {HTMLElement} plot
 * @param {Map<number, {x: number, y: number}>} fingers @param {number} moved @param {{x: number, y: number}} now
 */
function pinch(chart, plot, fingers, moved, now) {
  const [first, second] = [...fingers.values()];
  const still = [...fingers.entries()].find(([id]) => id !== moved)?.[1] ?? now;
  const before = Math.hypot(first.x - second.x, first.y - second.y);
  const after = Math.hypot(now.x - still.x, now.y - still.y);
  if (before > 10 && after > 10) chart.window.zoom(before / after, chart.timeAt((now.x + still.x) / 2));
  const was = fingers.get(moved) ?? now;
  chart.window.pan((was.x - now.x) / 2 / plot.clientWidth);
  chart.panRows((was.y - now.y) / 2);
}

/**
 * @param {KeyboardEvent} event @param {Gantt} chart
 * @returns {boolean} whether the key means something here
 */
export function press(event, chart) {
  const rows = chart.plot.clientHeight * 0.2;
  /** @type {Object<string, () => void>} */
  const actions = {
    ArrowLeft: () => chart.window.pan(-0.15),
    ArrowRight: () => chart.window.pan(0.15),
    a: () => chart.window.pan(-0.15),
    d: () => chart.window.pan(0.15),
    ArrowUp: () => (event.shiftKey ? chart.zoomRows(1.25) : chart.panRows(-rows)),
    ArrowDown: () => (event.shiftKey ? chart.zoomRows(0.8) : chart.panRows(rows)),
    PageUp: () => chart.panRows(-rows * 4),
    PageDown: () => chart.panRows(rows * 4),
    "+": () => chart.window.zoom(0.7),
    "=": () => chart.window.zoom(0.7),
    w: () => chart.window.zoom(0.7),
    "-": () => chart.window.zoom(1 / 0.7),
    s: () => chart.window.zoom(1 / 0.7),
    Home: () => chart.window.set(chart.window.first, chart.window.first + chart.window.span),
    End: () => chart.window.set(chart.window.last - chart.window.span, chart.window.last),
    0: () => chart.reset(),
    j: () => chart.step(1),
    k: () => chart.step(-1),
    e: () => chart.nextStop(),
    Escape: () => chart.select(null),
  };
  if (!Object.hasOwn(actions, event.key)) return false;
  actions[event.key]();
  return true;
}

/** @type {[string, string][]} what the keys do, for the list of keys */
export const GANTT_KEYS = [
  ["← →", "earlier, later (also A D)"],
  ["+ −", "closer, further (also W S)"],
  ["↑ ↓", "other GPUs"],
  ["Shift ↑ ↓", "taller rows, lower rows"],
  ["0", "everything"],
  ["Home End", "the begin, the end"],
  ["j k", "the job that starts next, or before"],
  ["e", "the next job that was stopped"],
];
