// The report's own page: brings the part to life that can be explored, from data within the page.

import { contrast } from "./contrast.js";
import { byId, h } from "./dom.js";
import { gantts } from "./gantts.js";
import { decode } from "./schedule_data.js";

/**
 * The bytes that a data block of the page holds.
 * @param {string} id
 * @returns {Promise<ArrayBuffer>}
 */
async function unpacked(id) {
  const text = atob(byId(id).textContent ?? "");
  const bytes = Uint8Array.from(text, (mark) => mark.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

async function explore() {
  const found = JSON.parse(new TextDecoder().decode(await unpacked("contrast")));
  const host = byId("explore-here");
  byId("explore").hidden = false; // charts measure their room
  host.before(h("p", { class: "muted small" }, found.note));
  const schedules = new Map();
  contrast(host, found, {
    heading: "h3",
    has: (side) => found.held.includes(side),
    gantts: found.held.length ? gantts : undefined,
    schedule: found.held.length ? (side) => {
      if (!schedules.has(side)) schedules.set(side, unpacked(`schedule-${side}`).then(decode));
      return schedules.get(side);
    } : undefined,
  });
}

if (typeof DecompressionStream === "function") {
  explore().catch((error) => {
    byId("explore").hidden = true; // tables and figures are there all the same
    throw error;
  });
}
