// An experiment of many runs: the map of regimes and schedulers, gaps, robustness, ablation.

import { bars } from "../web/bars.js";
import { tone } from "../web/difference.js";
import { fetchJson, fill, follow, h } from "../web/dom.js";
import { heatmap } from "../web/heatmap.js";
import { choices } from "../web/legend.js";
import { look } from "../web/looks.js";
import { isStar, radar } from "../web/radar.js";
import { count, duration, figure, several } from "../web/words.js";

const PERCENT = 0.01;

/** @type {[string, string][]} */
export const keys = [["Tab", "to a chart's marks"], ["arrows", "from mark to mark, in a map from cell to cell"]];

/**
 * @param {HTMLElement} main @param {{name: string, query: URLSearchParams}} params @param {AbortSignal} signal
 */
export async function show(main, { name, query }, signal) {
  const asked = new URLSearchParams(query);
  const progress = h("section", { class: "card progress", "aria-label": "Progress", hidden: true });
  const content = h("div", {});
  fill(main, h("h1", {}, name), progress, content);
  /** @type {{destroy: () => void}[]} */
  let drawn = [];
  const clear = () => {
    for (const each of drawn) each.destroy();
    drawn = [];
  };
  signal.addEventListener("abort", clear);
  let turn = 0;

  async function load() {
    const mine = (turn += 1);
    content.setAttribute("aria-busy", "true");
    const address = new URLSearchParams(asked);
    address.set("run", name);
    address.delete("colour");
    try {
      const found = await fetchJson(`/api/experiment?${address}`, signal);
      if (mine !== turn) return;
      const opened = content.querySelector("[data-focus]:focus")?.getAttribute("data-focus");
      clear();
      fill(main.querySelector("h1") ?? main, found.name);
      drawn = draw(content, found, asked, change);
      if (opened) /** @type {HTMLElement | null} */ (content.querySelector(`[data-focus="${CSS.escape(opened)}"]`))?.focus();
    } catch (error) {
      if (signal.aborted || mine !== turn) return;
      clear();
      const sentence = error instanceof Error ? error.message : String(error);
      fill(content, h("p", { class: "problem", role: "alert" }, sentence),
        asked.size ? h("button", { type: "button", onclick: () => { for (const key of [...asked.keys()]) asked.delete(key); change(); } }, "Without filters") : null);
    } finally {
      content.removeAttribute("aria-busy");
    }
  }

  function change() {
    const rest = asked.toString();
    history.replaceState(null, "", `#/experiment/${encodeURIComponent(name)}${rest ? `?${rest}` : ""}`);
    load();
  }

  await load();
  let wasRunning = false, shown = -1;
  follow(`/api/experiment/events?${new URLSearchParams({ run: name })}`, (state) => {
    showState(progress, state);
    const news = state.done + state.failed;
    // Figures follow in steps: a page that redraws all the time cannot be read.
    if ((wasRunning && !state.is_running) || (state.is_running && news >= shown + Math.max(state.total / 20, 1))) {
      if (shown >= 0 || wasRunning) load();
      shown = news;
    }
    wasRunning = state.is_running;
  }, signal);
}

/** @param {HTMLElement} place @param {any} state */
function showState(place, state) {
  place.hidden = state.is_complete && !state.is_running && !state.failed;
  if (place.hidden) return;
  const settled = state.done + state.failed;
  const words = state.is_running ? "Under way" : state.is_complete ? "Complete" : "Stopped; the same command goes on with it";
  const parts = state.total ? [`${count(settled)} of ${count(state.total)} runs`] : [];
  if (state.rate && state.is_running) parts.push(`${figure(state.rate)} a second`);
  if (state.eta_s !== null && state.is_running) parts.push(`about ${duration(state.eta_s)} to go`);
  if (state.failed) parts.push(`${count(state.failed)} failed`);
  if (state.trainings) parts.push(`${state.trained} of ${state.trainings} trainings`);
  fill(place, h("div", { class: "row spread" }, h("strong", {}, words), h("span", { "data-progress": settled }, parts.join(" · "))),
    state.total ? h("progress", { max: state.total, value: settled, "aria-label": "Runs made" })
      : h("progress", { max: state.trainings || 1, value: state.trained, "aria-label": "Trainings that have ended" }),
    state.failures.length ? h("details", {}, h("summary", {}, several(state.failed, "failed run")),
      h("ul", {}, ...state.failures.map((/** @type {string} */ line) => h("li", {}, line)))) : null);
}

/**
 * @param {HTMLElement} content @param {any} found @param {URLSearchParams} asked @param {() => void} change
 * @returns {{destroy: () => void}[]}
 */
