// The tags to choose from, each with its key. A click tags the selection; with nothing selected it chooses the tag as a brush, which drags apply.

import { $, announce, fill, h } from "./dom.js";

const SHOWN = 60; // the rest is found by typing

export function createTagbar(tags, use) {
  let brush = null, typed = "";
  const input = $("find");
  input.parentElement.hidden = tags.length <= 12;

  const matching = () => tags.filter((tag) => tag.name.toLowerCase().includes(typed));

  function draw() {
    const matches = matching();
    fill($("tags"), matches.slice(0, SHOWN).map((tag) => h("button",
      { type: "button", class: `tag c${tag.color}`, "aria-pressed": String(tag.name === brush), "aria-keyshortcuts": tag.key, onclick: () => use(tag.name, "button") },
      h("span", { class: "swatch", "aria-hidden": "true" }), h("span", { class: "name" }, tag.name), tag.key && h("kbd", { "aria-hidden": "true" }, tag.key))));
    $("tags-more").textContent = matches.length > SHOWN ? `${matches.length - SHOWN} more; type to find them` : matches.length ? "" : "No tag matches.";
  }

  function close() {
    [typed, input.value] = ["", ""];
    if (!tags.some(({ name }) => name === brush)) brush = null; // it was renamed or retired
    input.parentElement.hidden = tags.length <= 12;
    draw();
  }

  input.addEventListener("input", () => {
    typed = input.value.trim().toLowerCase();
    draw();
  });
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    const first = matching()[0];
    if (event.key === "Enter" && first) {
      event.preventDefault();
      close();
      use(first.name, "key");
    } else if (event.key === "Escape") {
      close();
      $("sentence").focus({ preventScroll: true });
    }
  });
  draw();
  return {
    brush: () => brush,
    take(name) {
      brush = brush === name ? null : name;
      draw();
      announce(brush ? `${brush} chosen: drag over tokens to tag them.` : "No tag chosen.");
    },
    redraw: close,
    byKey: (key) => tags.find((tag) => tag.key === key)?.name ?? null,
    find() {
      input.parentElement.hidden = false;
      input.focus();
    },
  };
}
