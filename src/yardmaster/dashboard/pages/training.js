// Trainings as they go: curves, evaluations against heuristics, stopping and resuming.

import { curves } from "../web/curves.js";
import { fetchJson, fill, follow, h, post, say } from "../web/dom.js";
import { count, figure, percent, several } from "../web/words.js";

/** @typedef {{about: any, updates: Object<string, any[]>, evaluations: any[], note: HTMLElement}} Training `note`: what came of Stop and Resume */

/** Curves that most learners have, in the order in which they are drawn. */
const CURVES = [
  { name: "episode_return", title: "Return of episodes in training", caption: "Mean of the episodes that ended in an update; higher is better." },
  { name: "entropy", title: "Entropy", caption: "How undecided the policy is. Near 0 nothing new is tried any more.", from0: true },
  { name: "noop_share", title: "Share of no-ops", caption: "Decisions in which the policy waited.", from0: true, format: percent },
  { name: "loss", title: "Loss" },
  { name: "policy_loss", title: "Policy loss" },
  { name: "value_loss", title: "Value loss", from0: true },
  { name: "kl", title: "Change of the policy per update (KL)", from0: true },
];
const TOGETHER = 6;
const NOT_DRAWN = new Set(["updates", "steps", "seconds"]);
const METRICS = /** @type {Object<string, string>} */ ({
  returns: "return", jct_s: "mean JCT (s)", wait_s: "mean wait (s)", bounded_slowdown: "bounded slowdown",
  slowdown: "slowdown", utilisation: "utilisation", makespan_s: "makespan (s)", unfinished: "unfinished jobs",
  jct_gap: "gap in JCT to the best of the menu", p95_gap: "gap in p95 JCT to the best of the menu",
});

/** @type {[string, string][]} */
export const keys = [
  ["s", "more or less smoothing: the slider"],
  ["← or →", "read values of the curve that has the focus"],
  ["Esc", "show the whole curve after zooming"],
];

/**
 * @param {HTMLElement} main
 * @param {{names: string[]}} params
 * @param {AbortSignal} signal
 */
export async function show(main, { names }, signal) {
  if (!names.length) throw new Error("Name a training: #/training/RUN, or several with commas.");
  /** @type {Map<string, Training>} */
  const trainings = new Map();
  const settings = { smoothing: 0.6, band: names.length > 1, against: "steps", metric: "" };
  const cards = h("div", { class: "training-cards" });
  const places = h("div", { class: "curve-grid" });
  const more = h("details", {}, h("summary", {}, "More curves"), h("div", { class: "curve-grid" }));
  const drawing = new Drawing(trainings, settings, places, /** @type {HTMLElement} */ (more.lastElementChild));
  const address = names.map((name) => `run=${encodeURIComponent(name)}`).join("&");
  // A stream that is refused is tried again forever; a plain request says what is wrong.
  const { runs, within } = await fetchJson(`/api/training?${address}`, signal);
  if (within.length) {
    fill(main, h("h1", {}, names[0]), ...listOf(within));
    return;
  }
  for (const { run, about } of runs) trainings.set(run, { about, updates: {}, evaluations: [], note: h("p", { class: "small muted", role: "status" }) });
  fill(main, h("h1", {}, names.length === 1 ? names[0] : several(names.length, "training")), cards,
    controls(settings, names.length, trainings, () => drawing.draw()), places, more);
  drawCards(cards, trainings, signal);
  addChoice(main, names, signal);
  follow(`/api/training/events?${address}`, (event) => {
    const training = trainings.get(event.run);
    if (!training) return;
    take(training, event);
    if (event.about) drawCards(cards, trainings, signal);
    else moveOn(cards, trainings);
    drawing.soon();
  }, signal);
  addEventListener("keydown", (event) => {
    if (event.key === "s" && !(/** @type {Element} */ (event.target).closest("input, select, dialog"))) {
      document.getElementById("smoothing")?.focus();
    }
  }, { signal });
  signal.addEventListener("abort", () => drawing.destroy());
}

/**
 * The trainings of a sweep or a study.
 * @param {{run: string, about: any}[]} within
 */
