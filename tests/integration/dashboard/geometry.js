/* What lies on top of what should be read: words of charts over each other, cards over each other, words cut off. */
() => {
  const seen = (element) => {
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    return box.width > 0.5 && box.height > 0.5 && style.visibility !== "hidden" && style.opacity !== "0";
  };
  const over = (a, b, slack) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > slack && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > slack;
  const name = (element) => (element.textContent || "").trim().slice(0, 40);
  const overlapping = [], clipped = [];

  for (const plot of document.querySelectorAll(".js-plotly-plot")) {
    const texts = [...plot.querySelectorAll("text")].filter((text) => name(text) && !text.closest(".hoverlayer,.modebar") && seen(text));
    const boxes = texts.map((text) => text.getBoundingClientRect());
    for (let i = 0; i < texts.length; i += 1) {
      for (let j = i + 1; j < texts.length; j += 1) {
        if (over(boxes[i], boxes[j], 3)) { overlapping.push(`${plot.parentElement.id}: ${name(texts[i])} / ${name(texts[j])}`); }
      }
    }
  }
  for (const group of document.querySelectorAll(".main, .row, .kpis, .top, .tools, .c-h, .p-h, .k-row, .k-s, .bar")) {
    const parts = [...group.children].filter((part) => seen(part) && getComputedStyle(part).position !== "absolute");
    const boxes = parts.map((part) => part.getBoundingClientRect());
    for (let i = 0; i < parts.length; i += 1) {
      for (let j = i + 1; j < parts.length; j += 1) {
        if (over(boxes[i], boxes[j], 1.5)) { overlapping.push(`${group.className}: ${name(parts[i])} / ${name(parts[j])}`); }
      }
    }
  }
  /* Words may end in an ellipsis only where their whole text can be had: by a title, a link, or a page of its own. */
  for (const element of document.querySelectorAll(".main *, .top *")) {
    const text = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
    if (!text || !seen(element) || element.closest(".modebar,.vh,svg,.ag-root,.ag-aria-description-container")) { continue; }
    const style = getComputedStyle(element);
    const cut = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0 && style.display !== "inline" && style.overflowX !== "visible" && style.overflowX !== "auto";
    if (cut && !element.closest("[title]:not([title=''])")) { clipped.push(`${element.className || element.tagName}: ${name(element)}`); }
  }
  return { overlapping, clipped };
}
