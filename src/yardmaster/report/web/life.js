// One job under several schedulers: when it waited and when it ran, on one time axis.

import { axis, bottomAxis, fitted, nameWidth } from "./axes.js";
import { chart } from "./chart.js";
import { s } from "./dom.js";
import { duration, several } from "./words.js";

const ROW = 34;

/**
 * @typedef {{start_s: number, end_s: number, cause: string}} Segment
 * @typedef {{name: string, look: import("./looks.js").Look, submit_s: number, end_s: number | null, outcome: string, segments: Segment[]}} Life
 */

/**
 * Draw the life of a job under each scheduler: dotted while it waits, solid while it runs.
 * @param {HTMLElement} host @param {{lives: Life[]}} data @param {import("./chart.js").Words} words
 */
export function lives(host, data, words) {
  return chart(host, data, words, draw);
}

/** @param {{lives: Life[]}} data @param {number} width */
function draw({ lives: found }, width) {
  const left = nameWidth(found.map((life) => life.name), width);
  const box = { left, right: width - 16, top: 4, bottom: 4 + found.length * ROW };
  const begin = Math.min(...found.map((life) => life.submit_s));
  const ends = found.flatMap((life) => [life.end_s ?? begin, ...life.segments.map((each) => each.end_s)]);
  const end = Math.max(begin + 1, ...ends);
  const unit = end - begin >= 172_800 ? [86_400, "d"] : end - begin >= 7_200 ? [3_600, "h"] : end - begin >= 240 ? [60, "min"] : [1, "s"];
  const size = /** @type {number} */ (unit[0]);
  const across = axis(0, (end - begin) / size, [box.left, box.right], { wanted: Math.max(2, Math.floor((box.right - box.left) / 70)) });
  const at = (/** @type {number} */ time) => across.place((time - begin) / size);
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${box.bottom + 42}`, role: "group", "aria-label": found.map(told).join("; "),
  }, bottomAxis(across, box, `from submission (${unit[1]})`));
  found.forEach((life, place) => {
    const y = box.top + place * ROW + ROW / 2;
    const last = life.segments.at(-1)?.end_s ?? end;
    svg.append(s("text", { class: "name", x: box.left - 8, y: y + 4, "text-anchor": "end" }, fitted(life.name, left - 10)),
      s("path", { class: "wait", d: `M${at(life.submit_s)} ${y}H${at(last)}` }));
    for (const each of life.segments) {
      const words = `${life.name}\nran for ${duration(each.end_s - each.start_s)}, ${duration(each.start_s - life.submit_s)} after submission\n${ending(each.cause)}`;
      svg.append(s("rect", {
        class: "mark", x: at(each.start_s), y: y - 8, width: Math.max(at(each.end_s) - at(each.start_s), 1.5), height: 16, rx: 2,
        fill: life.look.colour, role: "img", tabindex: "-1", "data-tip": words, "aria-label": words.replaceAll("\n", ", "),
      }));
    }
  });
  const rows = found.flatMap((life) => life.segments.map((each) => [life.name, life.submit_s, each.start_s, each.end_s, each.cause]));
  return { svg, numbers: { columns: ["scheduler", "submitted (s)", "start (s)", "end (s)", "ended because"], rows } };
}

/** @param {string} cause */
function ending(cause) {
  return { finished: "then it was finished", preempted: "then it was preempted", node_failed: "then its node failed",
    migrated: "then it was moved", resized: "then it got other GPUs", cut: "when the simulation was cut" }[cause] ?? cause;
}

/** @param {Life} life */
function told(life) {
  const first = life.segments[0];
  if (!first) return `${life.name}: never started, ${life.outcome}`;
  const taken = life.outcome === "finished" && life.end_s !== null ? `complete after ${duration(life.end_s - life.submit_s)}` : life.outcome;
  return `${life.name}: waited ${duration(first.start_s - life.submit_s)}, ${several(life.segments.length, "segment")}, ${taken}`;
}
