/* Checks that run in the page: contrast of every text, blank graphs, text that is cut off. */
() => {
  const parse = (text) => {
    const numbers = (text.match(/[\d.]+(?:e-?\d+)?/g) || []).map(Number);
    if (text.startsWith("color(srgb")) { return [numbers[0] * 255, numbers[1] * 255, numbers[2] * 255, numbers[3] ?? 1]; }
    return [numbers[0], numbers[1], numbers[2], numbers[3] ?? 1];
  };
  const over = (front, back) => [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3]));
  const luminance = (c) => {
    const [r, g, b] = c.map((v) => { const s = v / 255; return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backdrop = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] > 0) { layers.push(colour); }
      if (colour[3] === 1) { break; }
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
  };
  const tokens = getComputedStyle(document.documentElement);
  const hex = (name) => { const t = tokens.getPropertyValue(name).trim(); return [1, 3, 5].map((i) => parseInt(t.slice(i, i + 2), 16)); };
  const inBar = hex("--inbar"), bar = hex("--productive");
  const low = [], cut = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.textContent.trim() || !element || /^(SCRIPT|STYLE)$/.test(element.tagName)) { continue; }
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    if (!box.width || style.visibility === "hidden" || style.opacity === "0" || element.closest(".skip,.vh,.modebar")) { continue; }
    const svg = element instanceof SVGElement;
    let back = backdrop(svg ? element.ownerSVGElement.parentElement : element);
    let front = parse(svg ? style.fill : style.color);
    if (svg && front.slice(0, 3).every((v, i) => Math.abs(v - inBar[i]) < 2)) { back = bar; }
    front = over(front, back);
    const [high, lower] = [luminance(front), luminance(back)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (lower + 0.05);
    count += 1;
    if (ratio < 4.5) { low.push(`${ratio.toFixed(2)} ${node.textContent.trim().slice(0, 40)}`); }
  }
  for (const plot of document.querySelectorAll(".js-plotly-plot")) {
    const frame = plot.closest(".card").getBoundingClientRect();
    for (const text of plot.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      if (box.width && text.textContent.trim() && !text.closest(".hoverlayer,.modebar") && (box.right > frame.right + 1 || box.left < frame.left - 1)) {
        cut.push(`${plot.parentElement.id}: ${text.textContent}`);
      }
    }
  }
  return {
    low, cut, count,
    unlabelled: [...document.querySelectorAll("[role=img]")].filter((e) => !e.getAttribute("aria-label")).length,
    wide: document.documentElement.scrollWidth - window.innerWidth,
    tall: document.documentElement.scrollHeight - window.innerHeight,
  };
}
