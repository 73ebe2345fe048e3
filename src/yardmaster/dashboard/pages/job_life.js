// The life of one job: what it asked for, when and where it ran, and why it started then.

import { fill, h } from "../web/dom.js";
import { fullMoment, moment } from "../web/scales.js";
import { count, duration, figure, several } from "../web/words.js";
import { named, waitStory } from "./wait_story.js";

const CAUSES = {
  finished: "finished", preempted: "made room for another", node_failed: "its node failed", migrated: "moved to other GPUs",
  resized: "went on with another number of GPUs", cut: "still running at the end",
};
const OUTCOMES = {
  finished: "finished", running: "still running when the simulation was cut", queued: "still waiting when the simulation was cut",
  unplaceable: "asks for what the empty cluster could not give", not_submitted: "not submitted before the simulation was cut",
  failed: "given up: it lost its nodes too often",
};
const MOST_SEGMENTS = 12;

/**
 * @param {HTMLElement} place @param {any} life the server's answer @param {any} about the schedule's header
 * @param {(row: number) => void} go selects another job
 * @param {() => void} close
 */
export function showLife(place, life, about, go, close) {
  fill(place,
    h("div", { class: "row spread" }, h("h2", {}, `Job ${life.id}`),
      h("button", { class: "quiet", type: "button", "aria-label": "Close", title: "Close (Esc)", onclick: close }, "×")),
    h("p", { class: "outcome" }, sentence(life)),
    lifeLine(life, about),
    h("dl", { class: "facts" }, ...facts(life, about).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("h3", {}, life.segment_count === 1 ? "Where it ran" : `Where it ran, ${several(life.segment_count, "time")}`),
    segments(life, about),
    ...waitStory(life.wait, life, about, go),
    ...reasons(life, about, go));
}

/** @param {any} life */
function sentence(life) {
  const what = OUTCOMES[/** @type {keyof typeof OUTCOMES} */ (life.outcome)] ?? life.outcome;
  if (life.outcome !== "finished") return `${capital(what)}.`;
  return `Waited ${duration(life.wait_s)}, finished ${duration(life.jct_s)} after submission.`;
}

/** @param {any} life @param {any} about @returns {[string, string][]} */
function facts(life, about) {
  const at = (/** @type {number} */ time_s) => fullMoment(about.begins, time_s);
  const share = life.share < 1 ? ` (${figure(life.share)} of each)` : "";
  const known = [
    ["Submitted", at(life.submit_s)],
    ["Started", life.start_s === null ? "never" : at(life.start_s)],
    ["Ended", life.end_s === null ? "not" : at(life.end_s)],
    ["Asked for", several(life.gpus, "GPU") + share + (life.gpu_types ? ` of ${life.gpu_types}` : "")],
    ["Run time", duration(life.duration_s) + (life.estimate_s === null ? "" : `, estimated ${duration(life.estimate_s)}`)],
    ["Slowdown", life.bounded_slowdown === null ? "" : `${figure(life.bounded_slowdown)} × (bounded)`],
    ["Tenant", life.tenant],
    ["User", life.user],
    ["Kind", life.kind],
    ["Priority", life.priority ? figure(life.priority) : ""],
    ["Deadline", life.deadline_s === null ? "" : at(life.deadline_s)],
  ];
  return /** @type {[string, string][]} */ (known.filter(([, value]) => value));
}

/**
 * Submission, wait and every stay, on one line.
 * @param {any} life @param {any} about
 */
function lifeLine(life, about) {
  const end = life.segments.length ? Math.max(...life.segments.map((/** @type {any} */ each) => each.end_s)) : about.horizon_s[1];
  const whole = Math.max(end - life.submit_s, 1e-9);
  const line = h("div", { class: "life-line", role: "img", "aria-label": `${sentence(life)} ${several(life.segment_count, "stay")} on GPUs.` });
  for (const each of life.segments) {
    const part = h("span", { class: `life-part ${each.cause}`, title: `${duration(each.end_s - each.start_s)}: ${CAUSES[/** @type {keyof typeof CAUSES} */ (each.cause)]}` });
    part.style.left = `${((each.start_s - life.submit_s) / whole) * 100}%`;
    part.style.width = `${Math.max(((each.end_s - each.start_s) / whole) * 100, 0.5)}%`;
    line.append(part);
  }
  return line;
}

/** @param {any} life @param {any} about */
function segments(life, about) {
  if (!life.segments.length) return h("p", { class: "muted small" }, "Nowhere.");
  const shown = life.segments.slice(0, MOST_SEGMENTS);
  return h("ol", { class: "stays small" }, ...shown.map((/** @type {any} */ each) => h("li", {},
    `${moment(about.begins, each.start_s)}, for ${duration(each.end_s - each.start_s)}: ${where(each, about)}`,
    h("br"), h("span", { class: each.cause === "finished" ? "muted" : "told" },
      `${capital(CAUSES[/** @type {keyof typeof CAUSES} */ (each.cause)] ?? each.cause)}`
      + (each.wasted_s > 0 ? `; ${duration(each.wasted_s)} brought it no nearer to its end` : "")))),
  life.segment_count > shown.length ? h("li", { class: "muted" }, `and ${several(life.segment_count - shown.length, "more stay")}`) : null);
}

/** A pool has no nodes to name. @param {any} segment @param {any} about */
function where(segment, about) {
  if (about.is_pool) return `${several(segment.gpus, "GPU")} of the pool`;
  const names = segment.nodes.map((/** @type {any} */ each) => `${each.gpus}\u202f×\u202f${each.type} on node ${each.node}`);
  const rest = segment.node_count - names.length;
  return names.join(", ") + (rest > 0 ? ` and ${several(rest, "more node")}` : "");
}

/** @param {any} life @param {any} about @param {(row: number) => void} go */
function reasons(life, about, go) {
  const decided = life.why?.decisions?.length
    ? [h("h3", {}, "Why then: what was decided"), ...life.why.decisions.slice(0, 3).map((/** @type {any} */ each) => decision(each, life, about)),
      life.why.considered ? h("p", { class: "small muted" }, `It was a candidate in ${several(life.why.considered, "decision")} of ${count(life.why.total)}.`) : null]
    : [];
  const title = decided.length ? "The situation it met" : "Why then: the situation it met";
  const note = decided.length ? null : h("p", { class: "small muted" },
    about.has_why ? "No decision about this job was written down." : "This scheduler goes by keys and wrote no scores down; this is read from the schedule.");
  return [...decided, h("h3", {}, title), note, ...life.situations.map((/** @type {any} */ each) => situation(each, life, about, go))];
}

/** Candidates with their scores and what was not allowed. @param {any} decided @param {any} life @param {any} about */
function decision(decided, life, about) {
  if (decided.scores) return choice(decided, about);
  const scores = decided.candidates.map((/** @type {any} */ each) => each.score).filter((/** @type {any} */ score) => score !== null);
  if (decided.wait?.score !== null && decided.wait) scores.push(decided.wait.score);
  const low = Math.min(...scores);
  const span = Math.max(...scores) - low || 1;
  const row = (/** @type {string} */ name, /** @type {string} */ gpus, /** @type {any} */ each, /** @type {boolean} */ isChosen) => {
    const bar = h("span", { class: "score-bar" });
    bar.style.width = each.score === null ? "0" : `${8 + ((each.score - low) / span) * 92}%`;
    return h("tr", { class: isChosen ? "chosen" : each.legal ? "" : "barred" }, h("th", { scope: "row" }, name, isChosen ? " ✓" : ""),
      h("td", { class: "number" }, gpus), h("td", { class: "number" }, each.legal ? figure(each.score) : "not allowed"), h("td", { class: "score" }, bar));
  };
  const shown = decided.candidates.slice(0, 10);
  const mine = decided.candidates.findIndex((/** @type {any} */ each) => each.job === life.id);
  if (mine >= shown.length) shown.push(decided.candidates[mine]);
  const rest = decided.candidate_count - shown.length;
  return h("div", {}, h("p", { class: "small" }, `At ${moment(about.begins, decided.second)} there ${decided.candidate_count === 1 ? "was" : "were"} ${several(decided.candidate_count, "candidate")}`
      + `; it was ${ordinal(mine + 1)} by score.`),
    h("table", { class: "scores small" }, h("thead", {}, h("tr", {}, ...["Job", "GPUs", "Score", ""].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, ...shown.map((/** @type {any} */ each) => row(each.job, count(each.gpus), each, each.job === decided.chosen)),
        decided.wait ? row("wait", "", decided.wait, decided.chosen === null) : null)),
    rest > 0 ? h("p", { class: "small muted" }, `and ${count(rest)} others`) : null);
}

/** The scheduler that was chosen to work. @param {any} decided @param {any} about */
function choice(decided, about) {
  const ranked = Object.entries(decided.scores).sort((a, b) => Number(b[1]) - Number(a[1]));
  return h("div", {}, h("p", { class: "small" }, `Since ${moment(about.begins, decided.second)}, with ${several(decided.waiting, "job")} waiting, ${decided.chosen} decided.`),
    h("table", { class: "scores small" }, h("tbody", {}, ...ranked.map(([name, score]) => h("tr", { class: name === decided.chosen ? "chosen" : "" },
      h("th", { scope: "row" }, name, name === decided.chosen ? " ✓" : ""), h("td", { class: "number" }, figure(Number(score))))))));
}

/** @param {any} met @param {any} life @param {any} about @param {(row: number) => void} go */
function situation(met, life, about, go) {
  const isSubmit = met.time_s === life.submit_s;
  const isStart = life.segments.some((/** @type {any} */ each) => each.start_s === met.time_s);
  const name = isSubmit && isStart ? "Submitted and started" : isSubmit ? "Submitted" : "Started";
  const others = met.started.filter((/** @type {any} */ each) => each.row !== life.row);
  const lines = [
    `${several(met.free_gpus, "GPU")} of ${count(met.gpus)} were free${about.is_pool ? "" : `, at most ${count(met.largest_hole)} on one node`}; it asks for ${count(life.gpus)}.`,
    met.waiting_count
      ? `${several(met.waiting_count, "other job")} stayed waiting for ${several(met.waiting_gpus, "GPU")}: ${count(met.waiting_longer)} submitted earlier, ${count(met.waiting_smaller)} smaller.`
      : "Nobody else was left waiting.",
  ];
  return h("div", { class: "situation" }, h("p", { class: "small" }, h("b", {}, `${name} at ${moment(about.begins, met.time_s)}. `), lines.join(" ")),
    others.length ? named("Started at the same second", others, met.started_count - (isStart ? 1 : 0), go) : null,
    met.waiting.length ? named("Waiting longest", met.waiting, met.waiting_count, go) : null);
}

/** @param {number} n */
function ordinal(n) {
  const ending = n % 100 > 10 && n % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][n % 10] ?? "th";
  return n < 1 ? "not among those kept" : `${n}${ending}`;
}

/** @param {string} text */
function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
