// The list of runs: filtered, sorted, chosen from, and always as it is now.

import { desk, fetchJson, fill, follow, h, say } from "../web/dom.js";
import { ago, count, duration, percent, several } from "../web/words.js";

/** @type {[string, string][]} */
export const keys = [
  ["/", "filter"],
  ["j k", "next run, previous run (also ↓ ↑)"],
  ["Enter", "open the run"],
  ["x", "choose the run, to look at several together"],
  ["c", "look at the chosen runs together"],
];

const AT_ONCE = 150;
const CONTROLS = /** @type {"a"} */ ("a, input"); // of a row
const KINDS = ["simulate", "compare", "train", "experiment", "live", "tune", "evaluate", "whatif", "eta"];

/**
 * The columns: title, what is sorted by, and whether larger comes first.
 * @type {[string, (run: any) => string | number, boolean][]}
 */
const COLUMNS = [
  ["Run", (run) => run.name.toLowerCase(), false],
  ["Kind", (run) => run.kind, false],
  ["Status", (run) => run.status, false],
  ["Workload", (run) => run.workload.toLowerCase(), false],
  ["Scheduler", (run) => run.scheduler.toLowerCase(), false],
  ["Mean JCT", (run) => run.metrics.mean_jct_s ?? Infinity, false],
  ["Mean wait", (run) => run.metrics.mean_wait_s ?? Infinity, false],
  ["Busy", (run) => run.metrics.utilisation ?? -1, true],
  ["Started", (run) => run.started_s ?? 0, true],
];

/** How the list was left: kept while the page is open, so that "back" finds it as it was. */
const left = { text: "", kind: "", sort: COLUMNS.length - 1, isDown: true };

/**
 * @param {HTMLElement} main @param {{query: URLSearchParams}} params @param {AbortSignal} signal
 */
export async function show(main, params, signal) {
  const view = new RunList(main, signal);
  const [{ runs }, about] = await Promise.all([fetchJson("/api/runs", signal), desk()]);
  view.replace(runs, about.folder);
  follow("/api/runs/events", (change) => view.change(change), signal);
}

class RunList {
  /** @param {HTMLElement} main @param {AbortSignal} signal */
  constructor(main, signal) {
    /** @type {Map<string, any>} */
    this.runs = new Map();
    /** @type {Set<string>} names of runs to look at together */
    this.chosen = new Set();
    this.at = "";
    this.most = AT_ONCE;
    this.main = main;
    this.isBuilt = false;
    addEventListener("keydown", (event) => this.press(event), { signal });
    const minute = setInterval(() => this.isBuilt && this.draw(), 60_000); // "5 min ago" grows old
    signal.addEventListener("abort", () => { clearInterval(minute); this.watcher?.disconnect(); });
  }

  /** @param {any[]} runs @param {string} folder */
  replace(runs, folder) {
    this.runs = new Map(runs.map((run) => [run.name, run]));
    this.build(folder);
    this.draw();
  }

  /** @param {{changed: any[], removed: string[], first: boolean}} change the first holds every run */
  change({ changed, removed, first }) {
    let isNew = false;
    if (first) {
      const names = new Set(changed.map((run) => run.name));
      removed = [...this.runs.keys()].filter((name) => !names.has(name));
    }
    for (const run of changed) {
      isNew ||= !this.runs.has(run.name);
      this.runs.set(run.name, run);
    }
    for (const name of removed) {
      this.runs.delete(name);
      this.chosen.delete(name);
    }
    if (changed.length || removed.length) this.draw();
    if (isNew) say(`${several(this.runs.size, "run")} now.`);
  }

