// Why a job waited long: what happened between its submission and its start.

import { h } from "../web/dom.js";
import { moment } from "../web/scales.js";
import { count, duration, figure, several } from "../web/words.js";

/** Disciplines that hold GPUs back for jobs before others in order. */
const HOLDS_BACK = ["easy", "conservative", "strict", "commit"];

/**
 * @param {any} wait what the server found, null if the job did not wait @param {any} life @param {any} about
 * @param {(row: number) => void} go selects another job
 */
export function waitStory(wait, life, about, go) {
  if (!wait) return [];
  const told = [overtaken(wait, go), [ahead(wait)], room(wait, life, about, go), [turn(wait, about)], [shares(wait)]];
  return [h("h3", {}, `Why it waited ${duration(wait.end_s - wait.begin_s)}: what happened meanwhile`),
    h("ul", { class: "small wait-story" }, ...told.filter(([words]) => words).map((parts) => h("li", {}, ...parts)))];
}

/** @param {any} wait @param {(row: number) => void} go */
function overtaken({ overtaken: by }, go) {
  if (!by.count) return ["Overtaken by nobody: no job submitted later started before it."];
  return [`Overtaken by ${several(by.count, "job")} submitted later, which held ${gpuHours(by.gpu_s)} while it waited: ${count(by.fewer_gpus)} asked for fewer GPUs, ${count(by.shorter)} ran for a shorter time.`,
    named("Took most", by.jobs, by.count, go, (each) => gpuHours(each.gpu_s))];
}

/** @param {any} wait */
function ahead({ ahead: first, has_started }) {
  if (!first.count) return "Nobody submitted earlier was waiting when it came.";
  const end = has_started ? "when it started" : "at the end";
  return `${several(first.count, "job")} submitted earlier ${first.count === 1 ? "was" : "were"} waiting when it came, for ${several(first.gpus, "GPU")}; `
    + `${first.left ? count(first.left) : "none"} of them still waited ${end}.`;
}

/** @param {any} wait @param {any} life @param {any} about @param {(row: number) => void} go */
function room({ room: found, turn: order, begin_s }, life, about, go) {
  if (!found) return [""];
  if (!found.first) {
    const enough = found.most_free >= life.gpus ? ", though not where one job could hold them" : "";
    return [`Before that, enough GPUs were never free for it: at most ${count(found.most_free)}${enough}. It asks for ${count(life.gpus)}.`];
  }
  const { first } = found;
  const when = first.time_s === begin_s ? "at once, when it was submitted" : `at ${moment(about.begins, first.time_s)}, after ${duration(first.time_s - begin_s)}`;
  const kept = HOLDS_BACK.includes(order?.discipline) ? ", kept back for jobs before it in order" : "";
  const takers = first.taker_count
    ? `${several(first.taker_count, "other job")} started on ${several(first.taken_gpus, "GPU")} then${first.is_left ? ", and enough were left" : ""}.`
    : "Nobody took them.";
  const again = found.moments > 1 ? ` So it was at ${count(found.moments)} moments of its wait.` : "";
  const unused = found.unused_s > 0 ? ` For ${duration(found.unused_s)} in all, enough GPUs for it stood idle${kept}.` : "";
  return [`Enough GPUs were first free for it ${when}: ${count(first.free_gpus)}; it asks for ${count(life.gpus)}. ${takers}${again}${unused}`,
    first.takers.length ? named("Took them", first.takers, first.taker_count, go) : null];
}

/** @param {any} wait @param {any} about */
function turn({ turn: order, begin_s, end_s, has_started }, about) {
  if (!order) return "";
  const { discipline, first_s, since_s } = order;
  if (discipline === "conservative") return "Every waiting job held a promised start; who came later could start only without breaking one.";
  if (first_s === null) return discipline === "easy" ? "Whether it held the reservation cannot be told: under this order, who is first changes with time." : "";
  const thing = discipline === "easy" ? "held the reservation, as the first in order," : "was the first in order";
  if (first_s === 0) return discipline === "easy" ? "It never held the reservation: somebody before it in order was waiting all the time." : "It was never the first in order while it waited.";
  if (first_s === end_s - begin_s) return `It ${thing} all the time.`;
  const since = since_s === null ? "" : `, ${end_s - since_s < first_s ? "the last time " : ""}from ${moment(about.begins, since_s)} until ${has_started ? "it started" : "the end"}`;
  return `It ${thing} for ${duration(first_s)} of its wait${since}.`;
}

/** Who had the GPUs meanwhile; the parts add up to the cluster. @param {any} wait */
function shares({ gpu_s }) {
  const part = (/** @type {string} */ name, /** @type {string} */ words) => gpu_s[name] > 0 ? `${Number(((gpu_s[name] / gpu_s.all) * 100).toPrecision(2))} % ${words}` : "";
  const parts = [part("running", "by jobs that ran already"), part("earlier", "by others submitted earlier"), part("later", "by jobs submitted later"), part("idle", "by nobody"), part("away", "lost with nodes that were away")];
  return `The cluster's GPU time meanwhile was held ${parts.filter(Boolean).join(", ")}.`;
}

/** @param {number} gpu_s */
function gpuHours(gpu_s) {
  return `${figure(gpu_s / 3600)} GPU-h`;
}

/**
 * Other jobs, each to be gone to.
 * @param {string} title @param {any[]} jobs @param {number} all @param {(row: number) => void} go
 * @param {(job: any) => string} [more] what else is said of each
 */
export function named(title, jobs, all, go, more) {
  return h("p", { class: "small named" }, h("span", { class: "muted" }, `${title}: `),
    ...jobs.slice(0, 6).map((each) => h("button", { class: "link chip", type: "button", title: `${several(each.gpus, "GPU")}, ${duration(each.duration_s)}`, onclick: () => go(each.row) },
      `${each.id} · ${count(each.gpus)}\u202fGPU${each.gpus === 1 ? "" : "s"}${more ? ` · ${more(each)}` : ""}`)),
    all > 6 ? h("span", { class: "muted" }, ` and ${count(all - Math.min(jobs.length, 6))} more`) : null);
}
