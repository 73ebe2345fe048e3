// Figures as files: SVG and PNG as they are on the page, and their numbers as CSV.

import { h } from "./dom.js";

/** What a downloaded figure needs of the page's styles. */
const KEPT = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity",
  "font-family", "font-size", "font-weight", "text-anchor", "stroke-linejoin", "stroke-linecap",
];
const PNG_SCALE = 2;

/** @typedef {{columns: string[], rows: (string | number | null | undefined)[][]}} Numbers */

/**
 * The figure as a document of its own: every style it has from the page written into it.
 * @param {SVGSVGElement} svg
 */
export function svgText(svg) {
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, place) => {
    const style = getComputedStyle(element);
    const target = to[place];
    if (style.display === "none") target.setAttribute("display", "none");
    for (const name of KEPT) {
      const value = style.getPropertyValue(name);
      if (value && value !== "normal") target.setAttribute(name, value);
    }
    for (const name of ["class", "tabindex", "data-tip", "data-row", "data-column", "data-mark"]) target.removeAttribute(name);
  });
  const box = svg.viewBox.baseVal;
  copy.setAttribute("width", String(box.width));
  copy.setAttribute("height", String(box.height));
  const paper = document.createElementNS(svg.namespaceURI, "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", getComputedStyle(svg).getPropertyValue("--card") || "#ffffff");
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}

/**
 * The figure as pixels.
 * @param {SVGSVGElement} svg
 * @returns {Promise<Blob>}
 */
export async function pngOf(svg) {
  const box = svg.viewBox.baseVal;
  const address = URL.createObjectURL(new Blob([svgText(svg)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = h("canvas", { width: Math.round(box.width * PNG_SCALE), height: Math.round(box.height * PNG_SCALE) });
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The picture could not be made."))), "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

/**
 * Numbers as CSV. A name that a spreadsheet would take for a formula gets an apostrophe.
 * @param {Numbers} numbers
 */
export function csvText({ columns, rows }) {
  return [columns, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

/** @param {string | number | null | undefined} value */
function field(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * Hand a file to the user.
 * @param {string} name @param {Blob} content
 */
export function save(name, content) {
  const address = URL.createObjectURL(content);
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/**
 * Buttons that download a figure.
 * @param {string} name of the files, without ending
 * @param {() => SVGSVGElement | null} figure
 * @param {() => Numbers} numbers
 */
export function downloads(name, figure, numbers) {
  const file = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "") || "figure";
  const button = (/** @type {string} */ label, /** @type {() => Promise<void> | void} */ action) =>
    h("button", { type: "button", class: "quiet download", "aria-label": `Download ${name} as ${label}`, onclick: action }, label);
  return h("span", { class: "downloads" },
    button("SVG", () => {
      const svg = figure();
      if (svg) save(`${file}.svg`, new Blob([svgText(svg)], { type: "image/svg+xml" }));
    }),
    button("PNG", async () => {
      const svg = figure();
      if (svg) save(`${file}.png`, await pngOf(svg));
    }),
    button("CSV", () => save(`${file}.csv`, new Blob([csvText(numbers())], { type: "text/csv" }))));
}
