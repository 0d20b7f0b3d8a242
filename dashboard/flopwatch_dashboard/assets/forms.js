/* Forms that change something: they send to the API, say why it was not done, and lead on when it was. */
(function () {
  "use strict";
  const MATCHER = /^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(.*?)\s*$/;

  function matcher(line) {
    const found = MATCHER.exec(line);
    if (!found) { return null; }
    const quoted = found[3].length >= 2 && found[3].startsWith('"') && found[3].endsWith('"');
    const value = quoted ? found[3].slice(1, -1).replaceAll('\\"', '"') : found[3];
    return { name: found[1], value, isRegex: found[2].endsWith("~"), isEqual: found[2].startsWith("=") };
  }

  function field(form, name) {
    const found = form.querySelector(`[name="${name}"], [data-name="${name}"]`);
    return found ? found.value : undefined;
  }

  function lines(form) {
    return (field(form, "matchers") || "").split("\n").filter((line) => line.trim());
  }

  /* The body of the request; throws the words of what is wrong with a field. */
  function bodyOf(form) {
    if (form.dataset.api === "DELETE") { return undefined; }
    if (form.dataset.body) { return Object.assign(JSON.parse(form.dataset.body), { comment: field(form, "comment") }); }
    const comment = field(form, "comment");
    if (field(form, "matchers") === undefined) { return { comment }; }
    const wrong = lines(form).find((line) => !matcher(line));
    if (wrong !== undefined) { throw new Error(form.dataset.bad.replace("{line}", wrong)); }
    const end = Date.now() / 1000 + Number(field(form, "hours")) * 3600;
    return { matchers: lines(form).map(matcher), end_seconds: end, comment };
  }

  function say(form, words) {
    const place = form.querySelector(".f-problem");
    if (place) { place.textContent = words; }
  }

  function why(about, answer) {
    return answer.body ? about.failed.replace("{message}", answer.body.message || answer.status) : about.lost;
  }

  async function send(form) {
    let body;
    try { body = bodyOf(form); } catch (error) { say(form, error.message); return; }
    const buttons = [...form.querySelectorAll("button")];
    buttons.forEach((button) => { button.disabled = true; });
    const answer = await window.flopwatchAsk(form.dataset.api, form.dataset.path, body);
    buttons.forEach((button) => { button.disabled = false; });
    if (!answer.ok) { say(form, why(form.dataset, answer)); return; }
    window.dash_clientside.flopwatch.go(form.dataset.then + "&do.at=" + Date.now());
  }

  async function fits(form) {
    const place = form.querySelector(".f-fits");
    const found = lines(form).map(matcher);
    if (!place || !found.length || found.includes(null)) { if (place) { place.textContent = ""; } return; }
    const answer = await window.flopwatchAsk("POST", "/api/v1/alerts/fitting", { matchers: found });
    place.textContent = answer.ok ? form.dataset.fits.replace("{n}", answer.body.fingerprints.length) : "";
  }

  async function rehearse(button) {
    const place = document.getElementById("alerts-dry");
    const about = button.dataset;
    button.disabled = true;
    if (place && !place.children.length) { place.textContent = about.waiting; }
    const answer = await window.flopwatchAsk("GET", about.rehearse);
    button.disabled = false;
    if (place && !place.children.length) { place.textContent = answer.ok ? "" : why(about, answer); }
    if (answer.ok) { window.dash_clientside.set_props("alerts-rehearsed", { data: { ...answer.body, time_zone: about.zone } }); }
  }

  document.addEventListener("submit", function (event) {
    const form = event.target.closest ? event.target.closest("form[data-api]") : null;
    if (!form) { return; }
    event.preventDefault();
    send(form);
  });
  document.addEventListener("change", function (event) {
    const form = event.target.closest ? event.target.closest("form[data-fits]") : null;
    if (form && event.target.name === "matchers") { fits(form); }
  });
  document.addEventListener("click", function (event) {
    const button = event.target.closest ? event.target.closest("button[data-rehearse]") : null;
    if (button) { rehearse(button); }
  });
})();
