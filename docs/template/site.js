// The documentation's few moving parts: menu, theme, search. No module and no fetch: it opens as a file.
"use strict";
(() => {
  const root = document.body.dataset.root;
  const byId = (id) => document.getElementById(id);
  const MOST = 12;

  const menu = byId("menu");
  menu.addEventListener("click", () => {
    const isOpen = byId("navigation").classList.toggle("open");
    menu.setAttribute("aria-expanded", String(isOpen));
  });

  const ORDER = ["auto", "light", "dark"];
  const theme = byId("theme");
  const kept = () => document.documentElement.dataset.theme || "auto";
  const show = () => {
    theme.textContent = { auto: "◐", light: "☀", dark: "☾" }[kept()];
    theme.setAttribute("aria-label", `Theme: ${kept()}`);
  };
  theme.addEventListener("click", () => {
    const next = ORDER[(ORDER.indexOf(kept()) + 1) % ORDER.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("yardmaster-theme", next);
    } catch { /* it lasts as long as the page */ }
    show();
  });
  show();

  const box = byId("search");
  const found = byId("found");
  let asked = null;

  /** Load the index once, when somebody begins to search. */
  function load() {
    asked ||= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${root}/search_index.js`;
      script.onload = () => resolve(window.SEARCH_INDEX);
      script.onerror = reject;
      document.head.append(script);
    });
    return asked;
  }

  /** How well a section matches: all words must be in it; titles count most. */
  function score([, page, heading, text], words) {
    const parts = [[page, 8], [heading, 12], [text, 1]].map(([part, weight]) => [part.toLowerCase(), weight]);
    let sum = 0;
    for (const word of words) {
      let best = 0;
      for (const [part, weight] of parts) {
        if (part.includes(word)) best = Math.max(best, part === word ? weight * 3 : weight);
      }
      if (!best) return 0;
      sum += best;
    }
    return sum;
  }

  /** The text around the first word, with the words marked; made of nodes, never of markup. */
  function excerpt(text, words) {
    const at = Math.max(0, Math.min(...words.map((word) => {
      const place = text.toLowerCase().indexOf(word);
      return place < 0 ? Infinity : place;
    })));
    const from = Number.isFinite(at) ? Math.max(0, at - 50) : 0;
    const piece = (from ? "… " : "") + text.slice(from, from + 150);
    const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return piece.split(new RegExp(`(${escaped.join("|")})`, "i")).map((part) => {
      if (!words.includes(part.toLowerCase())) return part;
      const mark = document.createElement("mark");
      mark.textContent = part;
      return mark;
    });
  }

  async function search() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) { found.hidden = true; return; }
    const index = await load();
    const hits = index.map((entry) => [score(entry, words), entry]).filter(([points]) => points > 0);
    hits.sort((one, other) => other[0] - one[0]);
    found.replaceChildren(...hits.slice(0, MOST).map(([, [address, page, heading, text]]) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = `${root}/${address}`;
      link.textContent = heading ? `${page} › ${heading}` : page;
      const small = document.createElement("small");
      small.append(...excerpt(text, words));
      link.append(small);
      item.append(link);
      return item;
    }));
    if (!hits.length) {
      const nothing = document.createElement("p");
      nothing.textContent = "Nothing found: every word must be in the same section.";
      found.append(nothing);
    }
    found.hidden = false;
  }

  box.addEventListener("focus", load);
  box.addEventListener("input", search);
  document.addEventListener("keydown", (event) => {
    const links = [...found.querySelectorAll("a")];
    const here = links.indexOf(document.activeElement);
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !isTyping) {
      event.preventDefault();
      box.focus();
    } else if (event.key === "Escape") {
      found.hidden = true;
    } else if (event.key === "Enter" && document.activeElement === box && links.length) {
      links[0].click();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !found.hidden && (here >= 0 || document.activeElement === box)) {
      event.preventDefault();
      const next = here + (event.key === "ArrowDown" ? 1 : -1);
      (next < 0 ? box : links[Math.min(next, links.length - 1)]).focus();
    }
  });
  document.addEventListener("click", (event) => {
    if (!byId("finder").contains(event.target)) found.hidden = true;
  });
  found.addEventListener("click", () => { found.hidden = true; });
})();
