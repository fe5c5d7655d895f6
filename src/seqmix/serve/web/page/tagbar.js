// The tags to choose from, each with its key. A press tags the selection; with nothing selected it takes the tag in hand, and drags apply it.

import { $, announce, fill, h } from "./dom.js";

const SHOWN = 60; // more are found by typing

export function createTagbar(tags, use) {
  let hand = null, wanted = "";
  const input = $("find");
  input.parentElement.hidden = tags.length <= 12;

  const matching = () => tags.filter((tag) => tag.name.toLowerCase().includes(wanted));

  function draw() {
    const found = matching();
    fill($("tags"), found.slice(0, SHOWN).map((tag) => h("button",
      { type: "button", class: `tag c${tag.color}`, "aria-pressed": String(tag.name === hand), "aria-keyshortcuts": tag.key, onclick: () => use(tag.name, "button") },
      h("span", { class: "swatch", "aria-hidden": "true" }), h("span", { class: "name" }, tag.name), tag.key && h("kbd", { "aria-hidden": "true" }, tag.key))));
    $("tags-more").textContent = found.length > SHOWN ? `${found.length - SHOWN} more; type to find them` : found.length ? "" : "No tag is called so.";
  }

  function close() {
    [wanted, input.value] = ["", ""];
    input.parentElement.hidden = tags.length <= 12;
    draw();
  }

  input.addEventListener("input", () => {
    wanted = input.value.trim().toLowerCase();
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
    hand: () => hand,
    take(name) {
      hand = hand === name ? null : name;
      draw();
      announce(hand ? `${hand} in hand: drag over tokens to tag them.` : "No tag in hand.");
    },
    redraw: close,
    byKey: (key) => tags.find((tag) => tag.key === key)?.name ?? null,
    find() {
      input.parentElement.hidden = false;
      input.focus();
    },
  };
}
