// Building pages: elements from text alone, so that names in data can never become markup.

/** Attributes that may run code or load from elsewhere when a name gets into them. */
const UNSAFE = /^on|^srcdoc$|^style$/i;
const SVG = "http://www.w3.org/2000/svg";

/**
 * What an element may contain.
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Object<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes
 */

/**
 * Make an HTML element. An attribute `onclick` takes a function; strings become text, never markup.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, attributes = {}, ...children) {
  return dressed(document.createElement(tag), attributes, children);
}

/**
 * Make an SVG element.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function s(tag, attributes = {}, ...children) {
  return dressed(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * @template {Element} Kind
 * @param {Kind} element @param {Attributes} attributes @param {Child[]} children
 * @returns {Kind}
 */
function dressed(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") {
      element.addEventListener(name.replace(/^on/, ""), value);
    } else if (UNSAFE.test(name)) {
      throw new TypeError(`The attribute ${name} is not set from text.`);
    } else if (/^(href|src)$/i.test(name) && !isOwnAddress(String(value))) {
      throw new TypeError(`${name} leads elsewhere: ${value}`);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...present(children));
  return element;
}

/** @param {string} address */
function isOwnAddress(address) {
  return /^(#|\/(?!\/)|\.\.?\/|blob:|data:image\/)/.test(address);
}

/** @param {Child[]} children */
function present(children) {
  const kept = children.filter((child) => child !== null && child !== undefined && child !== false);
  return kept.map((child) => (child instanceof Node ? child : String(child)));
}

/**
 * Replace what an element contains.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no element ${id}.`);
  return found;
}

/**
 * Tell something to people who listen to the page.
 * @param {string} text
 */
export function say(text) {
  const place = document.getElementById("status");
  if (place) place.textContent = text;
}

/**
 * Whether a key belongs to what has the focus: somebody writes, chooses, or a dialog is open.
 * @param {KeyboardEvent} event
 */
export function isTaken(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  const target = event.target instanceof Element ? event.target : null;
  const box = target?.closest("textarea, select, dialog, input");
  return Boolean(box) && !box?.matches("[type=checkbox], [type=radio]");
}

/** An answer that was not what was asked for, in the server's own words. */
export class Refused extends Error {
  /** @param {number} status @param {string} sentence */
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

/**
 * @param {string} path @param {RequestInit} options
 * @returns {Promise<Response>}
 */
async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Refused(0, "The dashboard's server does not answer; is the command still running?");
  }
  if (response.ok) return response;
  let sentence = `The server answered with status ${response.status}.`;
  try {
    sentence = (await response.json()).error ?? sentence;
  } catch { /* an answer without a sentence */ }
  throw new Refused(response.status, sentence);
}

/**
 * Ask the server for JSON.
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function fetchJson(path, signal) {
  return (await ask(path, { signal })).json();
}

/**
 * Ask the server for bytes.
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<ArrayBuffer>}
 */
export async function fetchBytes(path, signal) {
  return (await ask(path, { signal })).arrayBuffer();
}

/** @type {Promise<any> | null} */
let about = null;

/** What the server says of itself: folder, version, token. */
export function desk() {
  about ??= fetchJson("/api/desk").catch((error) => {
    about = null;
    throw error;
  });
  return about;
}

/**
 * Ask the server to start or stop work.
 * @param {string} path
 * @param {any} [body]
 * @returns {Promise<any>}
 */
export async function post(path, body = {}) {
  const { token } = await desk();
  const headers = { "Content-Type": "application/json", "X-Yardmaster-Token": token };
  return (await ask(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

/**
 * Follow a stream of events until the signal aborts; a broken connection is made again. A page that
 * nobody sees lets go of its stream: browsers open only a handful to one server, for all pages.
 * @param {string} path
 * @param {(event: any) => void} handle
 * @param {AbortSignal} signal
 */
export function follow(path, handle, signal) {
  /** @type {EventSource | null} */
  let source = null;
  const open = () => {
    if (source || signal.aborted || document.hidden) return;
    source = new EventSource(path);
    source.onopen = () => document.body.classList.remove("lost");
    source.onerror = () => document.body.classList.add("lost");
    source.onmessage = (message) => handle(JSON.parse(message.data));
  };
  const close = () => {
    source?.close();
    source = null;
    document.body.classList.remove("lost");
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()), { signal });
  signal.addEventListener("abort", close);
  open();
}
