// The frame of every chart: title, picture, caption, numbers as a table, downloads, tooltips, keys.

import { downloads } from "./download.js";
import { fill, h } from "./dom.js";
import { onThemeChange } from "./theme.js";

const NARROWEST_PX = 250;
const MOST_ROWS = 400;

/**
 * @typedef {import("./download.js").Numbers} Numbers
 * @typedef {{title: string, caption?: string, name?: string, heading?: string}} Words
 * @typedef {{svg: SVGSVGElement, numbers: Numbers, after?: Node}} Drawn
 * @typedef {{update: (data: any) => void, destroy: () => void}} Chart
 */

/**
 * Put a chart into its host; it is drawn anew when the data or the width change.
 * @param {HTMLElement} host
 * @param {any} data
 * @param {Words} words
 * @param {(data: any, width: number) => Drawn} draw
 * @returns {Chart}
 */
export function chart(host, data, words, draw) {
  const plot = h("div", { class: "plot" });
  const tip = h("div", { class: "tip", role: "status", hidden: true });
  const table = h("div", { class: "scroll" });
  const details = h("details", { class: "numbers" }, h("summary", {}, "Numbers"), table);
  /** @type {Numbers} */
  let numbers = { columns: [], rows: [] };
  const figure = () => /** @type {SVGSVGElement | null} */ (plot.querySelector("svg"));
  const element = h("figure", { class: "chart card" },
    h("div", { class: "chart-head" },
      h(words.heading === "h4" ? "h4" : "h3", {}, words.title), downloads(words.name ?? words.title, figure, () => numbers)),
    h("div", { class: "plot-area" }, plot, tip),
    words.caption ? h("figcaption", {}, words.caption) : null, details);
  host.replaceChildren(element);
  let width = 0;
  let current = data;

  function redraw() {
    width = Math.max(Math.round(plot.clientWidth), NARROWEST_PX);
    const drawn = draw(current, width);
    numbers = drawn.numbers;
    fill(plot, drawn.svg, drawn.after);
    tip.hidden = true;
    if (details.open) fill(table, tableOf(numbers));
    firstMark(plot);
  }

  const observer = new ResizeObserver(() => {
    if (plot.clientWidth && Math.abs(plot.clientWidth - width) > 1) redraw();
  });
  observer.observe(plot);
  details.addEventListener("toggle", () => details.open && fill(table, tableOf(numbers)));
  listen(plot, tip);
  const unwatch = onThemeChange(redraw);
  redraw();
  return {
    update(/** @type {any} */ next) {
      current = next;
      redraw();
    },
    destroy() {
      observer.disconnect();
      unwatch();
      element.remove();
    },
  };
}

/** @param {Numbers} numbers */
export function tableOf({ columns, rows }) {
  const cell = (/** @type {any} */ value, /** @type {number} */ place) => {
    const isNumber = typeof value === "number";
    const text = value === null || value === undefined ? "–" : isNumber ? Number(value.toPrecision(6)) : value;
    return place === 0 ? h("th", { scope: "row" }, text) : h("td", { class: isNumber ? "number" : null }, text);
  };
  const more = rows.length > MOST_ROWS ? h("caption", {}, `The first ${MOST_ROWS} of ${rows.length} rows; the CSV has all.`) : null;
  return h("table", {}, more,
    h("thead", {}, h("tr", {}, ...columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.slice(0, MOST_ROWS).map((row) => h("tr", {}, ...row.map(cell)))));
}

/** One mark of a chart is in the tab order; arrow keys lead to the others. @param {Element} plot */
function firstMark(plot) {
  plot.querySelector("[data-tip]")?.setAttribute("tabindex", "0");
}

/** @param {HTMLElement} plot @param {HTMLElement} tip */
function listen(plot, tip) {
  const markAt = (/** @type {Event} */ event) => /** @type {Element | null} */ (
    event.target instanceof Element ? event.target.closest("[data-tip]") : null);
  const show = (/** @type {Event} */ event) => {
    const mark = markAt(event);
    if (!mark) return hide();
    fill(tip, ...(mark.getAttribute("data-tip") ?? "").split("\n").map((line) => h("div", {}, line)));
    tip.hidden = false;
    const area = plot.getBoundingClientRect(), box = mark.getBoundingClientRect();
    const left = Math.min(Math.max(box.left + box.width / 2 - area.left - tip.offsetWidth / 2, 0), Math.max(area.width - tip.offsetWidth, 0));
    const above = box.top - area.top - tip.offsetHeight - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above < -30 ? box.bottom - area.top + 8 : above}px`;
  };
  const hide = () => { tip.hidden = true; };
  plot.addEventListener("pointerover", show);
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("focusin", show);
  plot.addEventListener("focusout", hide);
  plot.addEventListener("keydown", (event) => {
    const mark = markAt(event);
    if (event.key === "Escape") hide();
    if (event.key === "Enter" && mark) mark.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    const next = mark && neighbour(plot, mark, event.key);
    if (!next) return;
    event.preventDefault();
    mark.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    /** @type {any} */ (next).focus();
  });
}

/**
 * The mark an arrow key leads to: in a grid by rows and columns, else to the one before or after.
 * @param {Element} plot @param {Element} mark @param {string} key
 */
function neighbour(plot, mark, key) {
  const row = mark.getAttribute("data-row"), column = mark.getAttribute("data-column");
  if (row !== null && column !== null) {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key] ?? [0, 0];
    if (!down && !right) return null;
    return plot.querySelector(`[data-row="${Number(row) + down}"][data-column="${Number(column) + right}"]`);
  }
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key];
  if (!step) return null;
  const marks = [...plot.querySelectorAll("[data-tip]")];
  return marks[marks.indexOf(mark) + step] ?? null;
}