  /** @param {string} folder */
  build(folder) {
    this.filter = h("input", {
      type: "search", value: left.text, placeholder: "Filter by name, workload, scheduler …  ( / )", "aria-label": "Filter runs",
      autocomplete: "off", spellcheck: "false", oninput: () => { left.text = this.filter?.value ?? ""; this.most = AT_ONCE; this.draw(); },
    });
    this.kinds = h("div", { class: "kinds", role: "group", "aria-label": "Kinds of runs" });
    this.tally = h("span", { class: "muted small", role: "status" });
    this.actions = h("span", { class: "row" });
    this.head = h("tr", {});
    this.body = h("tbody", {});
    this.more = h("button", { type: "button", hidden: true, onclick: () => this.showMore() }, "Show more");
    fill(this.main, h("div", { class: "row spread" }, h("h1", {}, "Runs"), h("span", { class: "muted small mono" }, folder)),
      h("div", { class: "row list-tools" }, this.filter, this.kinds, this.tally, this.actions),
      h("div", { class: "card scroll" }, h("table", { class: "runs" }, h("thead", {}, this.head), this.body)),
      h("p", {}, this.more));
    this.watcher = new IntersectionObserver((seen) => seen.some((each) => each.isIntersecting) && this.showMore(), { rootMargin: "600px" });
    this.watcher.observe(this.more);
    this.isBuilt = true;
  }

  showMore() {
    if (this.more?.hidden) return;
    this.most += AT_ONCE;
    this.draw();
  }

