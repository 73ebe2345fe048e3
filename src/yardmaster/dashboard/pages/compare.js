// Schedules of the same jobs side by side: of several runs, or of one comparison.

import { contrast } from "../web/contrast.js";
import { fetchBytes, fetchJson, fill, h } from "../web/dom.js";
import { gantts } from "../web/gantts.js";
import { decode } from "../web/schedule_data.js";
import { several } from "../web/words.js";

/** @type {[string, string][]} */
export const keys = [
  ["Tab", "to a chart's marks"], ["arrows", "from mark to mark"], ["+ or −", "closer or further, all schedules at once"],
  ["← or →", "earlier or later"], ["0", "all of the time"],
];

/**
 * @param {HTMLElement} main @param {{names: string[], query: URLSearchParams}} params @param {AbortSignal} signal
 */
export async function show(main, { names, query }, signal) {
  const runs = [...names, ...query.getAll("run"), ...(query.get("runs") ?? "").split(",")].filter(Boolean);
  const asked = { workload: Number(query.get("workload") ?? 0) || 0, baseline: Number(query.get("baseline") ?? 0) || 0 };
  const content = h("div", {});
  fill(main, h("h1", {}, "Compare"), content);
  /** @type {{destroy: () => void} | null} */
  let drawn = null;
  signal.addEventListener("abort", () => drawn?.destroy());
  /** @type {Map<string, Promise<import("../web/schedule_data.js").ScheduleData>>} */
  const schedules = new Map();

  /** @param {any} side */
  function schedule(side) {
    const address = `/api/schedule/${encodeURIComponent(side.run)}?simulation=${side.simulation}`;
    const kept = schedules.get(address) ?? fetchBytes(address, signal).then(decode);
    schedules.set(address, kept);
    return kept;
  }

  async function load() {
    const address = new URLSearchParams({ workload: String(asked.workload), baseline: String(asked.baseline) });
    for (const run of runs) address.append("run", run);
    const found = await fetchJson(`/api/compare?${address}`, signal);
    drawn?.destroy();
    const host = h("div", {});
    fill(main.querySelector("h1") ?? main, found.title);
    fill(content,
      h("p", { class: "lead" }, `${several(found.sides.length, "schedule")} of the same ${several(found.jobs, "job")}.`,
        ...found.notes.map((/** @type {string} */ note) => ` ${note}`)),
      h("p", { class: "small" }, "Runs: ", ...runs.flatMap((run, place) => [place ? ", " : "", h("a", { href: `#/schedule/${encodeURIComponent(run)}` }, run)])),
      workloads(found), host);
    drawn = contrast(host, found, {
      schedule: (side) => schedule(found.sides[side]), gantts,
      has: (side) => !found.sides[side].hidden, hidden: (side) => found.sides[side].hidden,
      link: (side, id) => `#/schedule/${encodeURIComponent(found.sides[side].run)}?simulation=${found.sides[side].simulation}&job=${encodeURIComponent(id)}`,
      rebase: (side) => change({ baseline: side }),
    });
  }

  /** @param {any} found */
  function workloads(found) {
    if (found.workloads.length < 2) return null;
    return h("div", { class: "controls" }, h("label", {}, "Workload drawn (differences are over all)",
      h("select", { "data-focus": "workload", onchange: (/** @type {any} */ event) => change({ workload: Number(event.target.value) }) },
        ...found.workloads.map((/** @type {string} */ name, /** @type {number} */ place) => h("option", { value: place, selected: place === found.workload ? true : null }, name)))));
  }

  /** @param {Partial<typeof asked>} what */
  async function change(what) {
    Object.assign(asked, what);
    const rest = new URLSearchParams();
    for (const run of runs) rest.append("run", run);
    for (const [name, value] of Object.entries(asked)) if (value) rest.set(name, String(value));
    history.replaceState(null, "", `#/compare?${rest}`);
    const focus = document.activeElement?.getAttribute("data-focus");
    await load();
    if (focus) /** @type {HTMLElement | null} */ (content.querySelector(`[data-focus="${CSS.escape(focus)}"]`))?.focus();
  }

  await load();
}
