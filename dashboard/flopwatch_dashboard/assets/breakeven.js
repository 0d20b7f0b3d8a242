/* Forms whose values live in the address: a changed field goes there, and the page follows. */
(function () {
  "use strict";

  function show(input, value) {
    const setter = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
    setter.call(input, value);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }

  document.addEventListener("change", function (event) {
    const input = event.target.closest ? event.target.closest("[data-base] input") : null;
    if (!input || !input.name || !input.name.includes(".")) { return; }
    const base = input.closest("[data-base]").dataset.base;
    const value = input.value.trim();
    const q = new URLSearchParams(location.search);
    if (!value || value === base) { q.delete(input.name); } else { q.set(input.name, value); }
    if (!value && base) { show(input, base); }
    history.replaceState(history.state, "", location.pathname + "?" + q.toString());
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
  });
})();
