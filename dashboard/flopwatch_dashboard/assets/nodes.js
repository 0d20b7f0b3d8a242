/* The heat-map of GPUs: what is under the pointer or the keyboard's cursor, and the way to its node. */
(function () {
  "use strict";
  const TOP = 249, UNKNOWN = 250, SILENT = 252, GRAPH = "nodes-map-g";
  const keep = () => window.dash_clientside.no_update;
  let known = null;

  function bytes(text) {
    const raw = atob(text), out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i += 1) { out[i] = raw.charCodeAt(i); }
    return out;
  }

  const wide = (text) => new Int16Array(bytes(text).buffer);
  const plain = (text) => String(text).replace(/[<>&]/g, (sign) => ({ "<": "&lt;", ">": "&gt;", "&": "&amp;" })[sign]);

  function valueOf(code, now) {
    if (code === SILENT) { return now.words.silent; }
    if (code === UNKNOWN) { return now.words.unknown; }
    const scale = now.scale;
    if (!scale) { return now.healths ? now.healths[code] || "" : ""; }
    const value = (scale.low + ((scale.high - scale.low) * code) / TOP) * scale.factor;
    return value.toFixed(scale.digits) + scale.unit;
  }

  /* The GPU of every cell, and the node of every GPU: GPUs of a node stand below each other. */
  function laidOut(place) {
    const corners = wide(place.corners), counts = bytes(place.gpus), cells = new Int32Array(place.rows * place.columns).fill(-1);
    const node = [];
    for (let at = 0, gpu = 0; at < counts.length; at += 1) {
      const row = corners[2 * at], column = corners[2 * at + 1];
      for (let below = 0; below < counts[at]; below += 1, gpu += 1) {
        node.push(at);
        if (row >= 0) { cells[(row + below) * place.columns + column] = gpu; }
      }
    }
    return { cells, node };
  }

  /* One text a cell; cells of no GPU have none. */
  function texts(z, place, now) {
    const { cells, node } = laidOut(place), index = bytes(place.index);
    const job = wide(now.job), bucket = bytes(now.bucket), out = [];
    known = { place, cells, node };
    for (let row = 0; row < place.rows; row += 1) {
      const line = new Array(place.columns);
      for (let column = 0; column < place.columns; column += 1) {
        const at = row * place.columns + column, gpu = cells[at];
        if (gpu < 0) { line[column] = ""; continue; }
        const rack = place.racks[node[gpu]], value = valueOf(z[at], now), state = now.buckets[bucket[gpu]];
        const words = ["<b>" + plain(place.names[node[gpu]]) + "</b> · " + now.words.gpu.replace("{n}", index[gpu]) + (rack ? " · " + plain(rack) : "")];
        if (value) { words.push(now.metric + ": <b>" + plain(value) + "</b>"); }
        if (state) { words.push(plain(state)); }
        words.push(job[gpu] >= 0 ? plain(now.jobs[job[gpu]] || "–") : now.words.no_job);
        line[column] = words.join("<br>");
      }
      out.push(line);
    }
    return out;
  }

  function map(figure, place, now) {
    if (!figure) { return keep(); }
    if (!place || !place.corners || !now || !now.job) { known = null; return figure; }
    const trace = figure.data[0], z = bytes(trace.z.bdata);
    if (z.length !== place.rows * place.columns) { return keep(); }
    return Object.assign({}, figure, { data: [Object.assign({}, trace, { text: texts(z, place, now) }), ...figure.data.slice(1)] });
  }

  function open(row, column) {
    if (!known) { return; }
    const gpu = known.cells[row * known.place.columns + column];
    if (gpu === undefined || gpu < 0) { return; }
    const search = new URLSearchParams(location.search);
    [...search.keys()].filter((name) => name.startsWith("nodes.")).forEach((name) => search.delete(name));
    window.dash_clientside.flopwatch.go(known.place.paths + encodeURIComponent(known.place.names[known.node[gpu]]) + "?" + search);
  }

  function pick(click) {
    const point = click && click.points && click.points[0];
    if (point) { open(Math.round(point.y), Math.round(point.x)); }
    return keep();
  }

  /* Arrow keys walk over the GPUs, Enter opens the node. */
  const cursor = { row: 0, column: -1 };
  const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

  function walk(step) {
    const { place, cells } = known;
    let { row, column } = cursor;
    for (let tries = 0; tries < place.rows * place.columns; tries += 1) {
      row += step[0];
      column += step[1];
      if (column < 0) { column = place.columns - 1; row -= 1; }
      if (column >= place.columns) { column = 0; row += 1; }
      row = (row + place.rows) % place.rows;
      if (cells[row * place.columns + column] >= 0) { Object.assign(cursor, { row, column }); return; }
    }
  }

  document.addEventListener("keydown", function (event) {
    const wrap = event.target.closest ? event.target.closest("#nodes-map-keys") : null;
    const graph = wrap && document.querySelector("#" + GRAPH + " .js-plotly-plot");
    if (!graph || !known) { return; }
    if (event.key === "Enter") { open(cursor.row, cursor.column); return; }
    const step = STEPS[event.key];
    if (!step) { return; }
    event.preventDefault();
    walk(step);
    window.Plotly.Fx.hover(graph, { xval: cursor.column, yval: cursor.row }, "xy");
    const place = document.getElementById("nodes-said"), text = graph.data[0].text;
    if (place && text) { place.textContent = text[cursor.row][cursor.column].replaceAll("<br>", ", ").replace(/<[^>]*>/g, ""); }
  });

  const e = (...parts) => window.React.createElement(...parts);
  const SHAPES = { ok: ["check", "good"], warning: ["warning", "warning"], critical: ["critical", "critical"], unknown: ["ended", "muted"] };
  window.dashAgGridComponentFunctions = Object.assign(window.dashAgGridComponentFunctions || {}, {
    FlopwatchHealth: (props) => {
      const [shape, tone] = SHAPES[props.data.health_code] || SHAPES.unknown;
      return e("span", { className: "sev sev-" + tone, title: props.value },
        e("span", { className: "ic ic-" + shape, "aria-hidden": "true" }), e("span", null, props.value));
    },
  });

  const finite = (value) => typeof value === "number" && Number.isFinite(value);
  const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [0, ""]];
  function nodeValue(value, name) {
    if (!finite(value)) { return "n/a"; }
    if (name.endsWith("_ratio")) { return Math.round(value * 100) + "%"; }
    if (name === "temperature_celsius") { return Math.round(value) + " °C"; }
    if (name === "power_watts") { return Math.round(value).toLocaleString("en-US") + " W"; }
    const [scale, prefix] = PREFIXES.find(([least]) => value >= least);
    const unit = name === "sm_clock_hertz" ? "Hz" : "B/s";
    return (scale ? value / scale : value).toPrecision(3) + " " + prefix + unit;
  }
  window.dashAgGridFunctions = Object.assign(window.dashAgGridFunctions || {}, { nodeValue });

  /* Enter in the table opens the node of its row. */
  const bound = new WeakSet();
  function nodeTable(gridId) {
    window.dash_ag_grid.getApiAsync(gridId).then((api) => {
      if (bound.has(api)) { return; }
      bound.add(api);
      api.addEventListener("cellKeyDown", (event) => {
        if (event.event.key !== "Enter" || !event.data) { return; }
        const search = new URLSearchParams(location.search);
        window.dash_clientside.flopwatch.go(event.data.href + "?" + search);
      });
    });
    return keep();
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.flopwatch = Object.assign(window.dash_clientside.flopwatch || {}, { nodeMap: map, nodePick: pick, nodeTable });
})();
