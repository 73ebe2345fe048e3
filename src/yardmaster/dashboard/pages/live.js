// A scheduler of real machines at work: queue, decisions with reasons, running jobs, telemetry,
// and, in shadow mode, what it would have done beside what happened.

import { curves } from "../web/curves.js";
import { fetchJson, fill, follow, h } from "../web/dom.js";
import { ago, count, duration, figure, several } from "../web/words.js";

/** @type {[string, string][]} */
export const keys = [["← or →", "read values of the curve that has the focus"]];

const STATES = /** @type {Object<string, string>} */ ({
  silent: "no sign of life: the command may have been killed", running: "running", finished: "finished", stopped: "stopped", failed: "failed",
});
const MOST_NODES = 40;
const CURVES = [
  { key: "utilisation_percent", title: "GPU utilisation", unit: "%" },
  { key: "memory_mib", title: "GPU memory in use", unit: "MiB" },
  { key: "power_w", title: "GPU power", unit: "W" },
];

/**
 * @param {HTMLElement} main
 * @param {{name: string}} params
 * @param {AbortSignal} signal
 */
export async function show(main, { name }, signal) {
  const address = `run=${encodeURIComponent(name)}`;
  const { about } = await fetchJson(`/api/live?${address}`, signal);
  const page = new Page(main, name, about);
  follow(`/api/live/events?${address}`, (event) => page.take(event), signal);
  signal.addEventListener("abort", () => page.destroy());
}

class Page {
  /** @param {HTMLElement} main @param {string} name @param {any} about */
  constructor(main, name, about) {
    this.about = about;
    /** @type {any} */
    this.book = null;
    /** @type {{time_s: number[], host: any, gpus: any}} */
    this.telemetry = { time_s: [], host: {}, gpus: {} };
    /** @type {Map<string, any>} */
    this.charts = new Map();
    this.head = h("div", {});
    this.tiles = h("div", { class: "tiles" });
    this.nodes = section("GPUs");
    this.problems = section("What did not work");
    this.problems.hidden = true;
    this.queue = section("Waiting, in the scheduler's order");
    this.running = section("Running");
    this.decisions = section("Last decisions");
    this.ended = section("Ended");
    this.shadow = section("Shadow: what it would have done, beside what happened");
    this.shadow.hidden = true;
    this.curves = h("div", { class: "curve-grid" });
    this.none = h("p", { class: "muted small" });
    this.measured = h("section", { class: "measured", hidden: true }, h("h2", {}, "Telemetry"), this.none, this.curves);
    fill(main, h("h1", {}, name), this.head, this.tiles,
      this.nodes, h("div", { class: "live-columns" }, this.queue, this.running, this.decisions, this.shadow, this.ended, this.problems),
      this.measured);
    this.drawHead();
  }

  /** @param {any} event */
  take(event) {
    if (event.about) {
      this.about = event.about;
      this.drawHead();
    }
    if (event.book) {
      this.book = event.book;
      this.drawBook();
    }
    if (event.telemetry) {
      this.add(event.telemetry);
      this.drawTelemetry();
    }
  }

  gpus() {
    return (this.about.nodes ?? []).reduce((/** @type {number} */ sum, /** @type {any} */ node) => sum + (node.gpus ?? 0), 0);
  }

  drawHead() {
    const { about } = this;
    const gpus = this.gpus();
    fill(this.head, h("p", {},
      h("span", { class: `chip status-${about.state}`, "data-state": about.state }, STATES[about.state] ?? about.state), " ",
      `${about.scheduler ?? ""} on ${about.kind ?? ""} (${about.mode ?? ""}), ${several(about.nodes?.length ?? 0, "node")}, ${several(gpus, "GPU")}`,
      about.began_unix_s ? `, begun ${ago(about.began_unix_s)}` : "", about.host ? `, on ${about.host}` : "",
      about.restarts ? `, taken up again ${several(about.restarts, "time")}` : ""));
    this.shadow.hidden = about.mode !== "shadow";
    const reason = about.telemetry && about.telemetry !== "nvml" ? about.telemetry : "";
    fill(this.none, reason ? `Without GPUs' own numbers: ${reason}` : "");
  }

