// Which line is whose, and which are shown.

import { fitted } from "./axes.js";
import { h, s } from "./dom.js";
import { markerPath } from "./looks.js";

/**
 * A short piece of a scheduler's line with its marker.
 * @param {import("./looks.js").Look} look
 */
export function sample(look) {
  return s("svg", { viewBox: "0 0 34 14", class: "sample", "aria-hidden": "true" },
    s("path", { class: "curve", d: "M1 7H33", stroke: look.colour, "stroke-dasharray": look.dash || null }),
    s("path", { d: markerPath(look.marker, 17, 7, 4.2), fill: look.colour }));
}

/**
 * The names of schedulers within a figure, so that it can be read where the page is not.
 * @param {{name: string, look: import("./looks.js").Look}[]} series
 * @param {number} width @param {number} top
 * @returns {{element: SVGGElement, height: number}}
 */
export function legendRow(series, width, top) {
  const element = s("g", { class: "key", "aria-hidden": "true" });
  let x = 4, y = top + 10;
  for (const { name, look } of series) {
    const text = fitted(name, width - 60);
    const wide = text.length * 6.8 + 52;
    if (x > 4 && x + wide > width) [x, y] = [4, y + 18];
    element.append(s("path", { class: "curve", d: `M${x} ${y}h30`, stroke: look.colour, "stroke-dasharray": look.dash || null }),
      s("path", { d: markerPath(look.marker, x + 15, y, 4), fill: look.colour }),
      s("text", { x: x + 36, y: y + 4 }, text));
    x += wide;
  }
  return { element, height: y + 12 - top };
}

/**
 * The names of schedulers with their looks; each can be taken in and out of all charts.
 * @param {{name: string, look: import("./looks.js").Look}[]} series
 * @param {Set<number>} shown changed in place
 * @param {() => void} changed
 */
export function choices(series, shown, changed) {
  return h("fieldset", { class: "choices" }, h("legend", {}, "Schedulers shown"),
    ...series.map((one, place) => h("label", {},
      h("input", {
        type: "checkbox", checked: shown.has(place) ? true : null,
        onchange: (/** @type {any} */ event) => {
          if (event.target.checked) shown.add(place);
          else if (shown.size > 1) shown.delete(place);
          else event.target.checked = true; // a chart of nothing helps nobody
          changed();
        },
      }), sample(one.look), h("span", {}, one.name))),
    shown.size < series.length ? h("p", { class: "muted small" }, "Drawn at first are the baseline and the best of the others, as many lines as the eye can follow; tick more to see them.") : null);
}
