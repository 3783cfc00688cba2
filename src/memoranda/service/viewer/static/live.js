// Shows what agents do while a page is open: asks once a second whether something changed, and if so reads the page again
// and takes over what is new in the elements with data-live. It stops while the tab is hidden, and leaves an element in
// which something is typed as it is.
"use strict";
(() => {
  const SECOND = 1000, LONGEST = 60 * SECOND;
  const address = document.currentScript.dataset.version;
  // The HTML that the server sent for each element with an id, without what the reader opened since.
  const sent = new Map();
  let version = null, timer = 0, pause = SECOND;

  const regions = (root) => [...root.querySelectorAll("[data-live][id]")];
  const items = (region) => [...region.children].filter((child) => child.id);

  function isBusy(element) {
    const field = document.activeElement?.closest("input, textarea, select");
    if (field && element.contains(field)) return true;
    return [...element.querySelectorAll("textarea, input")].some((each) => each.value !== each.defaultValue);
  }

  // Returns the element that the page has then.
  function update(mine, fresh) {
    if (fresh.hasAttribute("data-live") && items(fresh).length) return merge(mine, fresh);
    if (sent.get(fresh.id) === fresh.outerHTML || isBusy(mine)) return mine;
    sent.set(fresh.id, fresh.outerHTML);
    fresh.classList.add("changed");
    mine.replaceWith(fresh);
    return fresh;
  }

  function merge(region, fresh) {
    const wanted = items(fresh), names = new Set(wanted.map((item) => item.id));
    for (const child of items(region)) if (!names.has(child.id) && !isBusy(child)) child.remove();
    let last = null;
    for (const item of wanted) {
      const mine = items(region).find((child) => child.id === item.id);
      if (mine) { last = update(mine, item); continue; }
      sent.set(item.id, item.outerHTML);
      item.classList.add("changed");
      if (last) last.after(item); else region.insertBefore(item, items(region)[0] ?? null);
      last = item;
    }
    return region;
  }

  async function readAgain() {
    const answer = await fetch(location.href);
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const atEnd = window.scrollY > 0 && window.innerHeight + window.scrollY > document.body.scrollHeight - 120;
    for (const fresh of regions(page)) {
      const mine = document.getElementById(fresh.id);
      // A region within another one is a part of it.
      if (mine && !fresh.parentElement.closest("[data-live]")) update(mine, fresh);
    }
    if (atEnd) window.scrollTo(0, document.body.scrollHeight);
  }

  async function look() {
    timer = 0;
    if (document.hidden) return;
    try {
      const answer = await fetch(address);
      // Whoever is not logged in any more is sent to another page.
      if (!answer.ok || answer.redirected) return;
      const found = await answer.text();
      if (version !== null && found !== version) await readAgain();
      version = found;
      pause = SECOND;
    } catch {
      // The viewer has ended, or the network is gone: ask less and less often.
      pause = Math.min(2 * pause, LONGEST);
    }
    wait(pause);
  }

  function wait(milliseconds) {
    if (!timer && !document.hidden) timer = setTimeout(look, milliseconds);
  }

  if (!document.querySelector("[data-live][id]")) return;
  const shown = regions(document).flatMap((region) => [region, ...items(region)]);
  for (const element of shown) sent.set(element.id, element.outerHTML);
  document.addEventListener("visibilitychange", () => wait(0));
  wait(0);
})();
