// Results of an evaluation: policies and schedulers on the same episodes, best first.

import { fetchJson, fill, h } from "../web/dom.js";
import { duration, figure, percent } from "../web/words.js";

const SETS = { train: "Training episodes", val: "Validation episodes", test: "Test episodes", report: "Episodes nobody has seen" };

/** Columns beside the metric that decides: name in the file, title, and how it is written. */
const COLUMNS = /** @type {[string, string, (value: number | null) => string][]} */ ([
  ["jct_s", "Mean JCT", duration], ["wait_s", "Mean wait", duration],
  ["bounded_slowdown", "Bounded slowdown", figure], ["utilisation", "Busy", percent],
]);

/** @param {HTMLElement} main @param {{name: string}} params @param {AbortSignal} signal */
export async function show(main, params, signal) {
  const found = await fetchJson(`/api/evaluation/${encodeURIComponent(params.name)}`, signal);
  const sets = [...new Set(found.rows.map((/** @type {any} */ row) => row.set))];
  const way = found.higher_is_better ? "higher" : "lower";
  fill(main,
    h("p", { class: "crumbs small muted" }, h("a", { href: "#/runs" }, "Runs"), " / ", params.name),
    h("h1", {}, `Evaluation on ${found.task}`),
    h("p", { class: "muted" }, `${found.episodes} episodes of each set, the same for everybody; ${plain(found.metric)} decides, ${way} is better. Brackets are 95 % intervals.`),
    ...sets.flatMap((set) => [
      h("h2", {}, SETS[/** @type {keyof typeof SETS} */ (set)] ?? set),
      h("div", { class: "card scroll" }, table(found, found.rows.filter((/** @type {any} */ row) => row.set === set))),
    ]),
    ...found.notes.map((/** @type {string} */ note) => h("p", { class: "small muted" }, note)));
}

/** @param {any} found @param {any[]} rows */
function table(found, rows) {
  const { metric } = found;
  const sign = found.higher_is_better ? -1 : 1;
  const ranked = [...rows].sort((a, b) => sign * ((a[metric] ?? Infinity) - (b[metric] ?? Infinity)));
  const others = COLUMNS.filter(([name]) => name !== metric && rows.some((row) => name in row));
  const verdicts = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((name) => name.startsWith("verdict on "));
  const heads = ["Player", "Knows", capital(plain(metric)), ...others.map(([, title]) => title), ...verdicts.map((name) => capital(name))];
  return h("table", {},
    h("thead", {}, h("tr", {}, ...heads.map((title, place) => h("th", { scope: "col", class: place > 1 && place < 3 + others.length ? "number" : "" }, title)))),
    h("tbody", {}, ...ranked.map((row) => h("tr", { class: row.how === "policy" ? "chosen" : "" },
      h("th", { scope: "row", class: "mono" }, row.player),
      h("td", {}, row.information ?? ""),
      h("td", { class: "number" }, written(metric, row[metric]), h("span", { class: "muted small" }, ` [${written(metric, row[`${metric} low`])}, ${written(metric, row[`${metric} high`])}]`)),
      ...others.map(([name, , words]) => h("td", { class: "number" }, words(row[name] ?? null))),
      ...verdicts.map((name) => h("td", {}, row[name] ?? ""))))));
}

/** @param {string} metric @param {number | null | undefined} value */
function written(metric, value) {
  return metric.endsWith("_s") ? duration(value) : figure(value);
}

/** @param {string} text */
function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** @param {string} metric */
function plain(metric) {
  const known = { returns: "return", jct_s: "mean JCT", wait_s: "mean wait", makespan_s: "makespan" };
  return known[/** @type {keyof typeof known} */ (metric)] ?? metric.replaceAll("_", " ");
}
