// Play: choose machines, jobs and schedulers; the server runs them and this page shows how far it is.

import { fetchJson, fill, follow, h, post, say } from "../web/dom.js";
import { ago, count, duration, figure, percent, several } from "../web/words.js";

const KEPT = "yardmaster-play";

/** @type {[string, string][]} */
export const keys = [["Enter", "run what is chosen, from any field of the form"]];

/**
 * @param {HTMLElement} main
 * @param {unknown} _params
 * @param {AbortSignal} signal
 */
export async function show(main, _params, signal) {
  const choices = await fetchJson("/api/play/choices", signal);
  const chosen = remembered(choices);
  const works = h("section", { class: "works", "aria-label": "What was run" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const button = h("button", { class: "main", type: "submit" }, "Run");
  const form = formOf(choices, chosen, problem, button);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.hidden = true;
    button.disabled = true;
    try {
      const wish = wishOf(form);
      remember(wish);
      const work = await post("/api/play", wish);
      say(`${work.run} was begun.`);
      works.scrollIntoView({ block: "nearest" });
    } catch (error) {
      fill(problem, error instanceof Error ? error.message : String(error));
      problem.hidden = false;
    } finally {
      button.disabled = false;
    }
  });
  fill(main, h("h1", {}, "Play"),
    h("p", { class: "muted" }, "Pick machines, jobs and schedulers. The same jobs go to every scheduler; the result stays in the folder of runs."),
    h("div", { class: "play" }, form, works));
  follow("/api/work/events", ({ works: all }) => drawWorks(works, all.filter((/** @type {any} */ one) => one.kind === "play")), signal);
}

/** @param {any} choices @param {any} chosen @param {HTMLElement} problem @param {HTMLElement} button */
function formOf(choices, chosen, problem, button) {
  const { limits } = choices;
  return h("form", { class: "card", "aria-label": "What to run" },
    select("cluster", "Cluster", choices.clusters.map((/** @type {any} */ one) =>
      [one.name, `${one.name}: ${several(one.gpus, "GPU")}, ${several(one.nodes, "node")}`, one.text]), chosen.cluster),
    select("workload", "Workload", choices.workloads.map((/** @type {any} */ one) => [one.name, one.name, one.text]), chosen.workload),
    h("div", { class: "numbers-row" },
      number("load", "Load", chosen.load, limits.load, "0.05", "1 would keep every GPU busy"),
      number("jobs", "Jobs", chosen.jobs, limits.jobs, "1", "how many are submitted"),
      number("seeds", "Seeds", chosen.seeds, limits.seeds, "1", "more give intervals"),
      number("seed", "First seed", chosen.seed, limits.seed, "1", "another seed, other jobs")),
    schedulers(choices, chosen.schedulers),
    problem,
    h("div", { class: "row" }, button, h("span", { class: "small muted" }, "One scheduler gives a schedule, several a comparison.")));
}

