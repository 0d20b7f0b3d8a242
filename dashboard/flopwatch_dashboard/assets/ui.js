/* What stays in the browser: the reader's settings, the gate of the tick, the age of the data, links without reload. */
(function () {
  "use strict";
  const root = document.documentElement;
  const prefix = root.dataset.prefix || "/ui/";
  const RANGES = ["1h", "6h", "24h", "7d", "30d"];
  const LONGEST = 366 * 86400;
  const TICK_MS = 5000;
  const FRAME = JSON.parse(root.dataset.frame || "[]");
  let lastFacts = null;
  let lastAnswer = Date.now();

  const stored = (key) => { try { return localStorage.getItem("flopwatch." + key); } catch { return null; } };
  const store = (key, value) => { try { localStorage.setItem("flopwatch." + key, value); } catch { /* private mode */ } };
  const viewport = () => ({ w: window.innerWidth, h: window.innerHeight });

  const seconds = (text) => { const found = Date.parse(text || ""); return Number.isNaN(found) ? null : found / 1000; };
  const iso = (value) => new Date(value * 1000).toISOString().slice(0, 16) + "Z";

  function span(q) {
    const from = seconds(q.get("from")), to = seconds(q.get("to"));
    return from !== null && to !== null && to - from >= 60 && to - from <= LONGEST ? { from, to } : { from: null, to: null };
  }

  function zoneOf(q, before) {
    const zone = q.has("zone") ? q.get("zone") : before ? before.zone : stored("zone");
    return zone && zone !== "site" ? zone : null;
  }

  function fromAddress(before) {
    const q = new URLSearchParams(location.search);
    const between = span(q);
    const lang = q.get("lang") || (before && before.lang) || stored("lang") || (root.lang.startsWith("zh") ? "zh" : "en");
    const range = q.get("range") || (before && before.range) || "24h";
    return {
      theme: (q.get("theme") || (before && before.theme) || root.dataset.theme) === "dark" ? "dark" : "light",
      lang: lang.startsWith("zh") ? "zh" : "en",
      range: between.to ? "custom" : RANGES.includes(range) ? range : "24h",
      from: between.from,
      to: between.to,
      zone: zoneOf(q, before),
      team: q.get("team") || null,
      cluster: q.get("cluster") || null,
      kiosk: q.get("kiosk") === "1",
      inputs: [...q.entries()].filter(([name]) => name.includes(".")),
    };
  }

  function toAddress(settings) {
    const q = new URLSearchParams(location.search);
    q.set("range", settings.range);
    q.set("theme", settings.theme);
    q.set("lang", settings.lang);
    const named = { cluster: settings.cluster, team: settings.team, zone: settings.zone,
      from: settings.to && iso(settings.from), to: settings.to && iso(settings.to) };
    for (const [name, value] of Object.entries(named)) { if (value) { q.set(name, value); } else { q.delete(name); } }
    history.replaceState(history.state, "", location.pathname + "?" + q.toString());
  }

  function apply(settings) {
    root.dataset.theme = settings.theme;
    root.lang = settings.lang === "zh" ? "zh-CN" : "en";
    document.body.dataset.agThemeMode = settings.theme;
    store("theme", settings.theme);
    store("lang", settings.lang);
    store("zone", settings.zone || "site");
  }

  function same(a, b) { return JSON.stringify(a) === JSON.stringify(b); }

  function settings(themeClicks, langClicks, range, cluster, screen, search, before) {
    const causes = window.dash_clientside.callback_context.triggered.map((one) => one.prop_id);
    const by = (id) => causes.some((cause) => cause.startsWith(id + "."));
    const next = Object.assign(!before || by("url") ? fromAddress(before) : Object.assign({}, before), viewport());
    if (by("theme-b")) { next.theme = next.theme === "dark" ? "light" : "dark"; }
    if (by("lang-b")) { next.lang = next.lang === "zh" ? "en" : "zh"; }
    if (before && by("range") && RANGES.includes(range)) { Object.assign(next, { range, from: null, to: null }); }
    if (before && by("cluster")) { next.cluster = cluster || null; }
    apply(next);
    if (before && !by("url") && !by("viewport")) { toAddress(next); }
    const keep = window.dash_clientside.no_update;
    return [same(next, before) ? keep : next, next.theme, next.range === range ? keep : next.range,
      (next.cluster || null) === (cluster || null) ? keep : next.cluster];
  }

  function paused(clicks) { return (clicks || 0) % 2 === 1; }

  function gate(tick, clicks) {
    const hidden = document.hidden && root.dataset.kiosk !== "1";
    return paused(clicks) || hidden ? window.dash_clientside.no_update : tick;
  }

  function duration(seconds, units) {
    if (seconds < 90) { return units[0].replace("{n}", Math.round(seconds)); }
    if (seconds < 5400) { return units[1].replace("{n}", Math.round(seconds / 60)); }
    if (seconds < 172800) { return units[2].replace("{n}", Math.round(seconds / 3600)); }
    return units[3].replace("{n}", Math.round(seconds / 86400));
  }

  function age(_n, facts, clicks) {
    if (facts && facts !== lastFacts) { lastFacts = facts; lastAnswer = Date.now(); document.title = facts.title; }
    const off = paused(clicks);
    const silent = (Date.now() - lastAnswer) / 1000;
    const lost = !off && !document.hidden && silent > 3 * TICK_MS / 1000 + 2;
    const state = "btn live" + (off ? " off" : lost ? " lost" : "");
    if (!facts) { return ["", state, String(off)]; }
    if (off) { return [" · " + facts.paused, state, "true"]; }
    if (facts.data_time === null) { return ["", state + " off", "false"]; }
    const old = facts.now - facts.data_time + silent;
    if (old <= 45) { return ["", state, "false"]; }
    return [" · " + facts.age.replace("{n}", duration(old, facts.units)), state + (lost ? "" : " old"), "false"];
  }

  /* Values in the order of the outputs; a part that did not change is absent and left alone. */
  function frame(parts) {
    const keep = window.dash_clientside.no_update;
    return FRAME.map((name) => (parts && name in parts ? parts[name] : keep));
  }

  function go(address) {
    const path = location.pathname;
    history.pushState({}, "", address);
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
    if (location.pathname !== path) { window.scrollTo(0, 0); }
  }

  document.addEventListener("click", function (event) {
    const link = event.target.closest ? event.target.closest("a[href]") : null;
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) { return; }
    if (link.target || link.hasAttribute("download")) { return; }
    const to = new URL(link.href, location.href);
    if (to.origin !== location.origin || !to.pathname.startsWith(prefix) || (to.hash && to.pathname === location.pathname)) { return; }
    event.preventDefault();
    go(to.pathname + to.search);
  });

  let resizing = null;
  window.addEventListener("resize", function () {
    clearTimeout(resizing);
    resizing = setTimeout(() => window.dash_clientside.set_props("viewport", { data: viewport() }), 200);
  });

  if (root.dataset.kiosk === "1") { setTimeout(() => location.reload(), 86400000); }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.flopwatch = Object.assign(window.dash_clientside.flopwatch || {}, { settings, gate, age, frame, go, facts: () => lastFacts });
})();