  drawBook() {
    const { book } = this;
    const { counts, seen } = book;
    // Whichever is newer: what was told of single jobs, or the last look at all of them.
    const isTold = Object.keys(counts).length > 0 && !book.is_seen_later;
    const failed = ["gave up", "timed out", "stopped"].reduce((sum, state) => sum + (counts[state] ?? 0), 0);
    const free = (seen.free_gpus ?? []).reduce((/** @type {number} */ sum, /** @type {number} */ one) => sum + one, 0);
    const held = isTold || !seen.free_gpus ? book.held_gpus : this.gpus() - free;
    fill(this.tiles, tile("waiting", isTold ? counts.waiting ?? 0 : seen.waiting ?? 0), tile("running", isTold ? counts.running ?? 0 : seen.running ?? 0),
      tile("GPUs held by them", held), tile("ended", counts.ended ?? 0), tile("failed or stopped", failed),
      tile("last event", duration(book.time_s)));
    this.drawNodes();
    this.drawQueue();
    this.drawProblems();
    const unheard = book.is_seen_later && (seen.running ?? 0) < book.running_jobs ? book.running_jobs - seen.running : 0;
    const cut = book.running.length < book.running_jobs ? `The first ${book.running.length} of ${count(book.running_jobs)}.` : "";
    body(this.running,
      unheard ? h("p", { class: "small muted" }, `At the last look only ${several(seen.running, "job")} ran; of the others the end was not seen.`) : null,
      table(["job", "GPUs", "where", "for", "expected"], book.running.map((/** @type {any} */ job) => [
        job.job, figure(job.gpus), whereOf(job), duration(book.time_s - job.start_s), job.estimate_s ? duration(job.estimate_s) : "–"]), "Nothing runs."),
      cut ? h("p", { class: "small muted" }, cut) : null);
    body(this.ended, table(["job", "state", "began", "ended", "exit"], book.ended.map((/** @type {any} */ job) => [
      job.job, job.state, duration(job.start_s), duration(job.end_s), job.exit_code ?? "–"]), "Nothing has ended yet."));
    this.drawDecisions();
    if (!this.shadow.hidden) this.drawShadow();
  }

  /** Every slot of every node, with the job on it; of nodes without slots only how many are free. */
  drawNodes() {
    const nodes = this.about.nodes ?? [];
    const free = this.book.seen.free_gpus ?? [];
    const onSlot = new Map(this.book.running.flatMap((/** @type {any} */ job) => (Array.isArray(job.slots) ? job.slots : []).map((/** @type {number} */ slot) => [slot, job.job])));
    this.nodes.hidden = !nodes.length;
    body(this.nodes, ...nodes.slice(0, MOST_NODES).map((/** @type {any} */ node, /** @type {number} */ n) => h("div", {},
      h("span", { class: "small" }, `${node.name}: ${several(node.gpus ?? 0, "GPU")}${node.gpu_type ? ` (${node.gpu_type})` : ""}`,
        nodes.length > 1 && free[n] !== undefined ? `, ${free[n]} free` : ""),
      nodes.length === 1 ? h("div", { class: "slots", role: "img", "aria-label": `${onSlot.size} of ${node.gpus} in use` },
        ...Array.from({ length: node.gpus ?? 0 }, (_, slot) => h("span", { class: onSlot.has(slot) ? "slot used" : "slot", title: onSlot.get(slot) ?? "free" }, onSlot.get(slot) ?? "free"))) : null)),
    nodes.length > MOST_NODES ? h("p", { class: "small muted" }, `and ${several(nodes.length - MOST_NODES, "more node")}`) : null);
  }

  drawProblems() {
    const wrong = this.book.deeds.filter((/** @type {any} */ one) => one.outcome === "failed" || one.what === "skip");
    this.problems.hidden = !wrong.length;
    body(this.problems, table(["when", "what", "why"], wrong.map((/** @type {any} */ one) => [
      duration(one.time_s), one.what === "skip" ? "did nothing" : [one.operation, one.job].filter(Boolean).join(" "), one.reason ?? one.detail ?? ""]), ""));
  }

  drawQueue() {
    const { queue } = this.book;
    const rows = queue.rows ?? [];
    // Jobs that were started since the last look stand in its order, but wait no longer.
    const waiting = rows.filter((/** @type {any} */ row) => (queue.jobs[row.job]?.state ?? "waiting") === "waiting");
    const more = (queue.waiting ?? 0) > rows.length ? ` The first ${rows.length} of ${count(queue.waiting)}.` : "";
    body(this.queue, table(["", "job", "GPUs", "score", "why it stands here"], waiting.map((/** @type {any} */ row, /** @type {number} */ place) => [
      place + 1, row.job, queue.jobs[row.job]?.gpus ?? "–", row.score === null ? "–" : figure(row.score), row.why]), "Nobody waits."),
    more ? h("p", { class: "small muted" }, more) : null);
  }

  drawDecisions() {
    const lines = this.book.decisions.map((/** @type {any} */ one) => h("li", {},
      h("strong", {}, duration(one.time_s)), ` of ${several(one.waiting ?? 0, "job")} waiting, in ${figure(one.took_ms)} ms`,
      ...one.starts.map((/** @type {any} */ start) => h("div", { class: "small" }, `start ${start.job} on ${this.nodesOf(start.nodes)}`,
        start.why && start.why !== "starts now" ? h("span", { class: "muted" }, `: ${start.why}`) : null))));
    body(this.decisions, lines.length ? h("ol", { class: "decisions", reversed: true }, ...lines)
      : h("p", { class: "muted small" }, "Nothing was started yet."));
  }

