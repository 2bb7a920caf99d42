// What axe-core finds serious or critical in the page as it looks now; withStructure: also what no look changes.
async (withStructure) => {
  const OF_THE_LOOK = ["color-contrast", "link-in-text-block", "target-size"], SCROLLING = "scrollable-region-focusable";
  const SMALLEST_TARGET = 24; // pixels: WCAG 2.2, 2.5.8
  // What a change of the width makes scroll is known after the next frame.
  for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);

  // Most elements of a page are words of code. Of those in the same place and of the same kind, which look alike in
  // every scheme, only the first stays an element: axe's time grows with the elements.
  const place = (element) => (element.matches("article") ? "" : `${place(element.parentElement)}/${element.className}`);
  const places = new Set();
  for (const word of document.querySelectorAll("article pre span")) {
    if (word.firstElementChild || word.attributes.length > 1) continue;
    const name = place(word);
    if (places.has(name)) word.replaceWith(...word.childNodes);
    places.add(name);
  }

  const behind = new Map();
  const background = (element) => {
    if (!element) return "";
    if (!behind.has(element)) {
      const style = getComputedStyle(element);
      const own = [style.backgroundColor, style.backgroundImage, style.opacity, style.filter, style.visibility];
      const isSeeThrough = own.join() === "rgba(0, 0, 0, 0),none,1,none,visible";
      const hidden = style.display === "none" ? "none" : "";
      behind.set(element, background(element.parentElement) + hidden + (isSeeThrough ? "" : `/${own}`));
    }
    return behind.get(element);
  };
  const look = (element) => {
    const style = getComputedStyle(element);
    const part = element.closest("header, nav, aside, article, footer, dialog")?.className;
    return [part, style.color, style.fontSize, style.fontWeight, background(element)].join("|");
  };
  const lookOfLink = (link) => {
    const { textDecoration, borderBottom, fontStyle } = getComputedStyle(link);
    return ["link", look(link), textDecoration, borderBottom, fontStyle, look(link.parentElement)].join("|");
  };
  // Of the texts in a part of the page with the same look axe sees the first, and so of the links in such texts.
  const oneOfEachLook = () => {
    const seen = new Map();
    for (const element of document.querySelectorAll("body *")) {
      const isText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
      const looks = [...(isText ? [look(element)] : []), ...(element.matches("a[href]") ? [lookOfLink(element)] : [])];
      for (const name of looks) if (!seen.has(name)) seen.set(name, element);
    }
    return seen.values();
  };
  // A large target needs no room around it, and a link in a line of text may be small: axe need not measure them.
  const smallTargets = () => [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex]")].filter(
    (target) => {
      const { width, height } = target.getBoundingClientRect();
      const isInLine = target.matches("article a") && getComputedStyle(target).display === "inline";
      return !isInLine && width && height && Math.min(width, height) < SMALLEST_TARGET;
    },
  );

  const isGrave = ({ impact }) => ["serious", "critical"].includes(impact);
  const isOfStructure = ({ id, tags, enabled }) =>
    enabled && ![...OF_THE_LOOK, SCROLLING, ...tags].some((name) => [id, "experimental", "deprecated"].includes(name));
  const structure = axe._audit.rules.filter((rule) => isGrave(rule) && isOfStructure(rule)).map(({ id }) => id);
  const runs = [
    [[document], [SCROLLING, ...(withStructure ? structure : [])]],
    [[...new Set([...oneOfEachLook(), ...smallTargets()])], OF_THE_LOOK],
  ];
  const found = [];
  for (const [include, rules] of runs) {
    // `preload` is what axe would load itself, and may not without a server.
    const options = { resultTypes: ["violations"], preload: false, runOnly: rules };
    found.push(...(await axe.run({ include }, options)).violations.filter(isGrave));
  }
  return found.map(({ id, nodes }) => ({ id, nodes: nodes.slice(0, 3).map((node) => node.html.slice(0, 160)) }));
}