/** @param {string} name @param {string} label @param {[string, string, string][]} options @param {string} value */
function select(name, label, options, value) {
  const about = h("span", { class: "small muted", id: `about-${name}` });
  const tell = () => fill(about, options.find(([key]) => key === field.value)?.[2] ?? "");
  const field = h("select", { name, id: `field-${name}`, "aria-describedby": about.id, onchange: tell },
    ...options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
  tell();
  return labelled(name, label, field, about);
}

/** @param {string} name @param {string} label @param {number} value @param {[number, number]} limits @param {string} step @param {string} hint */
function number(name, label, value, [least, most], step, hint) {
  return labelled(name, label,
    h("input", { name, id: `field-${name}`, "aria-describedby": `about-${name}`, type: "number", value, min: least, max: most, step, required: true }),
    h("span", { class: "small muted", id: `about-${name}` }, hint));
}

/** @param {string} name @param {string} label @param {HTMLElement} field @param {HTMLElement} about */
function labelled(name, label, field, about) {
  return h("div", { class: "field" }, h("label", { for: `field-${name}` }, label), field, about);
}

/** @param {any} choices @param {string[]} chosen */
function schedulers(choices, chosen) {
  const known = [...new Set([...choices.suggested, ...choices.more, ...choices.ready.map((/** @type {any} */ one) => one.name)])];
  const texts = new Map(choices.ready.map((/** @type {any} */ one) => [one.name, one.text]));
  const box = (/** @type {string} */ name) => h("label", { title: texts.get(name) ?? null },
    h("input", { type: "checkbox", name: "scheduler", value: name, checked: chosen.includes(name) }), h("span", {}, name));
  const others = chosen.filter((name) => !known.includes(name));
  const listId = "scheduler-names";
  const names = choices.orders.flatMap((/** @type {any} */ order) => [order.name, `${order.name}+easy`, `${order.name}+skip`]);
  const rest = known.filter((name) => !choices.suggested.includes(name));
  return h("fieldset", {}, h("legend", {}, "Schedulers"),
    ...choices.suggested.map(box),
    h("details", { open: rest.some((name) => chosen.includes(name)) || null }, h("summary", { class: "small" }, several(rest.length, "more scheduler")), ...rest.map(box)),
    labelled("others", "Others",
      h("input", { name: "others", id: "field-others", "aria-describedby": "about-others", list: listId, value: others.join(", "), placeholder: "saf+easy@spread, …", autocomplete: "off" }),
      h("span", { class: "small muted", id: "about-others" }, "ORDER+DISCIPLINE@PLACEMENT, separated by commas")),
    h("datalist", { id: listId }, ...names.map((/** @type {string} */ name) => h("option", { value: name }))));
}

/** @param {HTMLFormElement} form */
function wishOf(form) {
  const data = new FormData(form);
  const others = String(data.get("others") ?? "").split(",").map((name) => name.trim()).filter(Boolean);
  return {
    cluster: data.get("cluster"), workload: data.get("workload"), load: Number(data.get("load")), jobs: Number(data.get("jobs")),
    seed: Number(data.get("seed")), seeds: Number(data.get("seeds")), schedulers: [...data.getAll("scheduler"), ...others],
  };
}

/** @param {HTMLElement} host @param {any[]} works */
function drawWorks(host, works) {
  const opened = new Set([...host.querySelectorAll("details[open]")].map((one) => /** @type {HTMLElement} */ (one).dataset.number));
  const held = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.act : undefined;
  fill(host, works.length ? null : h("p", { class: "muted" }, "Nothing was run yet."),
    ...[...works].reverse().map((work) => workCard(work, opened.has(String(work.number)))));
  if (held) /** @type {HTMLElement | null} */ (host.querySelector(`[data-act="${CSS.escape(held)}"]`))?.focus();
}

/** @param {any} work @param {boolean} isOpen */
function workCard(work, isOpen) {
  const name = encodeURIComponent(work.run);
  const isCompared = work.command.startsWith("yardmaster compare");
  const actions = work.state === "waiting" || work.state === "running"
    ? [h("button", { type: "button", "data-act": `cancel-${work.number}`, onclick: (/** @type {any} */ e) => cancel(e.target, work.number) }, "Cancel")]
    : [];
  const links = work.state === "finished"
    ? h("p", { class: "row" }, isCompared ? h("a", { href: `#/compare?run=${name}` }, "Compare") : null,
      h("a", { href: `#/schedule/${name}` }, "Schedule"), isCompared ? h("a", { href: `/report/${name}`, target: "_blank", rel: "noopener" }, "Report") : null)
    : null;
  return h("article", { class: "card work", "data-state": work.state, "aria-label": work.run },
    h("div", { class: "row spread" }, h("h3", {}, work.run, " ", h("span", { class: `chip status-${work.state}` }, work.state)), ...actions),
    work.state === "running" ? h("progress", work.total ? { max: work.total, value: work.done, "aria-label": "simulations" } : { "aria-label": "running" }) : null,
    h("p", { class: "small muted" }, stateWords(work)),
    links,
    work.state === "finished" ? resultOf(work.run) : null,
    h("details", { "data-number": work.number, open: isOpen || work.state === "failed" || null }, h("summary", { class: "small" }, "Command and output"),
      h("p", { class: "small" }, h("code", {}, work.command)), h("pre", { tabindex: "0" }, work.output.join("\n") || "No output yet.")));
}

/** Results by run: a finished run does not change. @type {Map<string, HTMLElement>} */
const results = new Map();

/** @param {string} run */
function resultOf(run) {
  const known = results.get(run);
  if (known) return known;
  const place = h("div", { class: "scroll" });
  results.set(run, place);
  fetchJson(`/api/play/result?run=${encodeURIComponent(run)}`)
    .then(({ rows }) => fill(place, resultTable(rows)))
    .catch((error) => fill(place, h("p", { class: "small muted" }, error.message)));
  return place;
}

/** @param {any[]} rows */
function resultTable(rows) {
  const longest = Math.max(...rows.map((row) => row.mean_jct_s), 1e-9);
  const bar = (/** @type {number} */ share) => {
    const mark = h("span", { class: "play-bar", "aria-hidden": "true" });
    mark.style.width = `${Math.max(share * 100, 1)}%`;
    return mark;
  };
  return h("table", { class: "play-result" }, h("caption", {}, `Mean over ${several(rows[0]?.workloads ?? 0, "workload")}, the shortest mean JCT first`),
    h("thead", {}, h("tr", {}, ...["scheduler", "mean JCT", "p95 JCT", "mean wait", "bounded slowdown", "utilisation"].map((name, n) =>
      h("th", { scope: "col", class: n ? "number" : null }, name)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, h("th", { scope: "row" }, row.scheduler, bar(row.mean_jct_s / longest)),
      ...[duration(row.mean_jct_s), duration(row.p95_jct_s), duration(row.mean_wait_s), figure(row.mean_bounded_slowdown), percent(row.utilisation)]
        .map((text) => h("td", { class: "number" }, text))))));
}

/** @param {any} work */
function stateWords(work) {
  if (work.state === "waiting") return "Waits for others to end.";
  if (work.state === "running") return work.total ? `${count(work.done)} of ${several(work.total, "simulation")}` : `Begun ${ago(work.asked_s)}.`;
  const took = `after ${duration(work.ended_s - work.asked_s)}`;
  if (work.state === "failed") return `${work.output.at(-1) ?? "It failed."} (${took})`;
  return `${work.state === "finished" ? "Finished" : "Cancelled"} ${took}.`;
}

/** @param {HTMLButtonElement} button @param {number} number */
async function cancel(button, number) {
  button.disabled = true;
  try {
    await post("/api/work/cancel", { number });
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    button.disabled = false;
  }
}

/** @param {any} choices */
function remembered(choices) {
  const usual = { cluster: "demo", workload: "venus-like", load: 0.9, jobs: 1000, seed: 0, seeds: 4, schedulers: choices.suggested };
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
    return { ...usual, ...kept, schedulers: Array.isArray(kept.schedulers) ? kept.schedulers : usual.schedulers };
  } catch {
    return usual;
  }
}

/** @param {any} wish */
function remember(wish) {
  try {
    localStorage.setItem(KEPT, JSON.stringify(wish));
  } catch { /* it lasts as long as the page */ }
}
