/* The session of who looks: changes carry its guard, and where it has ended people are led to sign in again. */
(function () {
  "use strict";
  const prefix = document.documentElement.dataset.prefix || "/ui/";
  const asked = window.fetch.bind(window);

  function guard() {
    const found = document.cookie.split("; ").find((one) => one.startsWith("flopwatch_guard="));
    return found ? found.slice("flopwatch_guard=".length) : "same-site";
  }

  function leave() {
    const here = location.pathname + location.search;
    location.assign("/login?next=" + encodeURIComponent(here));
  }

  window.fetch = async function (...about) {
    const answer = await asked(...about);
    const address = new URL(answer.url || location.href, location.href);
    const ours = address.origin === location.origin && (address.pathname.startsWith(prefix) || address.pathname.startsWith("/api/"));
    if (answer.status === 401 && ours) { leave(); }
    return answer;
  };

  /* A change or question to the API; gives {ok, body} or, where nothing answered, {ok: false, body: null}. */
  async function ask(method, path, body) {
    const headers = { accept: "application/json", "x-flopwatch-guard": guard() };
    if (body !== undefined) { headers["content-type"] = "application/json"; }
    try {
      const answer = await window.fetch(path, { method, headers, credentials: "same-origin", body: body === undefined ? undefined : JSON.stringify(body) });
      return { ok: answer.ok, status: answer.status, body: await answer.json() };
    } catch {
      return { ok: false, status: 0, body: null };
    }
  }

  window.flopwatchAsk = ask;

  /* The page of who changed what asks the collector itself, with the right of who looks. */
  async function audit(asked) {
    if (!asked) { return null; }
    return { ...(await ask("GET", asked.path)), zone: asked.zone };
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.flopwatch = Object.assign(window.dash_clientside.flopwatch || {}, { audit });
})();
