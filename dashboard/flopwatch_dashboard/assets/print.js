/* Paper: charts are drawn for the width of the sheet, and the light theme is printed from the page's own button. */
(function () {
  "use strict";
  const root = document.documentElement;
  const LIGHT_INK = "#17202b", DARK_INK = "#e7ecf3";
  const graphs = () => [...document.querySelectorAll(".js-plotly-plot")].filter((graph) => graph._fullLayout);

  function refit() { for (const graph of graphs()) { window.Plotly.Plots.resize(graph); } }

  window.addEventListener("beforeprint", function () { root.classList.add("printing"); refit(); });
  window.addEventListener("afterprint", function () { root.classList.remove("printing"); refit(); });

  /* Whether every chart has followed the theme; the page gets five seconds for it. */
  async function followed(ink) {
    for (let tries = 0; tries < 100; tries += 1) {
      if (graphs().every((graph) => graph._fullLayout.font.color === ink)) { return; }
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  document.addEventListener("click", async function (event) {
    if (!event.target.closest || !event.target.closest("[data-print]")) { return; }
    const dark = root.dataset.theme === "dark", theme = document.getElementById("theme-b");
    if (dark) { theme.click(); await followed(LIGHT_INK); }
    window.print();
    if (dark) { theme.click(); await followed(DARK_INK); }
  });
})();
