// What keeps people out of a page, as a list of sentences; run in the page by the tests.
() => {
  const found = [];
  const seen = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const named = (element) => (element.getAttribute("aria-label") || element.textContent
    || element.labels?.[0]?.textContent || element.getAttribute("alt") || element.title || "").trim();
  for (const element of document.querySelectorAll("a, button, input, select, textarea, summary, [role=img], canvas[tabindex]")) {
    if (seen(element) && !named(element)) found.push(`no name: ${element.outerHTML.slice(0, 120)}`);
  }
  for (const element of document.querySelectorAll("img:not([alt])")) found.push(`no alt: ${element.src}`);
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push(`two elements with id ${id}`);
  if (!document.documentElement.lang) found.push("no language");
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (document.documentElement.scrollWidth > innerWidth + 1) found.push(`wider than the window: ${document.documentElement.scrollWidth}`);
  const light = (text) => {
    const [red, green, blue, alpha = 1] = text.match(/[\d.]+/g).map(Number);
    const linear = [red, green, blue].map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return { alpha, value: 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] };
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (colour.startsWith("rgb") && light(colour).alpha === 1) return light(colour).value;
    }
    return 1;
  };
  for (const element of document.querySelectorAll("main *, header *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !seen(element) || element.closest("svg, :disabled, .unseen, option")) continue;
    const colour = getComputedStyle(element).color;
    if (!colour.startsWith("rgb")) continue;
    const [a, b] = [light(colour).value, behind(element)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) found.push(`faint (${contrast.toFixed(1)}): ${element.textContent.slice(0, 40)}`);
  }
  return [...new Set(found)];
}
