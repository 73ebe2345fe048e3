// Light or dark: as the system has it, until somebody says otherwise.

const ORDER = ["auto", "light", "dark"];
const PLACE = "yardmaster-theme";
/** @type {Set<() => void>} */
const watchers = new Set();

/** @returns {string} auto, light or dark: what was asked for. */
export function themeName() {
  let kept = null;
  try {
    kept = localStorage.getItem(PLACE);
  } catch { /* no storage: as the system has it */ }
  return kept && ORDER.includes(kept) ? kept : "auto";
}

/** Whether the page is dark now. */
export function isDark() {
  const name = document.documentElement.dataset.theme;
  return name ? name === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Go on to the next of the three. */
export function nextTheme() {
  const next = ORDER[(ORDER.indexOf(themeName()) + 1) % ORDER.length];
  try {
    localStorage.setItem(PLACE, next);
  } catch { /* it lasts as long as the page */ }
  apply(next);
}

/** Put the kept choice into effect, and tell drawings when the colours change. */
export function followTheme() {
  apply(themeName());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
}

/** @param {string} name */
function apply(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  tell();
}

function tell() {
  for (const watcher of watchers) watcher();
}

/**
 * Call back when the colours of the page change; for what is drawn on a canvas.
 * @param {() => void} watcher
 * @returns {() => void} stops it
 */
export function onThemeChange(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/**
 * The value of one of base.css's colours, such as `--ink`.
 * @param {string} name
 */
export function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