function listOf(within) {
  const address = (/** @type {string[]} */ names) => `#/training/${names.map(encodeURIComponent).join(",")}`;
  const { metric, higher_is_better: isHigher } = within[0].about;
  const score = (/** @type {any} */ one) => (Number.isFinite(one.about.best) ? one.about.best * (isHigher ? -1 : 1) : Infinity);
  const ranked = [...within].sort((a, b) => score(a) - score(b));
  return [
    h("p", {}, `${several(within.length, "training")}, the best by ${METRICS[metric] ?? metric ?? "score"} first. `,
      within.length > 1 ? h("a", { href: address(ranked.slice(0, TOGETHER).map((one) => one.run)) }, `Look at the best ${Math.min(within.length, TOGETHER)} together`) : null),
    h("div", { class: "scroll card" }, h("table", {},
      h("thead", {}, h("tr", {}, ...["training", "status", "best", "steps", "seed"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, ...ranked.map(({ run, about }) => h("tr", {}, h("td", {}, h("a", { href: address([run]) }, run)), h("td", {}, about.status),
        h("td", { class: "number" }, figure(about.best)), h("td", { class: "number" }, count(about.total_steps ?? 0)), h("td", { class: "number" }, about.seed ?? "–")))))),
  ];
}

/** Add what came to what is known. @param {Training} training @param {any} event */
function take(training, event) {
  if (event.restarted) {
    training.updates = {};
    training.evaluations = [];
  }
  if (event.about) {
    if (event.about.status !== training.about.status) fill(training.note); // what was asked for has happened
    training.about = event.about;
  }
  if (event.updates) {
    const before = training.updates.steps?.length ?? 0;
    const added = event.updates.steps?.length ?? 0;
    for (const name of new Set([...Object.keys(training.updates), ...Object.keys(event.updates)])) {
      const column = training.updates[name] ?? new Array(before).fill(null);
      column.push(...(event.updates[name] ?? new Array(added).fill(null)));
      training.updates[name] = column;
    }
  }
  if (event.evaluations) training.evaluations.push(...event.evaluations);
}

/** Keeps one chart per curve and draws them at most once a frame. */
class Drawing {
  /**
   * @param {Map<string, Training>} trainings @param {any} settings
   * @param {HTMLElement} places @param {HTMLElement} more
   */
  constructor(trainings, settings, places, more) {
    this.trainings = trainings;
    this.settings = settings;
    this.places = places;
    this.more = more;
    /** @type {Map<string, {chart: any, place: HTMLElement}>} */
    this.charts = new Map();
    this.isDue = false;
    this.isOver = false;
  }

  soon() {
    if (this.isDue) return;
    this.isDue = true;
    // Not a frame's callback: a page in the background draws too, only less often.
    setTimeout(() => {
      this.isDue = false;
      if (!this.isOver) this.draw();
    }, 30);
  }

  draw() {
    this.evaluation();
    const found = new Set([...this.trainings.values()].flatMap((one) => Object.keys(one.updates)));
    for (const curve of CURVES) if (found.has(curve.name)) this.one(curve.name, curve, this.places);
    const drawn = new Set(CURVES.map((curve) => curve.name));
    for (const name of found) {
      if (!drawn.has(name) && !NOT_DRAWN.has(name)) this.one(name, { title: name.replaceAll("_", " ") }, this.more);
    }
  }

  /** @param {string} name @param {any} curve @param {HTMLElement} within */
  one(name, curve, within) {
    const x = this.settings.against;
    const series = [...this.trainings].map(([run, { updates }]) => ({ name: run, x: updates[x] ?? [], y: updates[name] ?? [] }));
    this.put(name, { series, smoothing: this.settings.smoothing, band: this.settings.band }, { x, ...curve }, within);
  }

  evaluation() {
    const { against, band } = this.settings;
    const metric = this.settings.metric || this.first("metric") || "returns";
    const series = [...this.trainings].map(([run, { evaluations }]) => ({
      name: run, x: evaluations.map((one) => one[against]), y: evaluations.map((one) => one.means[metric] ?? null),
    }));
    const references = Object.entries(this.first("heuristics") ?? {})
      .filter(([, means]) => Number.isFinite(means[metric]))
      .map(([name, means]) => ({ name, value: means[metric] }));
    const way = ["returns", "utilisation"].includes(metric) ? "higher" : "lower";
    this.put("evaluation", { series, references, band }, {
      title: `Evaluation against heuristics: ${METRICS[metric] ?? metric}`, x: against,
      caption: `The greedy policy on validation episodes, ${way} is better; dashed: what heuristics reach on the same episodes.`,
      height: 300,
    }, this.places, metric);
  }

  /** @param {string} key */
  first(key) {
    for (const { about } of this.trainings.values()) if (about[key]) return about[key];
    return null;
  }

  /** @param {string} name @param {any} data @param {any} options @param {HTMLElement} within @param {string} [variant] */
  put(name, data, options, within, variant = "") {
    const kept = this.charts.get(name);
    const kind = `${options.x} ${variant}`;
    if (kept && kept.place.dataset.kind === kind) {
      kept.chart.update(data);
      return;
    }
    kept?.chart.destroy();
    const place = kept?.place ?? h("div", { "data-curve": name, class: name === "evaluation" ? "whole" : null });
    place.dataset.kind = kind;
    if (!kept) within.append(place);
    this.charts.set(name, { place, chart: curves(place, data, options) });
  }

  destroy() {
    this.isOver = true;
    for (const { chart } of this.charts.values()) chart.destroy();
  }
}

/** @param {any} settings @param {number} runs @param {Map<string, Training>} trainings @param {() => void} changed */
function controls(settings, runs, trainings, changed) {
  const shown = h("output", { for: "smoothing" }, settings.smoothing.toFixed(2));
  const set = (/** @type {string} */ name, /** @type {any} */ value) => {
    settings[name] = value;
    changed();
  };
  const metric = h("select", { id: "metric", onchange: (/** @type {any} */ e) => set("metric", e.target.value) });
  metric.addEventListener("pointerdown", () => metrics());
  metric.addEventListener("focus", () => metrics());
  const metrics = () => {
    const first = [...trainings.values()].find((one) => one.evaluations.length);
    if (!first || metric.options.length > 1) return;
    const own = first.about.metric;
    fill(metric, ...Object.keys(first.evaluations[0].means).map((name) =>
      h("option", { value: name, selected: name === own }, METRICS[name] ?? name)));
  };
  fill(metric, h("option", { value: "" }, "as it was judged"));
  return h("div", { class: "row training-controls", role: "group", "aria-label": "How curves are drawn" },
    h("label", { for: "smoothing" }, "Smoothing",
      h("input", { id: "smoothing", type: "range", min: "0", max: "0.99", step: "0.01", value: settings.smoothing,
        oninput: (/** @type {any} */ e) => {
          fill(shown, Number(e.target.value).toFixed(2));
          set("smoothing", Number(e.target.value));
        } }), shown),
    h("label", {}, "Over", h("select", { id: "against", onchange: (/** @type {any} */ e) => set("against", e.target.value) },
      h("option", { value: "steps" }, "steps"), h("option", { value: "seconds" }, "seconds"))),
    h("label", {}, "Evaluated by", metric),
    runs > 1 ? h("label", {}, h("input", { id: "band", type: "checkbox", checked: settings.band,
      onchange: (/** @type {any} */ e) => set("band", e.target.checked) }), "All as one band") : null);
}

/** @param {HTMLElement} host @param {Map<string, Training>} trainings @param {AbortSignal} signal */
function drawCards(host, trainings, signal) {
  const focused = [...host.children].findIndex((one) => one.contains(document.activeElement));
  fill(host, ...[...trainings].map(([name, { about, note }]) => card(name, about, note, trainings.size > 1, signal)));
  moveOn(host, trainings);
  const again = /** @type {HTMLElement | undefined} */ (host.children[focused]);
  (again?.querySelector("button:not([disabled])") ?? again)?.focus({ preventScroll: true });
}

/** Say how far trainings are, without touching what may have the focus. @param {HTMLElement} host @param {Map<string, Training>} trainings */
function moveOn(host, trainings) {
  [...trainings.values()].forEach(({ about, updates }, n) => {
    const steps = updates.steps?.at(-1) ?? 0, total = about.total_steps || 0;
    const bar = /** @type {HTMLProgressElement} */ (host.children[n].querySelector("progress"));
    bar.max = Math.max(total, 1);
    bar.value = Math.min(steps, total);
    const words = `${count(steps)} of ${count(total)} steps`;
    bar.setAttribute("aria-label", words);
    fill(/** @type {Element} */ (host.children[n].querySelector(".steps")), words);
  });
}

/** @param {string} name @param {any} about @param {HTMLElement} note @param {boolean} isNamed @param {AbortSignal} signal */
function card(name, about, note, isNamed, signal) {
  const act = async (/** @type {string} */ what, /** @type {HTMLButtonElement} */ button, /** @type {string} */ words) => {
    const place = /** @type {HTMLElement | null} */ (button.closest(".training-card"));
    button.disabled = true;
    place?.focus({ preventScroll: true }); // a disabled button would give it to nobody
    try {
      const answer = await post(`/api/training/${what}`, { run: name });
      fill(note, words);
      say(`${name}: ${words}`);
      if (what === "resume") watchWork(answer.number, note, signal);
    } catch (error) {
      button.disabled = false;
      if (document.activeElement === place) button.focus({ preventScroll: true });
      fill(note, error instanceof Error ? error.message : String(error));
    }
  };
  const best = about.best === null || about.best === undefined ? "–" : `${figure(about.best)} at ${count(about.best_steps)} steps`;
  return h("section", { class: "card training-card", "aria-label": name, tabindex: "-1" },
    h("div", { class: "row spread" },
      h("h2", {}, isNamed ? `${name} ` : null, h("span", { class: `chip status-${about.status}`, "data-status": about.status }, about.status ?? "…")),
      h("span", { class: "row" },
        about.status === "running" ? h("button", { type: "button", disabled: !about.stoppable,
          title: about.stoppable ? null : "It is part of another program; stop that.",
          onclick: (/** @type {any} */ e) => act("stop", e.target, "asked to stop after the update at hand …") }, "Stop") : null,
        ["interrupted", "killed", "stopped early"].includes(about.status) ? h("button", { type: "button", class: "main",
          onclick: (/** @type {any} */ e) => act("resume", e.target, "starting …") }, "Resume") : null)),
    h("progress", {}),
    h("p", { class: "small" }, h("span", { class: "steps" }), ` · ${about.learner ?? ""} on ${about.task ?? ""} · seed ${about.seed ?? "–"} · best ${METRICS[about.metric] ?? about.metric ?? ""} ${best}`),
    ...(about.warnings ?? []).map((/** @type {any} */ one) => h("p", { class: "problem small" }, `At ${count(one.steps)} steps: ${one.text}`)),
    note);
}

/** Tell if a resumed training could not be started. @param {number} number @param {HTMLElement} note @param {AbortSignal} signal */
function watchWork(number, note, signal) {
  const own = new AbortController();
  signal.addEventListener("abort", () => own.abort());
  follow("/api/work/events", ({ works }) => {
    const work = works.find((/** @type {any} */ one) => one.number === number);
    if (!work || work.state === "waiting") return;
    if (work.state === "failed") fill(note, work.output.at(-1) ?? "It could not be resumed.");
    if (work.state !== "running") own.abort();
  }, own.signal);
}

/** Offer other trainings to lay over these. @param {HTMLElement} main @param {string[]} names @param {AbortSignal} signal */
async function addChoice(main, names, signal) {
  let runs;
  try {
    ({ runs } = await fetchJson("/api/runs", signal));
  } catch {
    return;
  }
  const others = runs.filter((/** @type {any} */ run) => run.kind === "train" && !names.includes(run.name));
  if (!others.length) return;
  const go = (/** @type {string[]} */ chosen) => { location.hash = `#/training/${chosen.map(encodeURIComponent).join(",")}`; };
  main.querySelector(".training-controls")?.append(h("label", {}, "Add",
    h("select", { id: "add-training", onchange: (/** @type {any} */ e) => e.target.value && go([...names, e.target.value]) },
      h("option", { value: "" }, "another training …"), ...others.map((/** @type {any} */ run) => h("option", { value: run.name }, run.name)))));
}