  /** @param {any} nodes */
  nodesOf(nodes) {
    if (!Array.isArray(nodes)) return "–";
    const name = (/** @type {any} */ one) => this.about.nodes?.[one]?.name ?? one;
    return nodes.map((/** @type {any} */ one) => (Array.isArray(one) ? `${name(one[0])} (${several(one[1], "GPU")})` : String(one))).join(", ");
  }

  drawShadow() {
    const { rows, wanted, wanted_started: begun, unwanted_started: others } = this.book.shadow;
    const know = (/** @type {any} */ value) => value !== null && value !== undefined;
    body(this.shadow,
      h("p", { class: "small" }, wanted || others
        ? `Of ${several(wanted, "job")} that this scheduler would have started, ${count(begun)} ${begun === 1 ? "has" : "have"} started since, ${count(wanted - begun)} not yet; ${several(others, "job")} started that it would have let wait.`
        : "Nothing was started yet, and nothing would have been."),
      h("p", { class: "small muted" }, "What would have been gained on the whole is another question: ", h("code", {}, "yardmaster live shadow-report"), " answers it."),
      table(["job", "would have started", "really started", "later by"], rows.map((/** @type {any} */ row) => [
        row.job, know(row.wanted_s) ? duration(row.wanted_s) : "not before it did", duration(row.real_s),
        know(row.wanted_s) && know(row.real_s) ? signed(row.real_s - row.wanted_s) : "–"]), ""));
  }

  /** @param {any} more */
  add(more) {
    const { telemetry } = this;
    const before = telemetry.time_s.length, added = more.time_s.length;
    telemetry.time_s.push(...more.time_s);
    append(telemetry.host, more.host, before, added);
    for (const uuid of new Set([...Object.keys(telemetry.gpus), ...Object.keys(more.gpus)])) {
      telemetry.gpus[uuid] ??= {};
      append(telemetry.gpus[uuid], more.gpus[uuid] ?? {}, before, added);
    }
  }

  drawTelemetry() {
    this.measured.hidden = false;
    const x = this.telemetry.time_s;
    const gpus = Object.entries(this.telemetry.gpus);
    for (const { key, title, unit } of CURVES) {
      const series = gpus.map(([uuid, columns]) => ({ name: `GPU ${last(columns.index) ?? uuid}`, x, y: columns[key] ?? [] }));
      if (series.some((one) => one.y.some((/** @type {any} */ value) => value !== null))) this.put(key, { series }, { title: `${title} (${unit})`, x: "time", from0: true, formatX: duration });
    }
    const { host } = this.telemetry;
    this.put("cpu", { series: [{ name: "CPU", x, y: host.cpu_percent ?? [] }] }, { title: "CPU of the machine (%)", x: "time", from0: true, formatX: duration });
    this.put("memory", { series: [{ name: "memory", x, y: host.memory_gib ?? [] }] }, { title: "Memory of the machine in use (GiB)", x: "time", from0: true, formatX: duration });
  }

  /** @param {string} name @param {any} data @param {any} options */
  put(name, data, options) {
    const kept = this.charts.get(name);
    if (kept) return kept.update(data);
    const place = h("div", { "data-curve": name });
    this.curves.append(place);
    this.charts.set(name, curves(place, data, options));
  }

  destroy() {
    for (const chart of this.charts.values()) chart.destroy();
  }
}

/** @param {Object<string, any[]>} columns @param {Object<string, any[]>} more @param {number} before @param {number} added */
function append(columns, more, before, added) {
  for (const key of new Set([...Object.keys(columns), ...Object.keys(more)])) {
    columns[key] ??= new Array(before).fill(null);
    columns[key].push(...(more[key] ?? new Array(added).fill(null)));
  }
}

/** @param {any[] | undefined} values */
function last(values) {
  return values?.findLast((value) => value !== null && value !== undefined);
}

/** @param {string} title */
function section(title) {
  return h("section", { class: "card" }, h("h2", {}, title), h("div", { class: "body", tabindex: "0", role: "group", "aria-label": title }));
}

/** @param {HTMLElement} place @param {...any} children */
function body(place, ...children) {
  fill(/** @type {Element} */ (place.querySelector(".body")), ...children);
}

/** @param {string} label @param {any} value */
function tile(label, value) {
  return h("div", { class: "card tile" }, h("strong", {}, typeof value === "number" ? count(value) : value), h("span", { class: "small muted" }, label));
}

/** @param {string[]} columns @param {any[][]} rows @param {string} empty */
function table(columns, rows, empty) {
  if (!rows.length) return h("p", { class: "muted small" }, empty);
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, ...columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((value) => h("td", { class: typeof value === "number" ? "number" : null }, value)))))));
}

/** @param {any} job */
function whereOf(job) {
  const slots = Array.isArray(job.slots) ? job.slots.join(", ") : job.slots;
  return [job.node, slots !== undefined && slots !== null && slots !== "" ? `GPU ${slots}` : ""].filter(Boolean).join(", ") || "–";
}

/** @param {number} seconds */
function signed(seconds) {
  return `${seconds < 0 ? "−" : "+"}${duration(Math.abs(seconds))}`;
}