function draw(content, found, asked, change) {
  if (found.kind === "trainings") {
    fill(content, h("p", {}, "This study has only trained so far; its figures come with its results."));
    return [];
  }
  if (found.kind === "lookahead") return drawLookahead(content, found);
  const places = /** @type {HTMLElement[]} */ ([]);
  const host = (/** @type {string} */ size) => {
    const place = h("div", { class: size });
    places.push(place);
    return place;
  };
  const metric = found.metrics.find((/** @type {any} */ each) => each.name === found.metric);
  const series = found.schedulers.map((/** @type {number} */ row) => ({ ...found.all_schedulers[row], look: look(row) }));
  const charts = h("div", { class: "charts" });
  fill(content, h("p", { class: "lead" }, lead(found)),
    controls(found, asked, change), schedulers(found, asked, change),
    h("p", { class: "muted small" }, metric.definition), charts);
  /** @type {{destroy: () => void}[]} */
  const drawn = [];
  const add = (/** @type {string} */ size, /** @type {(place: HTMLElement) => {destroy: () => void}} */ make) => {
    const place = host(size);
    charts.append(place);
    drawn.push(make(place));
  };
  if (found.map.regimes.length) add("whole", (place) => drawMap(place, found, metric, series, asked));
  if (found.levels.length) add("", (place) => drawLevels(place, found, metric, series));
  for (const objective of found.objectives) {
    if (found.gaps[objective]) add("", (place) => drawGaps(place, found, objective, series));
  }
  if (found.robustness) add("whole", (place) => drawStar(place, found, series));
  for (const measure of found.ablation?.measures ?? []) add("", (place) => drawAblation(place, found.ablation, measure));
  return drawn;
}

/** @param {any} found */
function lead(found) {
  const left = found.left_out.length ? ` Left out, since runs are missing: ${found.left_out.join(", ")}.` : "";
  return `${found.description ? `${found.description}. ` : ""}${several(found.runs, "run")}; shown are`
    + ` ${several(found.regimes, "regime")} of ${found.family}, ${several(found.seeds, "paired seed")}.${left}`;
}

/** @param {any} found @param {URLSearchParams} asked @param {() => void} change */
function controls(found, asked, change) {
  const select = (/** @type {string} */ label, /** @type {string} */ key, /** @type {[string, string][]} */ options, /** @type {string} */ value) =>
    h("label", {}, label, h("select", {
      "data-focus": key,
      onchange: (/** @type {any} */ event) => {
        if (event.target.value) asked.set(key, event.target.value);
        else asked.delete(key);
        change();
      },
    }, ...options.map(([each, words]) => h("option", { value: each, selected: each === value ? true : null }, words))));
  return h("div", { class: "controls" },
    select("Metric", "metric", found.metrics.map((/** @type {any} */ each) => [each.name, each.title]), found.metric),
    found.families.length > 1 ? select("Regimes", "family", found.families.map((/** @type {string} */ each) => [each, each]), found.family) : null,
    ...found.labels.map((/** @type {any} */ label) => select(capital(label.name), `label.${label.name}`,
      [["", "all"], ...label.values.map((/** @type {string} */ value) => [value, value])], asked.get(`label.${label.name}`) ?? "")),
    found.map.gaps ? select("Colours show", "colour", [["", "gap to the best fixed scheduler"], ["value", "the metric itself"]], asked.get("colour") ?? "") : null);
}