  /** Runs that pass the filter, in order. */
  visible() {
    const words = left.text.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (/** @type {any} */ run) => {
      if (left.kind && run.kind !== left.kind) return false;
      const text = `${run.name} ${run.kind} ${run.status} ${run.workload} ${run.cluster} ${run.scheduler} ${run.headline} ${run.sentence}`.toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const by = COLUMNS[left.sort][1];
    const sign = left.isDown ? -1 : 1;
    const keyed = [...this.runs.values()].filter(fits).map((run) => /** @type {[string | number, any]} */ ([by(run), run]));
    keyed.sort(([a, first], [b, second]) => (a < b ? -sign : a > b ? sign : first.name < second.name ? -1 : 1));
    return keyed.map(([, run]) => run);
  }

  draw() {
    if (!this.body || !this.tally || !this.more) return;
    const focused = this.focusedControl();
    const runs = this.visible();
    this.shown = runs.slice(0, this.most);
    this.drawHead();
    this.drawKinds();
    fill(this.body, ...(runs.length ? this.shown.map((run) => this.made(run)) : [this.nothing()]));
    this.tally.textContent = runs.length === this.runs.size ? several(runs.length, "run") : `${count(runs.length)} of ${several(this.runs.size, "run")}`;
    this.more.hidden = runs.length <= this.most;
    this.drawActions();
    if (focused) this.row(focused.name)?.querySelectorAll(CONTROLS)[focused.place]?.focus({ preventScroll: true });
  }

  /** Which control of which row has the focus: rows are made anew whenever something changes. */
  focusedControl() {
    const row = document.activeElement?.closest("tr");
    if (!row || !row.dataset.name || !this.body?.contains(row)) return null;
    return { name: row.dataset.name, place: [...row.querySelectorAll(CONTROLS)].indexOf(/** @type {any} */ (document.activeElement)) };
  }

  /** @param {string} name @returns {HTMLElement | undefined} */
  row(name) {
    return /** @type {HTMLElement[]} */ ([...(this.body?.children ?? [])]).find((each) => each.dataset.name === name);
  }

  nothing() {
    const text = this.runs.size ? "No run fits the filter." : "There are no runs yet. `yardmaster simulate` makes one; it appears here by itself.";
    return h("tr", {}, h("td", { colspan: COLUMNS.length + 1, class: "muted nothing" }, text));
  }

  drawHead() {
    if (!this.head) return;
    const focus = this.head.contains(document.activeElement) ? [...this.head.children].indexOf(/** @type {any} */ (document.activeElement?.closest("th"))) : -1;
    fill(this.head, h("th", { scope: "col" }, h("span", { class: "unseen" }, "Choose")), ...COLUMNS.map(([title], place) => {
      const isSorted = place === left.sort;
      return h("th", { scope: "col", "aria-sort": isSorted ? (left.isDown ? "descending" : "ascending") : null, class: place >= 5 && place <= 7 ? "number" : "" },
        h("button", { class: "link", type: "button", onclick: () => this.sort(place) }, title, h("span", { "aria-hidden": "true", class: "arrow" }, isSorted ? (left.isDown ? " ▾" : " ▴") : "")));
    }));
    if (focus > 0) this.head.children[focus]?.querySelector("button")?.focus({ preventScroll: true });
  }

  /** @param {number} place */
  sort(place) {
    left.isDown = place === left.sort ? !left.isDown : COLUMNS[place][2];
    left.sort = place;
    this.draw();
  }

  drawKinds() {
    if (!this.kinds || this.kinds.contains(document.activeElement)) {
      for (const button of this.kinds?.querySelectorAll("button") ?? []) button.setAttribute("aria-pressed", String(button.dataset.kind === left.kind));
      return;
    }
    const present = KINDS.filter((kind) => [...this.runs.values()].some((run) => run.kind === kind));
    if (present.length < 2 && !left.kind) return fill(this.kinds);
    fill(this.kinds, ...["", ...present].map((kind) => h("button", {
      type: "button", class: "quiet pill", "aria-pressed": String(kind === left.kind), "data-kind": kind,
      onclick: () => { left.kind = kind; this.most = AT_ONCE; this.draw(); },
    }, kind || "all")));
  }

  /** @param {any} run */
  made(run) {
    const { metrics } = run;
    const target = addressOf(run);
    const box = h("input", { type: "checkbox", "aria-label": `Choose ${run.name}`, onchange: () => this.choose(run.name), disabled: !canJoin(run) });
    box.checked = this.chosen.has(run.name);
    const name = run.status === "running" && run.name.includes(".partial-") ? run.name.replace(/\.partial-.*$/, "").replace(/^(.*\/)?\./, "$1") : run.name;
    return h("tr", { "data-name": run.name, class: run.status },
      h("td", { class: "choose" }, box),
      h("th", { scope: "row", class: "name" }, target ? h("a", { href: target }, name) : name,
        h("span", { class: "below small" }, ...this.below(run))),
      h("td", {}, h("span", { class: `chip kind-${KINDS.includes(run.kind) ? run.kind : "unknown"}` }, run.pending ? "…" : run.kind)),
      h("td", {}, status(run)),
      h("td", { class: "what" }, run.workload, run.cluster ? h("span", { class: "muted small below" }, run.cluster) : null),
      h("td", { class: "mono" }, run.scheduler, run.kind === "compare" ? h("span", { class: "muted small below plain" }, `best of ${run.schedulers}`) : null),
      h("td", { class: "number" }, metrics.mean_jct_s === undefined ? "" : duration(metrics.mean_jct_s)),
      h("td", { class: "number" }, metrics.mean_wait_s === undefined ? "" : duration(metrics.mean_wait_s)),
      h("td", { class: "number" }, metrics.utilisation === undefined ? "" : percent(metrics.utilisation)),
      h("td", { class: "when" }, run.started_s === null ? "" : h("time", { datetime: new Date(run.started_s * 1000).toISOString(), title: new Date(run.started_s * 1000).toLocaleString() }, ago(run.started_s)),
        run.took_s > 0 ? h("span", { class: "muted small below" }, `took ${duration(run.took_s)}`) : null));
  }

  /** @param {any} run */
  below(run) {
    const parts = [];
    if (run.sentence) parts.push(h("span", { class: "told" }, run.sentence));
    if (run.headline) parts.push(run.headline);
    const at = encodeURIComponent(run.name);
    if (run.kind === "compare" && run.status === "finished") parts.push(h("a", { href: `#/schedule/${at}` }, "schedules"));
    if (run.report) parts.push(h("a", { href: `/report/${at}`, target: "_blank" }, "report"));
    return parts.flatMap((part, place) => (place ? [" · ", part] : [part])).map((part) => (typeof part === "string" ? h("span", { class: "muted" }, part) : part));
  }

  /** @param {string} name */
  choose(name) {
    if (!this.chosen.delete(name)) this.chosen.add(name);
    this.drawActions();
  }

  /** What can be done with the chosen runs. */
  drawActions() {
    if (!this.actions) return;
    const target = this.together();
    const focused = [...this.actions.children].indexOf(/** @type {any} */ (document.activeElement));
    fill(this.actions, this.chosen.size ? h("span", { class: "small muted" }, `${this.chosen.size} chosen`) : null,
      target ? h("a", { class: "button main", href: target }, `Look at ${this.chosen.size === 1 ? "it" : "them together"}`) : null,
      this.chosen.size ? h("button", { class: "quiet", type: "button", onclick: () => { this.chosen.clear(); this.draw(); } }, "Clear") : null);
    /** @type {HTMLElement | undefined} */ (this.actions.children[focused])?.focus({ preventScroll: true });
  }

  /** The address of the page that shows all chosen runs; empty if none does. */
  together() {
    const runs = [...this.chosen].map((name) => this.runs.get(name)).filter(Boolean);
    const names = runs.map((run) => encodeURIComponent(run.name));
    if (!runs.length) return "";
    if (runs.every((run) => run.kind === "train")) return `#/training/${names.join(",")}`;
    if (runs.every((run) => run.kind === "simulate" || run.kind === "compare")) return `#/compare?${names.map((name) => `run=${name}`).join("&")}`;
    return "";
  }

  /** @param {string} name */
  focusRow(name) {
    const row = this.row(name);
    /** @type {HTMLElement | null} */ (row?.querySelector("th a") ?? row?.querySelector("input"))?.focus();
    row?.scrollIntoView({ block: "nearest" });
    this.at = name;
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("textarea, select, dialog")) return;
    const isText = target.closest("input[type=search]");
    if (isText && event.key !== "ArrowDown" && event.key !== "Escape") return;
    const row = target.closest("tr")?.dataset.name ?? this.at;
    const place = (this.shown ?? []).findIndex((run) => run.name === row);
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (step) {
      const next = this.shown?.[place < 0 ? 0 : Math.min(Math.max(place + step, 0), this.shown.length - 1)];
      if (next) this.focusRow(next.name);
    } else if (event.key === "/") this.filter?.focus();
    else if (event.key === "Escape" && isText) target.blur();
    else if (event.key === "x" && place >= 0 && canJoin(this.runs.get(row))) {
      this.choose(row);
      this.draw();
    } else if (event.key === "c" && this.together()) location.hash = this.together();
    else return;
    event.preventDefault();
  }
}

/** Where a run is looked at; empty if there is nothing to see. @param {any} run */
function addressOf(run) {
  const at = encodeURIComponent(run.name);
  if (run.status === "damaged" || run.pending || run.name.includes(".partial-")) return "";
  switch (run.kind) {
    case "simulate": return `#/schedule/${at}`;
    case "compare": return `#/compare?run=${at}`;
    case "train": case "tune": return `#/training/${at}`;
    case "experiment": return `#/experiment/${at}`;
    case "live": return `#/live/${at}`;
    case "evaluate": return `#/evaluation/${at}`;
    default: return run.report ? `/report/${at}` : "";
  }
}

/** @param {any} run */
function canJoin(run) {
  return ["simulate", "compare", "train"].includes(run?.kind) && run.status !== "damaged" && !run.name.includes(".partial-");
}

/** @param {any} run */
function status(run) {
  if (run.pending) return h("span", { class: "muted" }, "…");
  const mark = h("span", { class: `status ${run.status}` }, run.status);
  if (run.progress === null || run.status === "finished") return mark;
  return h("span", {}, mark, h("progress", { max: 1, value: run.progress, "aria-label": `${Math.round(run.progress * 100)} % done` }));
}
