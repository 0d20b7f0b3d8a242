/* Saving what a graph shows: its figures as CSV, or the picture; both are made here, nothing leaves the browser. */
(function () {
  "use strict";
  const SIMULATED = "SIMULATED";

  const cell = (value) => {
    if (value === null || value === undefined || (typeof value === "number" && !Number.isFinite(value))) { return ""; }
    const text = String(value);
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
    return /[",\n\r]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  };

  function rowsOf(graph) {
    const traces = graph._fullData.filter((trace) => trace.visible === true && trace.mode !== "markers");
    const dated = graph._fullLayout.xaxis.type === "date";
    const places = new Map();
    traces.forEach((trace, column) => {
      const xs = trace.x || [], ys = trace.y || [];
      for (let i = 0; i < ys.length; i += 1) {
        if (!places.has(xs[i])) { places.set(xs[i], new Array(traces.length).fill(null)); }
        places.get(xs[i])[column] = ys[i];
      }
    });
    const keys = [...places.keys()].sort((a, b) => (a > b) - (a < b));
    const time = (x) => (dated ? new Date(typeof x === "number" ? x : Date.parse(x + "Z")).toISOString().slice(0, 19) : x);
    return { names: traces.map((trace, i) => trace.name || "value " + (i + 1)), rows: keys.map((x) => [time(x), ...places.get(x)]), dated };
  }

  function csv(graph, zone) {
    const found = rowsOf(graph), simulated = document.querySelector(".chip.sim") !== null;
    const head = ["simulated", found.dated ? `time (${zone})` : "x", ...found.names];
    const lines = found.rows.map((row) => [simulated ? SIMULATED : "", ...row]);
    return "\ufeff" + [head, ...lines].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
  }

  function save(name, text) {
    const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    const link = Object.assign(document.createElement("a"), { href: address, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  document.addEventListener("click", function (event) {
    const button = event.target.closest ? event.target.closest("button[data-save]") : null;
    const graph = button && document.querySelector(`#${CSS.escape(button.dataset.graph)} .js-plotly-plot`);
    if (!graph || !graph._fullData) { return; }
    const simulated = document.querySelector(".chip.sim") !== null ? "simulated-" : "";
    const name = `flopwatch-${simulated}${button.dataset.graph.replace(/-g$/, "")}`;
    if (button.dataset.save === "csv") { save(name + ".csv", csv(graph, button.dataset.zone)); return; }
    const colour = getComputedStyle(document.documentElement).getPropertyValue("--card").trim();
    const layout = Object.assign({}, graph.layout, { paper_bgcolor: colour });
    if (simulated) {
      layout.annotations = [...(graph.layout.annotations || []), { x: 0.5, y: 0.5, xref: "paper", yref: "paper", text: SIMULATED, showarrow: false, opacity: 0.14, font: { size: 40 } }];
    }
    const size = { width: graph.clientWidth, height: graph.clientHeight };
    window.Plotly.downloadImage({ data: graph.data, layout, config: {} }, Object.assign({ format: "png", scale: 2, filename: name }, size));
  });
})();
