/* The dialog of what pages show: a range of the reader's own, the time zone, one team; and what takes it back. */
(function () {
  "use strict";
  const LONGEST = 366 * 86400;
  const make = (tag, about, ...inside) => {
    const element = Object.assign(document.createElement(tag), about);
    element.append(...inside);
    return element;
  };

  /* How far a zone is from UTC at a moment, in milliseconds. */
  function offset(moment, zone) {
    const parts = new Intl.DateTimeFormat("en-US", { timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric",
      day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" }).formatToParts(new Date(moment));
    const of = (type) => Number(parts.find((part) => part.type === type).value);
    return Date.UTC(of("year"), of("month") - 1, of("day"), of("hour"), of("minute"), of("second")) - Math.floor(moment / 1000) * 1000;
  }

  function toSeconds(text, zone) {
    const wall = Date.parse(text + "Z");
    if (Number.isNaN(wall)) { return null; }
    const guess = wall - offset(wall, zone);
    return (wall - offset(guess, zone)) / 1000;
  }

  const toField = (seconds, zone) => new Date(seconds * 1000 + offset(seconds * 1000, zone)).toISOString().slice(0, 16);
  const address = (q) => location.pathname + (q.size ? "?" + q.toString() : "");
  const ownZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

  function choices(pairs, chosen) {
    const select = make("select", {});
    for (const [value, words] of pairs) { select.append(make("option", { value, textContent: words, selected: value === chosen })); }
    return select;
  }

  function zones(about) {
    const pairs = [["site", about.words.site.replace("{zone}", about.site)]];
    for (const zone of [ownZone(), "UTC"]) {
      if (zone === about.site || pairs.some(([known]) => known === zone)) { continue; }
      pairs.push([zone, zone === "UTC" ? zone : about.words.browser.replace("{zone}", zone)]);
    }
    if (about.zone !== about.site && !pairs.some(([known]) => known === about.zone)) { pairs.push([about.zone, about.zone]); }
    return choices(pairs, about.zone === about.site ? "site" : about.zone);
  }

  function apply(about, fields, problem) {
    const zone = fields.zone.value === "site" ? about.site : fields.zone.value;
    const q = new URLSearchParams(location.search);
    const from = toSeconds(fields.from.value, zone), to = toSeconds(fields.to.value, zone);
    if (fields.from.value || fields.to.value) {
      if (from === null || to === null || to - from < 60 || to - from > LONGEST) { problem.textContent = about.words.bad; return false; }
      for (const [name, value] of [["from", from], ["to", to]]) { q.set(name, new Date(value * 1000).toISOString().slice(0, 16) + "Z"); }
    } else { q.delete("from"); q.delete("to"); }
    q.set("zone", fields.zone.value);
    if (fields.team && fields.team.value) { q.set("team", fields.team.value); } else { q.delete("team"); }
    window.dash_clientside.flopwatch.go(address(q));
    return true;
  }

  function open() {
    const facts = window.dash_clientside.flopwatch.facts();
    if (!facts || document.querySelector("dialog.scope-d")) { return; }
    const about = facts.scope, words = about.words;
    const time = (value) => make("input", { type: "datetime-local", value: value === null ? "" : toField(value, about.zone) });
    const between = about.between || [null, null];
    const fields = { from: time(between[0]), to: time(between[1]), zone: zones(about) };
    const here = new URLSearchParams(location.search);
    if (about.teams.length || here.get("team")) {
      const names = about.teams.includes(here.get("team")) || !here.get("team") ? about.teams : [...about.teams, here.get("team")];
      fields.team = choices([["", words.all], ...names.map((name) => [name, name])], here.get("team") || "");
    }
    const problem = make("p", { className: "f-problem" });
    problem.setAttribute("role", "alert");
    const rows = Object.entries(fields).map(([name, field]) => make("label", { className: "s-f" }, make("span", { textContent: words[name] }), field));
    const wall = new URLSearchParams(location.search);
    wall.set("kiosk", "1");
    const foot = make("div", { className: "s-b" },
      make("a", { className: "more", href: address(wall), target: "_self", textContent: words.wall }),
      make("button", { type: "button", className: "btn", textContent: words.close, onclick: () => box.close() }),
      make("button", { type: "submit", className: "btn main-b", textContent: words.apply }));
    const form = make("form", { onsubmit: (event) => { event.preventDefault(); if (apply(about, fields, problem)) { box.close(); } } },
      make("h2", { id: "scope-title", textContent: words.title }), ...rows, make("p", { className: "muted note", textContent: words.hint }), problem, foot);
    const box = make("dialog", { className: "scope-d", onclose: () => { box.remove(); document.getElementById("scope-b").focus(); } }, form);
    box.setAttribute("aria-labelledby", "scope-title");
    document.body.append(box);
    box.showModal();
  }

  document.addEventListener("click", function (event) {
    if (!event.target.closest) { return; }
    if (event.target.closest("#scope-b")) { open(); return; }
    const drop = event.target.closest("[data-drop]");
    if (!drop) { return; }
    const q = new URLSearchParams(location.search);
    for (const name of drop.dataset.drop.split(",")) { q.delete(name); if (name === "zone") { q.set("zone", "site"); } }
    window.dash_clientside.flopwatch.go(address(q));
  });
  document.addEventListener("keydown", function (event) {
    if (event.key !== "Escape" || document.documentElement.dataset.kiosk !== "1") { return; }
    const q = new URLSearchParams(location.search);
    q.delete("kiosk");
    location.assign(address(q));
  });
})();
