// What the pages gain with scripts; each of them works without.
"use strict";
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.textContent);
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = label; }, 1500);
});
document.addEventListener("keydown", (event) => {
  // "/" moves to the search field, unless something is being typed.
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const field = document.querySelector("input[type=search]");
  if (field) { event.preventDefault(); field.focus(); field.select(); }
});
// Addresses name only the filters that are set.
document.addEventListener("htmx:config:request", (event) => {
  const sent = event.detail.ctx.request.body;
  for (const [name, value] of [...sent]) if (value === "" && name !== "q") sent.delete(name);
});
document.addEventListener("change", (event) => {
  if (event.target.matches(".filters select")) event.target.classList.toggle("chosen", event.target.value !== "");
});
// Shows the buttons that need scripts, also those of results that arrive later.
document.documentElement.classList.add("scripts");
