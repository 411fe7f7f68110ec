// Live parts and keys of fixloop's pages. Nothing is kept here: what a page shows, the server has made.
(() => {
  "use strict";
  const POLL_MS = 10000;
  const SETTLE_MS = 300;
  const { live, workflow, version, next, previous, steps = "[data-step]" } = document.body.dataset;
  let stream, poll, planned;

  // A live part.

  function address() {
    const url = new URL(location.href);
    if (version) url.searchParams.set("seen", version);
    return url.pathname + url.search;
  }

  async function refresh() {
    planned = undefined;
    const focused = document.activeElement;
    const place = [...document.querySelectorAll(steps)].indexOf(focused);
    await htmx.ajax("GET", address(), { target: live, select: live, swap: "outerMorph" });
    if (focused !== document.body && !focused.isConnected && place >= 0) {
      // What had the focus is gone, decided by somebody else: what took its place has it now.
      const left = document.querySelectorAll(steps);
      (left[Math.min(place, left.length - 1)] ?? document.getElementById("main")).focus();
    }
  }

  function plan() {
    planned ??= setTimeout(refresh, SETTLE_MS);
  }

  function changed(event) {
    if (!workflow || JSON.parse(event.data).workflow === workflow) plan();
  }

  function startPolling() {
    poll ??= setInterval(plan, POLL_MS);
  }

  function stopPolling() {
    clearInterval(poll);
    poll = undefined;
  }

  function listen() {
    stream = new EventSource("/v1/events");
    stream.addEventListener("open", stopPolling);
    stream.addEventListener("change", changed);
    stream.addEventListener("reset", plan);
    stream.addEventListener("error", startPolling);
  }

  function stop() {
    stream?.close();
    stopPolling();
  }

  if (live) {
    listen();
    // Browsers allow few connections to a host: a page that nobody sees needs none.
    document.addEventListener("visibilitychange", () => {
      stop();
      if (document.hidden) return;
      listen();
      plan();
    });
    addEventListener("pagehide", stop);
  }

  // Keys.

  const help = document.getElementById("keys");
  const button = document.querySelector("[data-help]");
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => help.showModal());
  }

  function move(by) {
    const all = [...document.querySelectorAll(steps)];
    const at = all.findIndex((each) => each.contains(document.activeElement));
    const to = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
    if (!to) return;
    if (to.tabIndex < 0) to.tabIndex = -1;
    to.focus();
    to.scrollIntoView({ block: "nearest" });
  }

  function toggleDifference() {
    const all = [...document.querySelectorAll("details:has(.diff)")];
    const after = (each) => document.activeElement.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING;
    const found = all.find((each) => each.contains(document.activeElement)) ?? all.find(after) ?? all[0];
    if (!found) return;
    found.open = !found.open;
    found.querySelector("summary").focus();
  }

  function choose(element) {
    element.focus();
    if (element.type === "radio") element.checked = true;
  }

  const isTyping = (element) => element.closest("textarea, select, input:not([type=radio]), [contenteditable]");

  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.ctrlKey) {
      const form = event.target.closest("form") ?? document.querySelector("form[data-confirm]");
      if (form?.hasAttribute("data-confirm")) form.requestSubmit();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || help.open || isTyping(event.target)) return;
    const chosen = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (event.key === "?") help.showModal();
    else if (chosen) choose(chosen);
    else if (event.key === next) move(1);
    else if (event.key === previous) move(-1);
    else if (event.key === "d") toggleDifference();
    else return;
    event.preventDefault();
  });
})();