/** @param {string} text */
function capital(text) {
  return text === "gpus" ? "GPUs" : text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** @param {any} found @param {URLSearchParams} asked @param {() => void} change */
function schedulers(found, asked, change) {
  const all = found.all_schedulers.map((/** @type {any} */ each, /** @type {number} */ row) => ({ name: each.short, look: look(row) }));
  const shown = new Set(found.schedulers);
  return choices(all, /** @type {Set<number>} */ (shown), () => {
    asked.delete("scheduler");
    if (shown.size < all.length) for (const row of shown) asked.append("scheduler", found.all_schedulers[row].name);
    change();
  });
}

/** @param {HTMLElement} place @param {any} found @param {any} metric @param {any[]} series @param {URLSearchParams} asked */
function drawMap(place, found, metric, series, asked) {
  const isGap = found.map.gaps && asked.get("colour") !== "value";
  const unit = isGap ? "%" : found.map.unit;
  const more = found.map.more ? ` ${found.map.more} more regimes are not shown.` : "";
  return heatmap(place, {
    rows: found.map.regimes, columns: series.map((each) => each.short), values: isGap ? found.map.gaps : found.map.values,
    kind: isGap ? "gap" : "value", better: isGap ? "lower" : metric.better, unit, size: isGap ? PERCENT : found.map.size,
    what: isGap ? `hindsight gap of ${metric.title}` : metric.title,
  }, {
    title: isGap ? `${metric.title}: gap in every regime, in percent` : `${metric.title} in every regime${unit ? ` (${unit})` : ""}`,
    name: `${found.name} map ${found.metric}`,
    caption: (isGap ? "How much worse than the best fixed scheduler of the same run, mean over seeds; blue is better than every fixed scheduler."
      : "Mean over seeds; each row is coloured on its own scale, the better the darker blue.") + ` The best of a row is underlined.${more}`,
  });
}

/** @param {HTMLElement} place @param {any} found @param {any} metric @param {any[]} series */
function drawLevels(place, found, metric, series) {
  return bars(place, {
    bars: found.levels.map((/** @type {any} */ each, /** @type {number} */ n) => ({ ...each, name: series[n].short, colour: series[n].look.colour })),
    axis: `${metric.title}${found.map.unit ? ` (${found.map.unit})` : ""}`, unit: found.map.unit, size: found.map.size,
  }, {
    title: metric.title, name: `${found.name} levels ${found.metric}`,
    caption: `Means over the regimes shown; lines are 95 % intervals over ${several(found.seeds, "paired seed")}. ${capital(metric.better)} is better.`.replace("Neither is better.", ""),
  });
}

/** @param {HTMLElement} place @param {any} found @param {string} objective @param {any[]} series */
function drawGaps(place, found, objective, series) {
  const title = found.metrics.find((/** @type {any} */ each) => each.name === objective)?.title ?? objective;
  return bars(place, {
    bars: found.gaps[objective].map((/** @type {any} */ each, /** @type {number} */ n) => ({ ...each, name: series[n].short, colour: series[n].look.colour })),
    axis: "hindsight gap (%)", unit: "%", size: PERCENT,
  }, {
    title: `${title}: hindsight gap`, name: `${found.name} gap ${objective}`,
    caption: "Distance to the oracle, the best fixed scheduler of every run chosen in hindsight. Left of zero is better than every fixed scheduler.",
  });
}

/** @param {HTMLElement} place @param {any} found @param {any[]} series */
function drawStar(place, found, series) {
  const { robustness } = found;
  const what = `Change of ${robustness.title} under disturbances`;
  const stars = {
    rays: robustness.perturbations, what,
    stars: robustness.changes.map((/** @type {any[]} */ row, /** @type {number} */ n) => ({
      name: series[n].short, look: series[n].look,
      values: row.map((each) => each.mean), low: row.map((each) => each.low), high: row.map((each) => each.high),
    })),
  };
  if (isStar(stars)) {
    return radar(place, stars, {
      title: "What each perturbation costs", name: `${found.name} robustness`,
      caption: `${what}, against the same regimes undisturbed, mean over severities and ${several(found.seeds, "seed")}. Further out is worse; the strong ring is no change, and rings stand closer the further out they are.`,
    });
  }
  const rows = stars.stars.flatMap((/** @type {any} */ star) => stars.rays.map((/** @type {string} */ ray, /** @type {number} */ n) => ({
    name: `${star.name}, ${ray}`, mean: star.values[n], low: star.low[n], high: star.high[n], colour: star.look.colour,
  })));
  return bars(place, { bars: rows, axis: "change (%)", unit: "%", size: PERCENT }, { title: "What each perturbation costs", name: `${found.name} robustness`, caption: what });
}

/** @param {HTMLElement} place @param {any} ablation @param {any} measure */
function drawAblation(place, ablation, measure) {
  return bars(place, {
    bars: measure.changes.map((/** @type {any} */ each, /** @type {number} */ n) => {
      const verdict = tone(each, measure.better);
      return { ...each, name: ablation.variants[n], tone: verdict, note: verdict === "unclear" ? "no clear difference" : `clearly ${verdict}` };
    }),
    axis: measure.is_share ? "difference (percentage points)" : "change (%)", unit: measure.is_share ? "points" : "%", size: PERCENT,
  }, {
    title: `Without a part: ${measure.title}`, name: `ablation ${measure.name}`,
    caption: `Change against “${ablation.whole}” when a part is left out; lines are 95 % intervals over ${several(ablation.units, ablation.unit_name)}. Orange is clearly worse, blue clearly better, grey neither.`,
  });
}

/** @param {HTMLElement} content @param {any} found */
function drawLookahead(content, found) {
  const { lookahead } = found;
  const [levels, changes] = [h("div", {}), h("div", {})];
  fill(content, h("p", { class: "lead" }, `${found.description}, ${several(lookahead.trainings, "training")} each.`),
    h("div", { class: "charts" }, levels, lookahead.differences.length ? changes : null));
  const axis = `${lookahead.title}${lookahead.unit ? ` (${lookahead.unit})` : ""}`;
  const common = { unit: lookahead.unit, size: lookahead.size };
  const drawn = [bars(levels, { bars: lookahead.rows, axis, ...common }, {
    title: `${lookahead.title} by network and lookahead`, name: "lookahead", caption: "Lines are 95 % intervals for a new training on new episodes.",
  })];
  if (lookahead.differences.length) {
    drawn.push(bars(changes, { bars: lookahead.differences, axis: `difference, ${axis}`, ...common }, {
      title: "Against the same network without lookahead", name: "lookahead differences", caption: "Paired differences with their 95 % intervals.",
    }));
  }
  return drawn;
}
