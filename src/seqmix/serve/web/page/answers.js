// All answers and open sentences: search, filter, and open one to correct it. The filters are in the address, so that a list can be kept or sent.

import { answerCard } from "./answer_card.js";
import { get } from "./api.js";
import { drawBatches } from "./batches.js";
import { $, announce, fill, h, many } from "./dom.js";
import { shell, stop } from "./shell.js";
import { watchTags } from "./tagsync.js";

const PAGE = 50;
const ABOUT_ANSWERS = ["tag", "annotator", "stream", "source", "since", "until", "before_tag"];
const REMOTE = ["stream", "source", "since", "until", "before_tag", "id"]; // the filters that are folded away
const NONE = {
  answered: "No answer matches.", open: "No open sentence matches. Audit sentences are not listed before their turn: they must stay a random sample.",
  skipped: "No skipped sentence matches.", discarded: "No discarded sentence matches.", seed: "No sentence was labeled before the project began, or none matches.",
};
const project = await shell("answers.html");

async function start() {
  let shown = 0, after = null, asked = 0;
  const form = $("filters");
  try {
    const { people, sources } = await get("api/answers/choices");
    tagOptions();
    options("annotator", people, people.length > 1 || project.annotator.admin ? "Anybody" : "You");
    options("source", [...sources, "mark_all", "accept", "llm"], "Any", { mark_all: "mark all", accept: "accepted in one go", llm: "language model" });
  } catch (error) {
    return stop(error);
  }

  /** Offer the tags to filter by; what is chosen stays chosen while there is such a tag. */
  function tagOptions() {
    const chosen = ["tag", "before_tag"].map((id) => [$(id), $(id).value]);
    const tags = project.tags.map(({ name }) => name);
    options("tag", tags);
    options("before_tag", tags, "–");
    for (const [field, name] of chosen) field.value = tags.includes(name) ? name : "";
  }

  /** Write the address into the form. */
  function fromAddress() {
    const wanted = new URLSearchParams(location.search);
    form.reset();
    for (const [name, value] of wanted) {
      const field = form.elements[name];
      if (field?.type === "checkbox") field.checked = value === "true";
      else if (field) field.value = value;
    }
    if (!form.elements.state.value) form.elements.state.value = "answered";
    if (REMOTE.some((name) => wanted.get(name))) $("more-filters").open = true;
    search();
  }

  /** The filters that are set, as in the address. */
  function wanted() {
    const state = form.elements.state.value;
    const pairs = [...new FormData(form)].filter(([name, value]) => value !== "" && !(name === "state" && value === "answered"));
    return pairs.filter(([name]) => ["answered", "skipped", "discarded"].includes(state) || !ABOUT_ANSWERS.includes(name));
  }

  function changed() {
    const query = String(new URLSearchParams(wanted()));
    history.replaceState(null, "", query ? `answers.html?${query}` : "answers.html");
    search();
  }

  function search() {
    const about = ["answered", "skipped", "discarded"].includes(form.elements.state.value);
    for (const node of form.querySelectorAll("[data-answers]")) node.hidden = !about;
    [shown, after] = [0, null];
    return more(true);
  }

  async function more(fresh = false) {
    const turn = ++asked;
    $("more").disabled = true;
    $("trouble").hidden = true;
    try {
      const query = new URLSearchParams(wanted().map(([name, value]) => [name, sent(name, value)]));
      query.set("limit", PAGE);
      if (after !== null) query.set("after", after);
      const { answers, next } = await get(`api/answers?${query}`);
      if (turn !== asked) return; // another search was asked for since
      if (fresh) fill($("list"));
      $("list").append(...answers.map((item) => answerCard(item, { project, stop, changed: search })));
      [shown, after] = [shown + answers.length, next];
      $("more").hidden = next === null;
      $("summary").textContent = shown ? `${many(shown, form.elements.state.value === "answered" ? "answer" : "sentence")}${next === null ? "." : " shown; there are more."}` : NONE[form.elements.state.value];
    } catch (error) {
      if (!error.kind) throw error;
      if (error.kind === "login") return stop(error);
      $("trouble").hidden = false;
      $("trouble").textContent = error.message;
      $("more").hidden = false;
    }
    $("more").disabled = false;
  }

  let typing;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    changed();
  });
  form.addEventListener("reset", () => setTimeout(changed)); // the fields are empty only after the event
  form.addEventListener("change", changed);
  $("text").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(changed, 300);
  });
  $("more").addEventListener("click", () => more());
  addEventListener("popstate", fromAddress);
  $("batches-box").addEventListener("toggle", () => $("batches-box").open && drawBatches({ stop, changed: search }));
  drawBatches({ stop, changed: search }).catch((error) => error.kind || Promise.reject(error));
  form.inert = false; // only now: what somebody chose before would be overwritten
  fromAddress();
  announce($("summary").textContent);
  watchTags(project, async ({ text }) => {
    tagOptions();
    if (!document.querySelector(".correct")) await search(); // an answer that is being corrected stays
    $("summary").textContent = `${text} ${$("summary").textContent}`;
  });
}

/** A date is sent as the moment it begins here; the last day is included. */
function sent(name, value) {
  if (name !== "since" && name !== "until") return value;
  const [year, month, day] = value.split("-").map(Number);
  return String(new Date(year, month - 1, day + (name === "until" ? 1 : 0)).getTime() / 1000);
}

function options(id, names, none = "Any", titles = {}) {
  fill($(id), h("option", { value: "" }, none), names.map((name) => h("option", { value: name }, titles[name] ?? name)));
}

if (project) await start();
