// The frame around every page: which one is shown, where one can go, light or dark, and the keys.

import { byId, fill, h, isTaken, say } from "../web/dom.js";
import { followTheme, nextTheme, themeName } from "../web/theme.js";

/**
 * A page: fills `main`; stops its timers and streams when `signal` aborts.
 * @typedef {{show: (main: HTMLElement, params: Params, signal: AbortSignal) => Promise<void>,
 *            keys?: [string, string][]}} Page
 * @typedef {{name: string, names: string[], query: URLSearchParams}} Params
 *   `name`: what stands after the view in the address, decoded; `names`: the same, split at commas.
 */

/** Views by the first part of the address; loaded when first shown. */
const VIEWS = {
  runs: "./run_list.js",
  schedule: "./schedule.js",
  compare: "./compare.js",
  experiment: "./experiment.js",
  evaluation: "./evaluation.js",
  training: "./training.js",
  play: "./play.js",
  live: "./live.js",
};

/** What the bar offers: the views that need no run. */
const OFFERED = [["runs", "Runs"], ["play", "Play"]];

/** @type {[string, string][]} */
const KEYS_EVERYWHERE = [
  ["?", "show this list"],
  ["Esc", "close what is open"],
  ["g then r", "go to the list of runs"],
  ["g then p", "go to Play"],
  ["t", "light, dark, or as the system has it"],
];

let shown = new AbortController();
let hasArrived = false;
/** @type {Page | null} */
let page = null;

/** Read the address: `#/schedule/a%2Fb?simulation=1`. */
function parse() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...rest] = path.split("/");
  const raw = rest.join("/");
  const names = raw.split(",").filter(Boolean).map(decoded);
  return { view: view || "runs", params: { name: decoded(raw), names, query: new URLSearchParams(query) } };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function route() {
  if (location.hash === "#main") return; // the skip link
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  const main = byId("main");
  const { view, params } = parse();
  drawNav(view);
  fill(main, h("p", { class: "muted" }, "Loading …"));
  main.className = `view-${view in VIEWS ? view : "none"}`;
  try {
    if (!Object.hasOwn(VIEWS, view)) throw new Error("There is no such page.");
    page = /** @type {Page} */ (await import(VIEWS[/** @type {keyof typeof VIEWS} */ (view)]));
    if (signal.aborted) return;
    await page.show(main, params, signal);
    const title = main.querySelector("h1")?.textContent;
    document.title = title ? `${title} · Yardmaster` : "Yardmaster";
    arrive(main, title ?? "");
  } catch (error) {
    if (signal.aborted) return;
    page = null;
    const sentence = error instanceof Error ? error.message : String(error);
    fill(main, h("h1", {}, "This page could not be shown"), h("p", { class: "problem", role: "alert" }, sentence),
      h("p", {}, h("a", { href: "#/runs" }, "Back to the list of runs")));
    document.title = "Yardmaster";
  }
}

/**
 * After going to another page, begin at its top, for the eye, the keyboard and the ear.
 * @param {HTMLElement} main @param {string} title
 */
function arrive(main, title) {
  if (hasArrived && !main.contains(document.activeElement)) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
    say(title);
  }
  hasArrived = true;
}

/** @param {string} view */
function drawNav(view) {
  fill(byId("nav"), ...OFFERED.map(([name, label]) =>
    h("a", { href: `#/${name}`, "aria-current": name === view ? "page" : null }, label)));
}

function showKeys() {
  const lines = [...(page?.keys ?? []), ...KEYS_EVERYWHERE];
  const dialog = h("dialog", { class: "keys", "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, "Keys"),
    h("dl", {}, ...lines.flatMap(([key, what]) => [
      h("dt", {}, ...key.split(" ").map((part) => (part === "then" || part === "or" ? ` ${part} ` : h("kbd", {}, part)))),
      h("dd", {}, what),
    ])),
    h("form", { method: "dialog" }, h("button", { autofocus: true }, "Close")));
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
}

let leader = false;
/** @param {KeyboardEvent} event */
function onKey(event) {
  if (isTaken(event)) return;
  if (leader) {
    leader = false;
    if (event.key === "r") location.hash = "#/runs";
    if (event.key === "p") location.hash = "#/play";
    return;
  }
  if (event.key === "?") showKeys();
  if (event.key === "g") leader = true;
  if (event.key === "t") changeTheme();
}

function changeTheme() {
  nextTheme();
  drawTheme();
  say(`Colours: ${themeName()}`);
}

function drawTheme() {
  const button = byId("theme");
  fill(button, { auto: "◐", light: "☀", dark: "☾" }[themeName()] ?? "◐");
  button.setAttribute("aria-label", `Colours: ${themeName()}. Change.`);
  button.title = `Colours: ${themeName()}`;
}

followTheme();
drawTheme();
byId("theme").addEventListener("click", changeTheme);
byId("help").addEventListener("click", showKeys);
document.querySelector(".skip")?.addEventListener("click", (event) => {
  event.preventDefault(); // the hash says which page is shown, so it cannot say where to jump
  byId("main").focus();
});
addEventListener("keydown", onKey);
addEventListener("hashchange", route);
route();
